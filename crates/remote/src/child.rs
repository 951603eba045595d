//! Child: an SFTP server that is a program on this host, over pipes. Two threads, one per pipe.

use crate::Error;
use engine::fd::enlarge_pipe;
use sftp::client::{self, Client, Event, Incoming, Outgoing};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::Sender;

/// Bytes of a pipe, and of what is written or read at once.
const PIPE: usize = 1 << 20;

/// Starts `command` and speaks SFTP over its standard input and output; its standard error is as
/// `command` has it, ours by default. It sees the end of its input after the last client is gone.
///
/// # Errors
/// It does not start.
pub fn child(mut command: Command, events: Sender<Event>) -> Result<Client, Error> {
    let failed = |command: &Command, why| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::Program { program, why }
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| failed(&command, why))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed(&command, io::ErrorKind::BrokenPipe.into()));
    };
    enlarge_pipe(&stdin, PIPE);
    enlarge_pipe(&stdout, PIPE);
    let (client, outgoing, incoming) = client::pair(events);
    let ender = client.ender();
    let started = spawn("to child", move || send(outgoing, stdin))
        .and_then(|()| spawn("from child", move || receive(incoming, stdout, child)));
    started.map_err(|why| {
        ender.end(client::Error::ended("no thread"));
        failed(&command, why)
    })?;
    Ok(client)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

fn send(mut outgoing: Outgoing, mut stdin: ChildStdin) {
    let mut memory = vec![0; PIPE / 2];
    while outgoing.wait() {
        let filled = outgoing.fill(&mut [IoSliceMut::new(&mut memory)]);
        // The reading thread says why.
        if stdin.write_all(memory.get(..filled).unwrap_or_default()).is_err() {
            return;
        }
    }
}

fn receive(mut incoming: Incoming, mut stdout: ChildStdout, mut child: Child) {
    let mut memory = vec![0; PIPE];
    loop {
        let taken = match stdout.read(&mut memory) {
            Ok(0) => break,
            Ok(n) => incoming.take(&[IoSlice::new(memory.get(..n).unwrap_or_default())]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if taken.is_err() {
            break;
        }
    }
    drop(stdout);
    incoming.end();
    let _ = child.wait();
}

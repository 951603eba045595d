//! Our SFTP server on standard input and output, for the copy's tests: lhsftp-server without its
//! log, which cargo does not build for another crate's tests. With a file named by
//! `LHSCP_TEST_FUSE` it dies when it is asked for files, and takes a byte off that file, until the
//! file is empty.

use sftp::server::{Account, Action, Level, Log, Options, Output, Setup};
use std::fmt::Arguments;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

struct Nowhere;

impl Log for Nowhere {
    fn line(&self, _: Level, _: Arguments<'_>) {}
}

fn main() -> io::Result<()> {
    let Ok(Action::Serve(options)) = Options::parse(std::env::args_os().skip(1)) else {
        return Err(io::Error::other("options are those of sftp-server(8)"));
    };
    let start = std::env::current_dir()?;
    let home = std::env::var_os("HOME").map_or_else(|| start.clone(), Into::into);
    let account = Account { name: b"tester".to_vec(), home };
    let (peer, log) = (String::new(), Arc::new(Nowhere));
    let links = Default::default();
    let setup = Setup { options: *options, account, start, peer, links, log };
    let (mut input, output, _) = sftp::server::start(setup)?;
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 19];
        let mut fuse = std::env::var_os("LHSCP_TEST_FUSE").map(|path| Fuse::new(path.into()));
        while let Ok(read @ 1..) = io::stdin().read(&mut buffer) {
            fuse.iter_mut().for_each(|fuse| fuse.watch(buffer.get(..read).unwrap_or_default()));
            if take(&mut input, buffer.get(..read).unwrap_or_default()).is_err() {
                break;
            }
        }
        input.end();
    });
    send(output)
}

/// What ends the server when it is asked for files.
struct Fuse {
    path: PathBuf,
    /// The end of what was heard, in which a word may have begun.
    heard: Vec<u8>,
}

const WORD: &[u8] = b"get-files@longhaul";

impl Fuse {
    fn new(path: PathBuf) -> Self {
        Self { path, heard: Vec::new() }
    }

    fn watch(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        let left = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        if left > 0 && self.heard.windows(WORD.len()).any(|part| part == WORD) {
            let _ = std::fs::write(&self.path, vec![b'x'; left as usize - 1]);
            std::process::exit(1);
        }
        let done = self.heard.len().saturating_sub(WORD.len() - 1);
        self.heard.drain(..done);
    }
}

fn take(input: &mut sftp::server::Input, mut bytes: &[u8]) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    while !bytes.is_empty() {
        let taken = input.take(&[IoSlice::new(bytes)])?;
        bytes = bytes.get(taken..).unwrap_or_default();
        if !bytes.is_empty() {
            poll(&mut [PollFd::from_borrowed_fd(input.room(), PollFlags::IN)], None)?;
        }
    }
    Ok(())
}

fn send(mut output: Output) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 19];
    let mut stdout = io::stdout().lock();
    while output.wait() {
        let filled = output.fill(&mut [IoSliceMut::new(&mut buffer)]);
        stdout.write_all(buffer.get(..filled).unwrap_or_default())?;
        stdout.flush()?;
    }
    Ok(())
}

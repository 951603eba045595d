//! The client against a real server's bytes, driven by hand.

use crate::client::{Answer, Check, Client, Data, Error, Event, Target, pair};
use crate::codec::{Attrs, Handle, OpenFlags, Reply, Request};
use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// OpenSSH's server on pipes, driven by two threads.
fn stock(batch: usize, slab: usize) -> Option<(Client, Receiver<Event>)> {
    let program = "/usr/lib/openssh/sftp-server";
    if !need::require(&[program]) {
        return None;
    }
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (events, heard) = channel();
    let (client, mut outgoing, mut incoming) = pair(events);
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    std::thread::spawn(move || {
        let mut memory = vec![0; batch];
        while outgoing.wait() {
            let mut areas: Vec<_> = memory.chunks_mut(1000).map(IoSliceMut::new).collect();
            let filled = outgoing.fill(&mut areas);
            if stdin.write_all(&memory[..filled]).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        let mut memory = vec![0; slab];
        while let Ok(n @ 1..) = stdout.read(&mut memory) {
            let pieces: Vec<_> = memory[..n].chunks(777).map(IoSlice::new).collect();
            if incoming.take(&pieces).is_err() {
                break;
            }
        }
        incoming.end();
        let _ = child.wait();
    });
    Some((client, heard))
}

fn open(client: &Client, path: &std::path::Path, flags: OpenFlags) -> Handle {
    use std::os::unix::ffi::OsStrExt;
    let path = path.as_os_str().as_bytes().to_vec();
    match client.call(&Request::Open { path, flags, attrs: Attrs::default() }).unwrap() {
        Reply::Handle(handle) => handle,
        other => panic!("{other:?}"),
    }
}

/// Whatever the sizes of batches and slabs, requests and data cross their borders anyhow.
#[test]
fn files_go_to_a_stock_server_and_back_across_any_borders() {
    for (batch, slab) in [(512 * 1024, 1 << 20), (100_000, 4096), (3000, 333), (40, 17)] {
        let Some((client, heard)) = stock(batch, slab) else { return };
        let dir = tempfile::tempdir().unwrap();
        let len = if batch > 1000 { 3_000_001 } else { 100_001 };
        let content: Vec<u8> = (0..len).map(|i: u32| (i * 7 + i / 251) as u8).collect();
        std::fs::write(dir.path().join("source"), &content).unwrap();
        let source = std::sync::Arc::new(File::open(dir.path().join("source")).unwrap());
        let there = dir.path().join("there");
        let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
        let handle = open(&client, &there, flags);
        assert!(client.server().unwrap().has(crate::codec::name::POSIX_RENAME));
        let data = Data::File { file: source, offset: 1, len: u64::from(len) - 1 };
        client.put(&handle, 1, data, Check::Blake3, 1);
        client.put(&handle, 0, Data::Bytes(content[..1].into()), Check::None, 2);
        let mut hash = None;
        for _ in 0..2 {
            match heard.iter().find(|event| !matches!(event, Event::Room)).unwrap() {
                Event::Answer { token: 1, answer: Ok(Answer::Sent(sent)) } => hash = sent.hash,
                Event::Answer { token: 2, answer: Ok(Answer::Sent(_)) } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(hash, Some(*blake3::hash(&content[1..]).as_bytes()));
        assert!(std::fs::read(&there).unwrap() == content);
        let back = std::sync::Arc::new(File::create(dir.path().join("back")).unwrap());
        let target = Target::File { file: back, offset: 0 };
        client.get(&handle, 0, len + 10, target, Check::Blake3, 3);
        let got = match heard.iter().find(|event| !matches!(event, Event::Room)).unwrap() {
            Event::Answer { token: 3, answer: Ok(Answer::Got(got)) } => got,
            other => panic!("{other:?}"),
        };
        assert_eq!((got.len, got.eof), (len, true));
        assert_eq!(got.hash, Some(*blake3::hash(&content).as_bytes()));
        assert!(std::fs::read(dir.path().join("back")).unwrap() == content);
        client.call(&Request::Close(handle)).unwrap();
        drop(client);
        assert!(matches!(heard.recv().unwrap(), Event::Ended(Error::Ended(_))));
    }
}

//! Servers that are programs on this host: good ones, and those that are none.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use remote::{Error, Host, child};
use sftp::client::{Check, Data, Event};
use sftp::codec::{Attrs, OpenFlags, Reply, Request};
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

const SERVER: &str = "/usr/lib/openssh/sftp-server";

#[test]
fn each_channel_of_a_program_is_a_process_of_its_own() {
    if !need::require(&[SERVER]) {
        return;
    }
    let connection = Host::program(SERVER, vec!["-e".into()]).connect().unwrap();
    let lanes: Vec<_> = (0..3)
        .map(|_| {
            let (events, heard) = channel();
            (connection.open(events).unwrap(), heard)
        })
        .collect();
    for (client, _) in &lanes {
        assert!(client.server().unwrap().sizes.write > 100_000);
        client.call(&Request::Stat(b"/".to_vec())).unwrap();
    }
    assert!(matches!(connection.run(b"true".to_vec()), Err(Error::NoCommands)));
    for (client, heard) in lanes {
        drop(client);
        assert!(matches!(heard.recv_timeout(Duration::from_secs(10)), Ok(Event::Ended(_))));
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let connection = Host::program("/nowhere/server", Vec::new()).connect().unwrap();
    let Err(error) = connection.open(channel().0) else { panic!("it opened") };
    assert!(error.to_string().starts_with("/nowhere/server: "), "{error}");
}

#[test]
fn a_program_that_is_no_server_or_ends_leaves_nobody_waiting() {
    for script in ["cat", "echo hello", "exit 3", "exec yes"] {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let (events, heard) = channel();
        let client = child(command, events).unwrap();
        assert!(client.call(&Request::Stat(b"/".to_vec())).is_err(), "{script}");
        assert!(client.server().is_err(), "{script}");
        assert!(matches!(heard.recv_timeout(Duration::from_secs(10)), Ok(Event::Ended(_))));
    }
}

#[test]
fn a_server_that_is_killed_answers_everything() {
    if !need::require(&[SERVER]) {
        return;
    }
    // A shell's background process reads nothing unless it is told to.
    let script = format!("exec 3<&0; {SERVER} <&3 & p=$!; sleep 0.5; kill -9 $p; exec 3<&-");
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    let (events, heard) = channel();
    let client = child(command, events).unwrap();
    let path = b"/dev/null".to_vec();
    let open = Request::Open { path, flags: OpenFlags::WRITE, attrs: Attrs::default() };
    let Reply::Handle(handle) = client.call(&open).unwrap() else { panic!() };
    for token in 0..20 {
        client.put(&handle, 0, Data::Zeros(1 << 34), Check::None, token);
    }
    let mut answers = 0;
    loop {
        match heard.recv_timeout(Duration::from_secs(20)).unwrap() {
            Event::Answer { answer, .. } => {
                assert!(answer.is_err());
                answers += 1;
            }
            Event::Room | Event::Unsent { .. } => {}
            Event::Ended(_) => break,
        }
    }
    assert_eq!(answers, 20);
}

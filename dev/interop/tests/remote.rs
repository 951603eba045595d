//! Channels of `remote` on connections to stock sshd: files both ways over several channels at
//! once, servers that refuse more, connections that die.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use interop::{Kind, Lab, Server, need};
use nix::sys::signal::Signal;
use remote::{Connection, Error, Host};
use sftp::client::{Answer, Check, Client, Data, Event, Flight, Target};
use sftp::codec::{Attrs, Handle, OpenFlags, Reply, Request};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a dead connection may go unnoticed.
const PROMPT: Duration = Duration::from_secs(5);

struct Far {
    lab: Lab,
    server: Server,
    host: Host,
}

/// A stock server with more lines of configuration, and a way to it.
fn far(config: &[&str]) -> Option<Far> {
    let sftp = need::find("/usr/lib/openssh/sftp-server");
    if !Kind::OpenSsh.available() || !need::have(sftp.is_some(), "no sftp-server") {
        return None;
    }
    let lab = Lab::new().unwrap();
    let sftp = ["Subsystem sftp /usr/lib/openssh/sftp-server"];
    let server = Server::start(&lab, Kind::OpenSsh, &[&sftp, config].concat()).unwrap();
    let host = host(&lab, &server);
    Some(Far { lab, server, host })
}

fn host(lab: &Lab, server: &Server) -> Host {
    let log = login::Log::new("test", conf::LogLevel::Info, None).unwrap();
    Host::ssh(server.configuration(lab).unwrap(), Arc::new(log))
}

type Lane = (Client, Receiver<Event>);

fn lane(connection: &Connection) -> Result<Lane, Error> {
    let (events, heard) = channel();
    Ok((connection.open(events)?, heard))
}

fn open(client: &Client, path: &Path, flags: OpenFlags) -> Handle {
    let path = path.as_os_str().as_bytes().to_vec();
    match client.call(&Request::Open { path, flags, attrs: Attrs::default() }).unwrap() {
        Reply::Handle(handle) => handle,
        other => panic!("{other:?}"),
    }
}

/// Moves `file`, `parts` of it, one part per lane; each lane keeps its own bytes under way.
fn move_file(lanes: &mut [Lane], there: &Path, file: &Arc<File>, size: u64, put: bool) {
    let part = size.div_ceil(lanes.len() as u64);
    std::thread::scope(|scope| {
        for (index, (client, heard)) in (0..).zip(lanes) {
            scope.spawn(move || {
                let flags = OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE;
                let handle = open(client, there, flags);
                let range = index * part..(index * part + part).min(size);
                move_range(client, heard, &handle, file, range, put);
                client.call(&Request::Close(handle)).unwrap();
            });
        }
    });
}

fn move_range(
    client: &Client,
    heard: &Receiver<Event>,
    handle: &Handle,
    file: &Arc<File>,
    range: std::ops::Range<u64>,
    put: bool,
) {
    let piece = u64::from(client.server().unwrap().sizes.read);
    let mut flight = Flight::new(Instant::now());
    let mut offset = range.start;
    while offset < range.end || flight.under_way() > 0 {
        if offset < range.end && flight.room() >= piece {
            let len = piece.min(range.end - offset);
            let file = Arc::clone(file);
            if put {
                client.put(handle, offset, Data::File { file, offset, len }, Check::None, len);
            } else {
                let target = Target::File { file, offset };
                client.get(handle, offset, len.try_into().unwrap(), target, Check::None, len);
            }
            flight.sent(len, Instant::now());
            offset += len;
            continue;
        }
        match heard.recv().unwrap() {
            Event::Answer { token, answer } => {
                if let Answer::Got(got) = answer.unwrap() {
                    assert_eq!(u64::from(got.len), token);
                }
                flight.done(token, Instant::now());
            }
            Event::Room | Event::Unsent { .. } => {}
            Event::Ended(why) => panic!("{why}"),
        }
    }
}

fn content(len: usize) -> Vec<u8> {
    let mut random = 7u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&random.to_be_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[test]
fn a_file_goes_up_and_down_over_several_channels_at_once() {
    const SIZE: usize = 256 << 20;
    let Some(far) = far(&[]) else { return };
    let connection = far.host.connect().unwrap();
    let mut lanes: Vec<Lane> = (0..4).map(|_| lane(&connection).unwrap()).collect();
    assert_eq!(connection.channels(), 4);
    let content = content(SIZE);
    let [here, there, back] = ["here", "there", "back"].map(|name| far.lab.path(name));
    std::fs::write(&here, &content).unwrap();
    let source = Arc::new(File::open(&here).unwrap());
    move_file(&mut lanes, &there, &source, SIZE as u64, true);
    assert!(std::fs::read(&there).unwrap() == content);
    let target = Arc::new(File::create(&back).unwrap());
    move_file(&mut lanes, &there, &target, SIZE as u64, false);
    assert!(std::fs::read(&back).unwrap() == content);
    drop(lanes);
    let deadline = Instant::now() + PROMPT;
    while connection.channels() > 0 {
        assert!(Instant::now() < deadline, "channels close after their last client is gone");
        std::thread::sleep(Duration::from_millis(5));
    }
    connection.close();
}

/// MaxSessions: told apart, so that another connection can be made.
#[test]
fn a_server_that_opens_no_more_sessions_is_known_as_such() {
    let Some(far) = far(&["MaxSessions 2"]) else { return };
    let connection = far.host.connect().unwrap();
    let lanes = [lane(&connection).unwrap(), lane(&connection).unwrap()];
    assert!(matches!(lane(&connection), Err(Error::Full(_))));
    // Those that are open go on, and a place that became free can be had.
    for (client, _) in &lanes {
        client.call(&Request::Realpath(b".".to_vec())).unwrap();
    }
    drop(lanes);
    let deadline = Instant::now() + PROMPT;
    while lane(&connection).is_err() {
        assert!(Instant::now() < deadline, "a closed channel's place can be had");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_server_without_the_subsystem_is_not_taken_for_a_full_one() {
    if !Kind::OpenSsh.available() {
        return;
    }
    let lab = Lab::new().unwrap();
    let server = Server::start(&lab, Kind::OpenSsh, &[]).unwrap();
    let connection = host(&lab, &server).connect().unwrap();
    let (client, heard) = lane(&connection).unwrap();
    let error = client.server().unwrap_err().to_string();
    assert!(error.contains("refuses the subsystem sftp"), "{error}");
    assert!(matches!(heard.recv().unwrap(), Event::Ended(_)));
    let finished = connection.run(b"echo out; echo err >&2; exit 3".to_vec()).unwrap();
    assert_eq!((finished.status, finished.output.as_slice()), (Some(3), &b"out\n"[..]));
    // By far, and by the byte that its end comes with.
    for size in [2_000_000, (1 << 20) + 1] {
        let end = connection.run(format!("head -c {size} /dev/zero").into_bytes());
        assert!(matches!(end, Err(Error::TooMuch(_))), "{size}");
    }
    assert!(connection.run(b"true".to_vec()).is_ok(), "the connection goes on");
}

/// Every token of every channel is answered, soon, when the connection dies under them.
#[test]
fn a_connection_that_is_killed_answers_everything_at_once() {
    let Some(far) = far(&[]) else { return };
    let connection = far.host.connect().unwrap();
    let there = far.lab.path("there");
    std::fs::write(&there, content(1 << 20)).unwrap();
    let mut lanes: Vec<Lane> = (0..3).map(|_| lane(&connection).unwrap()).collect();
    let (slow, slow_heard) = lanes.pop().unwrap();
    let asked = 200;
    for (client, _) in &lanes {
        let handle = open(client, &there, OpenFlags::READ | OpenFlags::WRITE);
        for token in 0..asked {
            if token % 2 == 0 {
                client.get(&handle, 0, 200_000, Target::Bytes, Check::None, token);
            } else {
                client.put(&handle, 0, Data::Zeros(1 << 20), Check::None, token);
            }
        }
    }
    let waiting = std::thread::spawn(move || {
        // Of a channel with nothing under way: answered by the end of the connection.
        let end = slow_heard.recv_timeout(Duration::from_secs(30));
        (matches!(end, Ok(Event::Ended(_))), slow)
    });
    std::thread::sleep(Duration::from_millis(300));
    signal_children(far.server.pid(), Signal::SIGKILL);
    let killed = Instant::now();
    for (_, heard) in &lanes {
        let mut answers = 0;
        loop {
            match heard.recv_timeout(PROMPT) {
                Ok(Event::Answer { .. }) => answers += 1,
                Ok(Event::Room | Event::Unsent { .. }) => {}
                Ok(Event::Ended(_)) => break,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{answers} answers, no end")
                }
            }
        }
        assert_eq!(answers, asked);
    }
    let (ended, slow) = waiting.join().unwrap();
    assert!(ended && slow.call(&Request::Realpath(b".".to_vec())).is_err());
    assert!(killed.elapsed() < PROMPT);
    assert!(matches!(lane(&connection), Err(Error::Lost(_))));
}

/// Its receive buffers fill, ours do, and nothing moves any more.
#[test]
fn a_connection_whose_server_stands_still_can_be_left() {
    let Some(far) = far(&[]) else { return };
    let connection = far.host.connect().unwrap();
    let (client, heard) = lane(&connection).unwrap();
    let handle = open(&client, Path::new("/dev/null"), OpenFlags::WRITE);
    signal_children(far.server.pid(), Signal::SIGSTOP);
    client.put(&handle, 0, Data::Zeros(1 << 30), Check::None, 1);
    std::thread::sleep(Duration::from_millis(500));
    let left = Instant::now();
    connection.close();
    assert!(left.elapsed() < PROMPT);
    assert!(matches!(heard.recv().unwrap(), Event::Answer { token: 1, answer: Err(_) }));
    signal_children(far.server.pid(), Signal::SIGKILL);
}

/// Signals what serves the connections of a server, not the server itself.
fn signal_children(pid: u32, signal: Signal) {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    for child in children.split_whitespace() {
        let child = nix::unistd::Pid::from_raw(child.parse().unwrap());
        nix::sys::signal::kill(child, signal).unwrap();
    }
}

#[test]
fn closing_a_connection_answers_what_is_under_way() {
    let Some(far) = far(&[]) else { return };
    let connection = far.host.connect().unwrap();
    let (client, heard) = lane(&connection).unwrap();
    let handle = open(&client, Path::new("/dev/zero"), OpenFlags::READ);
    for token in 0..100 {
        client.get(&handle, 0, 250_000, Target::Discard, Check::None, token);
    }
    connection.close();
    let events: Vec<_> = heard
        .try_iter()
        .filter(|event| !matches!(event, Event::Room | Event::Unsent { .. }))
        .collect();
    assert_eq!(events.len(), 101);
    assert!(matches!(events.last(), Some(Event::Ended(_))));
}

/// Many logins at once: a host takes them a few at a time, and all of them in the end.
#[test]
fn twelve_connections_at_once_all_get_in() {
    let Some(far) = far(&["MaxStartups 10:100:10"]) else { return };
    let connections: Vec<Connection> = std::thread::scope(|scope| {
        let host = &far.host;
        let all: Vec<_> = (0..12).map(|_| scope.spawn(move || host.connect().unwrap())).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for connection in &connections {
        let (client, _heard) = lane(connection).unwrap();
        client.call(&Request::Stat(b"/".to_vec())).unwrap();
    }
}

//! A server that exchanges keys and then says nothing more that matters: a login that is limited as
//! a whole ends in time, one that is ssh(1)'s goes on.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use conf::client::Files;
use conf::{Client, LogLevel, Setting};
use engine::{Fd, Link};
use login::{CallOff, Error, Keyring, Log};
use proto::{Ident, KexConfig, Outbox, Role, Transport};
use stand_ins::{OneHostKey, key};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use wire::{Writer, msg};

/// ConnectTimeout.
const LIMIT: u64 = 2;
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Exchanges keys with whoever connects, and then answers nothing; with `chatter` it says IGNORE
/// five times a second. `over` ends it.
fn serve(stream: TcpStream, chatter: bool, over: &Receiver<()>) -> Result<(), engine::Error> {
    let mut link = Link::new(Fd::from(OwnedFd::from(stream)));
    let (mut outbox, deadline) = (Outbox::new(), Some(Instant::now() + PATIENCE));
    link.raw(&Ident::ours().to_wire());
    let host_key = Arc::new(OneHostKey(key(1)));
    let mut transport = Transport::server(Ident::ours(), KexConfig::default(), host_key);
    transport.start(&mut outbox)?;
    link.carry_out(&mut outbox, deadline)?;
    transport.identified(link.identification(Role::Client, deadline)?);
    while transport.session_id().is_none() || transport.is_exchanging() {
        let (seq, message) = link.message(deadline)?;
        let _ = transport.handle(seq, &message, &mut outbox)?;
        link.carry_out(&mut outbox, deadline)?;
    }
    while over.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
        if chatter {
            transport.send(Writer::message(msg::IGNORE).string(b"").take(), &mut outbox)?;
            link.carry_out(&mut outbox, deadline)?;
        }
    }
    Ok(())
}

/// Logs in to such a server within `limit` seconds by `log_in`, which gets `over` to end it.
fn meet(
    chatter: bool,
    limit: u64,
    log_in: impl FnOnce(&Client, &Log, std::sync::mpsc::Sender<()>),
) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (over, heard) = channel();
    let serving = thread::spawn(move || {
        // A client that has left is no failure.
        let _ = serve(listener.accept().unwrap().0, chatter, &heard);
    });
    let given = [
        ("Port", port.as_str()),
        ("UserKnownHostsFile", "/dev/null"),
        ("GlobalKnownHostsFile", "/dev/null"),
        ("StrictHostKeyChecking", "no"),
        ("IdentityFile", "none"),
        ("IdentityAgent", "none"),
        ("BatchMode", "yes"),
        ("ConnectTimeout", &limit.to_string()),
    ];
    let given = given.map(|(keyword, value)| Setting::given(keyword, value));
    let me = login::local_user().unwrap();
    let loaded =
        conf::client::load("127.0.0.1", &given, &Files::None, &login::supported(), &me).unwrap();
    let log = Log::new("test", LogLevel::Quiet, None).unwrap();
    log_in(&loaded.config, &log, over);
    serving.join().unwrap();
}

fn log_in_again(conf: &Client, log: &Log, off: &CallOff) -> Result<(), Error> {
    login::log_in_again(conf, log, &Keyring::new(), off).map(|_| ())
}

#[test]
fn a_login_that_nobody_needs_any_more_ends_at_once() {
    meet(false, 5 * PATIENCE.as_secs(), |conf, log, over| {
        let (off, called) = (CallOff::default(), CallOff::default());
        let later = off.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(LIMIT));
            later.call();
        });
        let began = Instant::now();
        let error = log_in_again(conf, log, &off).unwrap_err();
        assert!(matches!(error, Error::CalledOff) && began.elapsed() < PATIENCE, "{error}");
        // And one that has not begun does not begin.
        called.call();
        let error = log_in_again(conf, log, &called).unwrap_err();
        assert!(matches!(error, Error::CalledOff), "{error}");
        drop(over);
    });
}

#[test]
fn a_server_that_is_mute_or_chatters_after_the_key_exchange_is_given_up_in_time() {
    for chatter in [false, true] {
        meet(chatter, LIMIT, |conf, log, _over| {
            let began = Instant::now();
            let error = log_in_again(conf, log, &CallOff::default()).unwrap_err();
            assert!(matches!(error, Error::Late { .. }), "{error}");
            assert_eq!(error.to_string(), "127.0.0.1: no login within 2 s");
            assert!(error.hint().unwrap().contains("ConnectTimeout"));
            let took = began.elapsed();
            assert!(took >= Duration::from_secs(LIMIT) && took < PATIENCE / 2, "{took:?}");
        });
    }
}

#[test]
fn as_with_ssh_connect_timeout_is_over_once_keys_are_exchanged() {
    meet(true, LIMIT, |conf, log, over| {
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(LIMIT * 2));
            drop(over);
        });
        let began = Instant::now();
        let error = login::log_in(conf, log, None).map(|_| ()).unwrap_err();
        assert!(!matches!(error, Error::Late { .. }), "{error}");
        assert!(began.elapsed() >= Duration::from_secs(LIMIT * 2), "{error}");
    });
}

/// Effect of ConnectTimeout 0 (D6): none, as with ssh.
#[test]
fn a_limit_of_nothing_is_no_limit() {
    meet(false, 0, |conf, log, over| {
        drop(over);
        let error = log_in_again(conf, log, &CallOff::default()).unwrap_err();
        let left = matches!(&error, Error::Engine { why, .. } if !matches!(why, engine::Error::Timeout(_)));
        assert!(left, "the server left, it was not late: {error}");
    });
}

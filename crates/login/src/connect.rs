//! A connected descriptor: TCP at one of the host's addresses, a ProxyCommand, or a jump.
//!
//! ```text
//! address  name -> addresses, families taking turns
//! race     the addresses against each other, the first that answers wins
//! socket   a socket with everything set that must be before it connects
//! (here)   once more while ConnectionAttempts allow, then at FallbackPort
//! ```

use crate::address::{self, Found};
use crate::proxy::Proxy;
use crate::race::{self, Waits};
use crate::{CallOff, Error, Log, jump, socket};
use conf::Client;
use engine::Fd;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Between attempts, as ssh(1) waits.
const PAUSE: Duration = Duration::from_secs(1);

/// What a login runs over.
pub(crate) struct Connected {
    pub(crate) fd: Fd,
    pub(crate) proxy: Option<Proxy>,
    /// Where the server was found: Port, or FallbackPort.
    pub(crate) port: u16,
}

pub(crate) fn connect(
    conf: &Client,
    log: &Log,
    (deadline, off): (Option<Instant>, &CallOff),
) -> Result<Connected, Error> {
    if off.is_called() {
        return Err(Error::CalledOff);
    }
    if let Some(jump) = conf.jump()? {
        let (fd, proxy) = jump::start(jump, log)?;
        return Ok(Connected { fd, proxy: Some(proxy), port: conf.port });
    }
    match conf.proxy_command()? {
        Some(command) => {
            log.debug(1, format_args!("executing proxy command: {command}"));
            let (fd, proxy) = Proxy::start(&command).map_err(Error::Proxy)?;
            Ok(Connected { fd, proxy: Some(proxy), port: conf.port })
        }
        None => tcp(&Path { conf, log, deadline, off }, &address::resolve(conf)?),
    }
}

/// What all attempts have in common.
struct Path<'a> {
    conf: &'a Client,
    log: &'a Log,
    deadline: Option<Instant>,
    off: &'a CallOff,
}

/// Port, and FallbackPort where nobody can be reached at it.
fn tcp(path: &Path<'_>, found: &Found) -> Result<Connected, Error> {
    let Path { conf, log, .. } = path;
    let port = match attempts(path, found, conf.port) {
        Err(Error::Connect { why, .. }) if falls_back(path) => {
            let (host, port, next) = (&conf.host_name, conf.port, conf.fallback_port);
            log.info(format_args!("{host}: no server at port {port} ({why}), trying port {next}"));
            next
        }
        done => return done,
    };
    attempts(path, found, port)
}

fn falls_back(path: &Path<'_>) -> bool {
    let late = path.deadline.is_some_and(|at| Instant::now() >= at);
    path.conf.fallback
        && path.conf.fallback_port != path.conf.port
        && !late
        && !path.off.is_called()
}

/// ConnectionAttempts: all addresses again, a second later.
fn attempts(path: &Path<'_>, found: &Found, port: u16) -> Result<Connected, Error> {
    let late = || path.deadline.is_some_and(|at| Instant::now() + PAUSE >= at);
    let mut left = path.conf.connection_attempts.saturating_sub(1);
    loop {
        match attempt(path, found, port) {
            Err(Error::Connect { .. }) if left > 0 && !late() && !path.off.is_called() => {
                left -= 1;
                std::thread::sleep(PAUSE);
                path.log.debug(1, format_args!("trying again"));
            }
            done => return done,
        }
    }
}

fn attempt(path: &Path<'_>, found: &Found, port: u16) -> Result<Connected, Error> {
    let Path { conf, log, deadline, off } = path;
    let host = &conf.host_name;
    let open = |at: &SocketAddr| {
        log.debug(1, format_args!("connecting to {host} [{}] port {port}", at.ip()));
        socket::open(conf, at).inspect_err(|why| log.debug(1, format_args!("{}: {why}", at.ip())))
    };
    let failed = |at: &SocketAddr, why| {
        log.debug(1, format_args!("connect to {at}: {why}"));
        Error::Connect { host: host.clone(), port, why }
    };
    let (at, socket) = race::run(&found.at(port), (waits(conf, *deadline), off), open, failed)?;
    let kind = if sys::is_multipath(&socket) { " by MPTCP" } else { "" };
    log.debug(1, format_args!("connected to {} port {port}{kind}", at.ip()));
    Ok(Connected { fd: Fd::from(OwnedFd::from(socket)), proxy: None, port })
}

/// HappyEyes, HappyDelay.
fn waits(conf: &Client, deadline: Option<Instant>) -> Waits {
    let delay = conf.happy_eyes.then(|| Duration::from_millis(conf.happy_delay.into()));
    Waits { delay, deadline }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::configured;
    use conf::LogLevel;
    use std::net::TcpListener;

    /// Connects; what the log says of it, too.
    fn connect_to(host: &str, settings: &[String]) -> (Result<Connected, Error>, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let log = Log::new("test", LogLevel::Debug1, Some(&file)).unwrap();
        let conf = configured(host, settings);
        let deadline = conf.connect_limit().map(|limit| Instant::now() + limit);
        let connected = connect(&conf, &log, (deadline, &CallOff::default()));
        (connected, std::fs::read_to_string(file).unwrap())
    }

    fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    /// A port nobody listens at, which nobody else is given meanwhile.
    fn refused() -> (socket2::Socket, u16) {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        (socket, port)
    }

    /// Effect of Fallback and FallbackPort (D6).
    #[test]
    fn a_port_that_refuses_is_replaced_by_the_fallback_port() {
        let ((_listener, other), (_bound, port)) = (listener(), refused());
        let settings = [format!("Port={port}"), format!("FallbackPort={other}")];
        let (connected, log) = connect_to("127.0.0.1", &settings);
        assert!(matches!(connected, Err(Error::Connect { port: p, .. }) if p == port), "{log}");
        let settings = [settings.as_slice(), &["Fallback=yes".to_owned()]].concat();
        let (connected, log) = connect_to("127.0.0.1", &settings);
        assert_eq!(connected.unwrap().port, other);
        assert!(log.contains(&format!("trying port {other}")), "{log}");
    }

    #[test]
    fn the_fallback_port_is_not_tried_where_port_answers() {
        let ((_listener, port), (_bound, other)) = (listener(), refused());
        let fallback = ["Fallback=yes".to_owned(), format!("FallbackPort={other}")];
        let settings = [fallback.as_slice(), &[format!("Port={port}")]].concat();
        assert_eq!(connect_to("127.0.0.1", &settings).0.unwrap().port, port);
        let settings = [fallback.as_slice(), &[format!("Port={other}")]].concat();
        let (connected, log) = connect_to("127.0.0.1", &settings);
        assert!(connected.is_err() && !log.contains("trying port"), "{log}");
    }

    /// Effect of ConnectionAttempts (D6).
    #[test]
    fn a_refused_connection_is_tried_as_often_as_wanted() {
        let (_bound, port) = refused();
        for attempts in [1, 2] {
            let settings = [format!("Port={port}"), format!("ConnectionAttempts={attempts}")];
            let (connected, log) = connect_to("127.0.0.1", &settings);
            assert!(connected.is_err());
            assert_eq!(log.matches("connecting to").count(), attempts, "{log}");
        }
    }

    /// Effect of ConnectTimeout (D6): of all attempts together.
    #[test]
    fn no_attempt_is_made_when_the_time_is_over() {
        let (_bound, port) = refused();
        let settings =
            [format!("Port={port}"), "ConnectionAttempts=50".into(), "ConnectTimeout=2".into()];
        let began = Instant::now();
        let (connected, log) = connect_to("127.0.0.1", &settings);
        assert!(connected.is_err());
        assert!((1..4).contains(&log.matches("trying again").count()), "{log}");
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    /// Effect of HappyEyes and HappyDelay (D6); the race has tests of its own.
    #[test]
    fn attempts_race_with_the_wanted_delay_or_not_at_all() {
        let delay = |setting: &str| waits(&configured("h", &[setting]), None).delay;
        assert_eq!(delay("HappyEyes=yes"), Some(Duration::from_millis(250)));
        assert_eq!(delay("HappyDelay=50"), Some(Duration::from_millis(50)));
        assert_eq!(delay("HappyEyes=no"), None);
    }

    /// Effect of UseMPTCP (D6): where a kernel or a server has none, it is TCP.
    #[test]
    fn multipath_is_used_where_both_ends_can() {
        use socket2::{Domain, Protocol, Socket, Type};
        let can = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP));
        let (_plain, port) = listener();
        let multipath = || ["UseMPTCP=yes".to_owned(), format!("Port={port}")];
        let (connected, log) = connect_to("127.0.0.1", &multipath());
        assert!(connected.is_ok() && !log.contains("by MPTCP"), "{log}");
        let Ok(server) = can else { return };
        server.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        server.listen(1).unwrap();
        let port = server.local_addr().unwrap().as_socket().unwrap().port();
        for (setting, expected) in [("yes", true), ("no", false)] {
            let settings = [format!("UseMPTCP={setting}"), format!("Port={port}")];
            let (connected, log) = connect_to("127.0.0.1", &settings);
            assert!(connected.is_ok());
            assert_eq!(log.contains("by MPTCP"), expected, "{log}");
            server.accept().unwrap();
        }
    }
}

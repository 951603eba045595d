//! A connected descriptor: each address in turn, or a ProxyCommand.

use crate::proxy::Proxy;
use crate::{Error, Log};
use conf::{AddressFamily, Client};
use engine::Fd;
use engine::tune::{self, Buffers};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Socket buffers as configured.
pub fn buffers(conf: &Client) -> Buffers {
    let bytes = |size: conf::Size| size.0.and_then(|n| usize::try_from(n).ok());
    let default = Buffers::default();
    Buffers {
        receive: bytes(conf.tcp_rcv_buf),
        send: bytes(conf.tcp_snd_buf),
        most: bytes(conf.max_sock_buf).unwrap_or(default.most),
        window: bytes(conf.max_window)
            .map_or(default.window, |n| u32::try_from(n).unwrap_or(u32::MAX)),
    }
}

pub(crate) fn connect(
    conf: &Client,
    log: &Log,
    deadline: Option<Instant>,
) -> Result<(Fd, Option<Proxy>), Error> {
    match conf.proxy_command()? {
        Some(command) => {
            log.debug(1, format_args!("executing proxy command: {command}"));
            let (fd, proxy) = Proxy::start(&command).map_err(Error::Proxy)?;
            Ok((fd, Some(proxy)))
        }
        None => Ok((tcp(conf, log, deadline)?, None)),
    }
}

fn tcp(conf: &Client, log: &Log, deadline: Option<Instant>) -> Result<Fd, Error> {
    let host = &conf.host_name;
    let failed = |why| Error::Connect { host: host.clone(), port: conf.port, why };
    let mut last = None;
    for address in resolve(conf)? {
        log.debug(1, format_args!("connecting to {host} [{}] port {}", address.ip(), conf.port));
        let socket = open(conf, &address)?;
        let connected = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
            None => socket.connect(&address.into()),
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            Some(left) => socket.connect_timeout(&address.into(), left),
        };
        match connected {
            Ok(()) => return Ok(Fd::from(OwnedFd::from(socket))),
            Err(error) => {
                log.debug(1, format_args!("connect to {address}: {error}"));
                last = Some(error);
            }
        }
    }
    Err(failed(last.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into())))
}

fn resolve(conf: &Client) -> Result<Vec<SocketAddr>, Error> {
    let host = conf.host_name.as_str();
    let failed = |why| Error::Resolve { host: host.to_owned(), why };
    let found = (host, conf.port).to_socket_addrs().map_err(failed)?;
    let wanted: Vec<_> = found
        .filter(|address| match conf.address_family {
            AddressFamily::Any => true,
            AddressFamily::Inet => address.is_ipv4(),
            AddressFamily::Inet6 => address.is_ipv6(),
        })
        .collect();
    if wanted.is_empty() {
        return Err(failed(io::Error::other("no address of the wanted family")));
    }
    Ok(wanted)
}

/// A socket with everything set that must be before it connects.
fn open(conf: &Client, address: &SocketAddr) -> Result<Socket, Error> {
    let option = |option| move |why| Error::Option { option, why };
    let domain = Domain::for_address(*address);
    let socket =
        Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).map_err(option("socket"))?;
    if let Some(local) = &conf.bind_address {
        let found = (local.as_str(), 0).to_socket_addrs().map_err(option("BindAddress"))?;
        let mut same = found.filter(|a| a.is_ipv4() == address.is_ipv4());
        let local = same.next().ok_or(io::ErrorKind::AddrNotAvailable.into());
        let local = SockAddr::from(local.map_err(option("BindAddress"))?);
        socket.bind(&local).map_err(option("BindAddress"))?;
    }
    if conf.tcp_keep_alive {
        socket.set_keepalive(true).map_err(option("TCPKeepAlive"))?;
    }
    tune::prepare(&socket, &buffers(conf), conf.congestion_control.as_deref())
        .map_err(|(keyword, why)| Error::Option { option: keyword, why })?;
    Ok(socket)
}

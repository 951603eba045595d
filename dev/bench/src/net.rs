//! Net: where the two ends of a turn are, and how a command is started at each.
//!
//! An emulated link is made anew for each turn: the kernel remembers paths per namespace, and no
//! contender shall profit from what another one learnt. It also gives each turn a verdict of its
//! own on whether the emulator kept up.

use crate::cases::Path;
use crate::stop;
use anyhow::{Context, Result, ensure};
use linkemu::{Link, Side, Spec, Verdict};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command};
use std::time::Duration;

/// What "raised" buffers are.
const RAISED: u64 = 256 << 20;

/// A place for a client and a place for a server.
pub(crate) enum Net {
    Loopback,
    Emulated(Box<Link>),
}

/// One of the two places.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Client,
    Server,
}

impl Net {
    /// Loopback, or the emulated link of a case with the losses of `seed`.
    pub(crate) fn up(path: Option<Path>, seed: u64) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Loopback) };
        let spec = Spec { seed, ..spec(path) };
        let link = Link::up(spec).context("the emulated link")?;
        if let Some(kib) = path.server_rmem_kib {
            cap_receive_buffers(&link, kib).context("tcp_rmem of the server")?;
        }
        Ok(Self::Emulated(Box::new(link)))
    }

    /// An address at the server's place with a port nobody has now.
    pub(crate) fn free(&self) -> Result<SocketAddr> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Emulated(link) => link.spec().addresses[1],
        };
        Ok(SocketAddr::new(IpAddr::V4(address), port))
    }

    /// Starts a command at one place, unless a signal has come.
    pub(crate) fn spawn(&self, place: Place, command: &mut Command) -> Result<Child> {
        let _permit = stop::permit()?;
        let child = match (self, place) {
            (Self::Loopback, _) => command.spawn(),
            (Self::Emulated(link), Place::Client) => link.spawn_in(Side::A, command),
            (Self::Emulated(link), Place::Server) => link.spawn_in(Side::B, command),
        };
        child.with_context(|| format!("{command:?}"))
    }

    /// Ends it; says why nothing measured over it may be used, if so.
    pub(crate) fn down(self) -> Option<String> {
        let Self::Emulated(link) = self else { return None };
        let spec = link.spec().clone();
        match link.down().verdict(&spec) {
            Verdict::Sound => None,
            Verdict::Refused(why) => Some(why.join("; ")),
        }
    }
}

/// Why there can be no emulated links here, if so: without root, most often.
pub(crate) fn lacking() -> Option<String> {
    match Link::up(Spec::default()) {
        Ok(_) => None,
        Err(why @ (linkemu::Error::NotPermitted | linkemu::Error::NoTun)) => Some(why.to_string()),
        // Whatever else it is may not be there the next time.
        Err(_) => None,
    }
}

/// What autotuning may give the receive buffers of the server's place.
fn cap_receive_buffers(link: &Link, kib: u32) -> Result<()> {
    let line = format!("4096 131072 {}", u64::from(kib) << 10);
    let mut command = Command::new("sh");
    command.args(["-c", "echo \"$0\" >/proc/sys/net/ipv4/tcp_rmem", &line]);
    let done = link.spawn_in(Side::B, &mut command)?.wait()?;
    ensure!(done.success(), "{done}");
    Ok(())
}

fn spec(path: Path) -> Spec {
    let raised = path.raised.then_some(RAISED);
    let rate = Some(u64::from(path.mbit) * 1_000_000);
    Spec {
        rtt: Duration::from_millis(path.rtt_ms.into()),
        rate,
        rate_back: rate,
        loss: path.loss,
        queue: Some(path.queue_mib << 20),
        rmem: raised,
        wmem: raised,
        cc: Some(path.congestion.to_owned()),
        ..Spec::default()
    }
}

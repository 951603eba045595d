//! Loopback: one of our own, where every contender gets the same congestion control, whatever this
//! machine's default is. With bbr, which paces, loopback costs a timer interrupt for every 64 KiB
//! on top: most of all for who has the least other work.

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::process::Command;

const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// What contenders over loopback get.
#[derive(Debug, clap::Args)]
pub(crate) struct Loopback {
    /// Congestion control over loopback; who may not choose gets the system's
    #[arg(long = "congestion", value_name = "NAME", default_value = "cubic")]
    congestion: String,
}

impl Loopback {
    /// Moves this process, while it has one thread, to a network namespace of its own, unless all
    /// is as wanted here.
    pub(crate) fn enter(&self) {
        if current() == self.congestion {
            return;
        }
        if let Err(why) = self.make() {
            eprintln!(
                "lhbench: warning: loopback with {}, not {}: {why:#}",
                current(),
                self.congestion
            );
        }
    }

    fn make(&self) -> Result<()> {
        // Before anything is changed: what cannot be had leaves this process where it was.
        let can = "/proc/sys/net/ipv4/tcp_available_congestion_control";
        let can = fs::read_to_string(can).context("what the kernel has")?;
        ensure!(can.split_whitespace().any(|name| name == self.congestion), "the kernel has {can}");
        ensure!(Command::new("ip").arg("-V").output().is_ok(), "no ip(8)");
        unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("ip")?;
        ensure!(up.success(), "ip link set lo up: {up}");
        fs::write(SYSCTL, &self.congestion).context(SYSCTL)
    }
}

/// What connections of this process get.
pub(crate) fn current() -> String {
    fs::read_to_string(SYSCTL).map(|name| name.trim().to_owned()).unwrap_or_default()
}

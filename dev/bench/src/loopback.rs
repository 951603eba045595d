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
pub(crate) struct Options {
    /// Congestion control over loopback; without root it is the system's
    #[arg(long = "congestion", value_name = "NAME", default_value = "cubic")]
    name: String,
}

impl Options {
    /// Moves this process, while it has one thread, to a network namespace of its own.
    pub(crate) fn enter(&self) -> Result<()> {
        if !nix::unistd::geteuid().is_root() {
            if current() != self.name {
                eprintln!("lhbench: warning: loopback with {}: only root can choose", current());
            }
            return Ok(());
        }
        unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
        let up = Command::new("ip").args(["link", "set", "lo", "up"]).status().context("ip")?;
        ensure!(up.success(), "ip link set lo up: {up}");
        fs::write(SYSCTL, &self.name).with_context(|| format!("congestion control {}", self.name))
    }
}

/// What connections of this process get.
pub(crate) fn current() -> String {
    fs::read_to_string(SYSCTL).map(|name| name.trim().to_owned()).unwrap_or_default()
}

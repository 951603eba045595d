//! The command line.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use linkemu::Spec;
use linkemu::spec::{parse_rate, parse_share, parse_size, parse_time};

/// An emulated network link between two namespaces, with the kernel's own TCP at both ends.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Run a command at one end of a link that exists as long as the command
    Run {
        #[command(flatten)]
        link: LinkOptions,
        /// Shell command to run meanwhile at the other end (a server); ended afterwards
        #[arg(long)]
        peer: Option<String>,
        /// Write the counters as JSON to this file (- for standard output)
        #[arg(long)]
        json: Option<PathBuf>,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Bring a link up and leave it so
    Up {
        /// Its name
        name: String,
        #[command(flatten)]
        link: LinkOptions,
    },
    /// What `up` starts in the background
    #[command(hide = true)]
    Hold {
        name: String,
        #[command(flatten)]
        link: LinkOptions,
    },
    /// Take a link down and print its counters
    Down {
        /// Its name
        name: String,
        /// Write the counters as JSON to this file (- for standard output)
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Run a command at one end of a link that is up
    Exec {
        /// The link's name
        name: String,
        /// Which end
        end: EndName,
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Measure what the emulator sustains on this machine, with TCP streams at both ends
    Capacity {
        /// Seconds per measurement
        #[arg(long, default_value_t = 4)]
        seconds: u64,
        /// Also find the highest of some rates that it sustains at this round-trip time
        #[arg(long, value_parser = parse_time, default_value = "100ms")]
        rtt: Duration,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum EndName {
    A,
    B,
}

#[derive(Debug, Args)]
pub(crate) struct LinkOptions {
    /// Round-trip time; each direction has half
    #[arg(long, value_parser = parse_time, default_value = "0")]
    rtt: Duration,
    /// Bits per second, from a to b, on IP packets
    #[arg(long, value_parser = parse_rate, default_value = "unlimited")]
    rate: u64,
    /// Bits per second from b to a [default: as --rate]
    #[arg(long, value_parser = parse_rate)]
    rate_back: Option<u64>,
    /// Bytes that may wait for each bottleneck [default: rate x rtt, at least 1 MiB]
    #[arg(long, value_parser = parse_size)]
    queue: Option<u64>,
    /// Share of the segments that are lost, each direction
    #[arg(long, value_parser = parse_share, default_value = "0")]
    loss: f64,
    /// Up to this much more delay each direction, without reordering
    #[arg(long, value_parser = parse_time, default_value = "0")]
    jitter: Duration,
    /// Seed of losses and jitter
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// MTU of both devices
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Whether the kernel hands over TCP super-packets (a fraction of the CPU time)
    #[arg(long, action = ArgAction::Set, value_parser = parse_switch, default_value = "on")]
    gso: bool,
    /// One thread for both directions, or one each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    threads: u8,
    /// Addresses of a and b
    #[arg(long, value_delimiter = ',', num_args = 2, default_values = ["10.99.0.1", "10.99.0.2"])]
    addresses: Vec<Ipv4Addr>,
    /// Largest TCP receive buffer in both namespaces
    #[arg(long, value_parser = parse_size)]
    rmem: Option<u64>,
    /// Largest TCP send buffer in both namespaces
    #[arg(long, value_parser = parse_size)]
    wmem: Option<u64>,
    /// Congestion control in both namespaces
    #[arg(long)]
    cc: Option<String>,
}

impl LinkOptions {
    /// The link they describe.
    pub(crate) fn spec(&self) -> Spec {
        let rate = |rate: u64| (rate > 0).then_some(rate);
        let addresses = match self.addresses[..] {
            [a, b] => [a, b],
            _ => Spec::default().addresses,
        };
        Spec {
            rtt: self.rtt,
            jitter: self.jitter,
            rate: rate(self.rate),
            rate_back: rate(self.rate_back.unwrap_or(self.rate)),
            queue: self.queue,
            loss: self.loss,
            seed: self.seed,
            mtu: self.mtu,
            gso: self.gso,
            threads: self.threads,
            addresses,
            rmem: self.rmem,
            wmem: self.wmem,
            cc: self.cc.clone(),
        }
    }
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

//! What a link is to be like, and how its numbers are written on a command line.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use serde::Serialize;

use crate::link::Path;

/// A link: both directions and the namespaces at its ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spec {
    /// Round-trip time; each direction has half.
    pub rtt: Duration,
    /// Each direction adds 0 to this much, evenly distributed, without reordering.
    pub jitter: Duration,
    /// Bits per second from a to b; `None` is unlimited.
    pub rate: Option<u64>,
    /// Bits per second from b to a.
    pub rate_back: Option<u64>,
    /// Bytes that may wait for each bottleneck; `None` is one bandwidth-delay product.
    pub queue: Option<u64>,
    /// Probability that a segment is lost, in each direction.
    pub loss: f64,
    /// Seed of losses and jitter.
    pub seed: u64,
    /// MTU of both devices.
    pub mtu: u16,
    /// Whether TCP super-packets cross whole (as they do; losses and limits count segments).
    pub gso: bool,
    /// 1 for both directions on one thread, 2 for a thread each.
    pub threads: u8,
    /// IPv4 addresses of a and b.
    pub addresses: [Ipv4Addr; 2],
    /// Largest TCP receive buffer in both namespaces (`tcp_rmem[2]`).
    pub rmem: Option<u64>,
    /// Largest TCP send buffer in both namespaces (`tcp_wmem[2]`).
    pub wmem: Option<u64>,
    /// Congestion control of both namespaces.
    pub cc: Option<String>,
}

/// IPv6 addresses of a and b, a /64 of their own.
pub const ADDRESSES_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd10, 0x99, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd10, 0x99, 0, 0, 0, 0, 0, 2)];

/// The smallest default queue: a few super-packets, as senders emit them in bursts.
const MIN_QUEUE: u64 = 1 << 20;

impl Default for Spec {
    fn default() -> Self {
        Self {
            rtt: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            rate_back: None,
            queue: None,
            loss: 0.0,
            seed: 1,
            mtu: 1500,
            gso: true,
            threads: 1,
            addresses: [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)],
            rmem: None,
            wmem: None,
            cc: None,
        }
    }
}

impl Spec {
    /// The two directions, a to b first.
    pub fn paths(&self) -> [Path; 2] {
        [self.path(self.rate), self.path(self.rate_back)]
    }

    fn path(&self, rate: Option<u64>) -> Path {
        let rtt = nanos(self.rtt);
        let product = u128::from(rate.unwrap_or(0)) * u128::from(rtt) / 8_000_000_000;
        Path {
            rate,
            delay: rtt / 2,
            jitter: nanos(self.jitter),
            queue: self.queue.unwrap_or((product as u64).max(MIN_QUEUE)),
            loss: self.loss,
            piece: (rtt / 20).clamp(50_000, 500_000),
        }
    }

    /// How long the emulator sleeps at least between two rounds of work: fewer wake-ups cost
    /// less CPU, and half a percent of the round trip goes unnoticed.
    pub fn quantum(&self) -> Duration {
        let quantum = (self.rtt / 200).min(Duration::from_micros(500));
        if quantum < Duration::from_micros(20) { Duration::ZERO } else { quantum }
    }

    /// Whether there is a schedule at all: without delay and rate, everything is due at once.
    pub fn is_timed(&self) -> bool {
        !self.rtt.is_zero() || self.rate.is_some() || self.rate_back.is_some()
    }

    /// How late packets may be on average before figures are refused: a window's throughput
    /// is off by as much as the round trip is, a fortieth.
    pub fn mean_lateness_limit(&self) -> Duration {
        (self.rtt / 40).max(Duration::from_micros(200))
    }

    /// How late the last percent of packets may be. What is late comes in order and all at once
    /// when a hypervisor lets the machine run again: less than half a round trip of that neither
    /// looks like a loss nor ends a window.
    pub fn lateness_limit(&self) -> Duration {
        (self.rtt * 2 / 5).max(Duration::from_millis(2))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

/// A unit's name and what it multiplies by.
type Unit = (&'static str, f64);

const TIMES: &[Unit] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const RATES: &[Unit] = &[
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    ("k", 1e3),
    ("m", 1e6),
    ("g", 1e9),
];
const SIZES: &[Unit] = &[
    ("b", 1.0),
    ("", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("k", 1024.0),
    ("m", 1048576.0),
    ("g", 1073741824.0),
    ("kib", 1024.0),
    ("mib", 1048576.0),
    ("gib", 1073741824.0),
];
const SHARES: &[Unit] = &[("%", 0.01), ("", 1.0)];

/// `100ms`, `1.5s`, `250us`, `0`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let nanos = number(text, TIMES, "a time such as 100ms, 250us or 1.5s")?;
    Ok(Duration::from_nanos(nanos as u64))
}

/// `1gbit`, `500mbit`; `unlimited` is 0.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    if text == "unlimited" {
        return Ok(0);
    }
    let rate = number(text, RATES, "a rate such as 1gbit, 500mbit or unlimited")? as u64;
    if rate < 1000 { Err("less than 1 kbit/s".to_owned()) } else { Ok(rate) }
}

/// `32MB` (decimal), `32MiB` or `32M` (binary), plain bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    Ok(number(text, SIZES, "a size such as 32MB, 256MiB or 65536")? as u64)
}

/// `1%`, `0.01`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let share = number(text, SHARES, "a share such as 0.01 or 1%")?;
    if share <= 1.0 { Ok(share) } else { Err("more than everything".to_owned()) }
}

fn number(text: &str, units: &[Unit], expected: &str) -> Result<f64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (digits.parse::<f64>(), factor) {
        (Ok(value), Some(factor)) if (value * factor) < 1e18 => Ok(value * factor),
        _ => Err(format!("expected {expected}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        assert_eq!(parse_time("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_rate("1gbit"), Ok(1_000_000_000));
        assert_eq!(parse_rate("2.5G"), Ok(2_500_000_000));
        assert_eq!(parse_size("32MB"), Ok(32_000_000));
        assert_eq!(parse_size("32MiB"), Ok(32 << 20));
        assert_eq!(parse_size("65536"), Ok(65536));
        assert_eq!(parse_share("1%"), Ok(0.01));
        assert_eq!(parse_share("0"), Ok(0.0));
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        for text in ["", "fast", "10", "-1ms", "1.2.3s", "1e9s", "99999999999s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_rate("1").unwrap_err().contains("1gbit"));
        assert!(parse_share("101%").is_err());
    }

    #[test]
    fn the_default_queue_is_one_bandwidth_delay_product() {
        let rate = Some(1_000_000_000);
        let spec = Spec { rtt: Duration::from_millis(100), rate, ..Spec::default() };
        assert_eq!(spec.paths()[0].queue, 12_500_000);
        assert_eq!(spec.paths()[1].queue, MIN_QUEUE);
    }
}

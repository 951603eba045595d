//! `from="..."`: the addresses and names a key may be used from (ssh_config(5), PATTERNS, and
//! CIDR address/masklen).

use crate::pattern::{self, Match};
use std::net::IpAddr;

/// A checked pattern list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromList(Vec<Item>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    negated: bool,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Network(IpAddr, u8),
    /// Matched against the host name and against the address as text; lower case.
    Name(String),
}

impl FromList {
    /// Parses the value of `from=`; `None` when it has an empty pattern or a network whose address
    /// has bits beyond its mask.
    pub(super) fn parse(value: &str) -> Option<Self> {
        value.split(',').map(Item::parse).collect::<Option<_>>().map(Self)
    }

    /// Whether a client at `ip`, by name `hostname` if one is known, may use the key. A negated
    /// pattern that matches either turns the whole list off.
    pub fn matches(&self, ip: IpAddr, hostname: Option<&str>) -> bool {
        let ip = ip.to_canonical();
        let address = ip.to_string();
        let name = hostname.map_or_else(|| address.clone(), str::to_ascii_lowercase);
        let mut found = Match::No;
        for item in &self.0 {
            let matches = match &item.pattern {
                Pattern::Network(network, len) => in_network(ip, *network, *len),
                Pattern::Name(text) => {
                    pattern::matches(text, &name) || pattern::matches(text, &address)
                }
            };
            match (matches, item.negated) {
                (true, true) => return false,
                (true, false) => found = Match::Yes,
                (false, _) => {}
            }
        }
        found == Match::Yes
    }
}

impl Item {
    fn parse(text: &str) -> Option<Self> {
        let (negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let pattern = match text.split_once('/') {
            Some((address, len)) => network(address, len)?,
            None => match text.parse::<IpAddr>() {
                Ok(ip) => Pattern::Network(ip.to_canonical(), bits(ip.to_canonical())),
                Err(_) if text.is_empty() => return None,
                Err(_) => Pattern::Name(text.to_ascii_lowercase()),
            },
        };
        Some(Self { negated, pattern })
    }
}

fn network(address: &str, len: &str) -> Option<Pattern> {
    let ip: IpAddr = address.parse().ok()?;
    let len: u8 = len.parse().ok()?;
    let host_bits = bits(ip).checked_sub(len)?;
    let clean = shifted(ip, host_bits).checked_shl(u32::from(host_bits)).unwrap_or(0) == number(ip);
    clean.then_some(Pattern::Network(ip, len))
}

fn in_network(ip: IpAddr, network: IpAddr, len: u8) -> bool {
    let host_bits = bits(network).saturating_sub(len);
    ip.is_ipv4() == network.is_ipv4() && shifted(ip, host_bits) == shifted(network, host_bits)
}

/// The address without its lowest `host_bits` bits.
fn shifted(ip: IpAddr, host_bits: u8) -> u128 {
    number(ip).checked_shr(u32::from(host_bits)).unwrap_or(0)
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_lists_by_address_network_and_name() {
        for (list, ip, name, expected) in [
            ("192.0.2.7", "192.0.2.7", None, true),
            ("192.0.2.7", "192.0.2.70", None, false),
            ("192.0.2.0/24", "192.0.2.255", None, true),
            ("192.0.2.0/24", "192.0.3.0", None, false),
            ("0.0.0.0/0", "203.0.113.9", None, true),
            ("0.0.0.0/0", "2001:db8::1", None, false),
            ("::/0", "2001:db8::1", None, true),
            ("::/0", "203.0.113.9", None, false),
            ("2001:db8::/33", "2001:db8:7fff::1", None, true),
            ("2001:db8::/33", "2001:db8:8000::1", None, false),
            ("2001:DB8:0::1", "2001:db8::1", None, true),
            ("192.0.2.0/24", "::ffff:192.0.2.9", None, true),
            ("192.0.2.*", "192.0.2.9", None, true),
            ("192.0.2.?", "192.0.2.10", None, false),
            ("*.example.org", "192.0.2.9", Some("A.Example.Org"), true),
            ("*.example.org", "192.0.2.9", None, false),
            ("192.0.2.0/24,!192.0.2.9", "192.0.2.9", None, false),
            ("!192.0.2.9,192.0.2.0/24", "192.0.2.8", None, true),
            ("!192.0.2.0/24", "203.0.113.9", None, false),
            ("192.0.2.0/24,!*.bad.org", "192.0.2.9", Some("x.bad.org"), false),
            ("*,!192.0.2.9", "192.0.2.9", Some("good.org"), false),
        ] {
            let parsed = FromList::parse(list).expect(list);
            assert_eq!(parsed.matches(ip.parse().expect("ip"), name), expected, "{list} {ip}");
        }
    }

    #[test]
    fn networks_that_contradict_themselves_are_refused() {
        for bad in ["192.0.2.1/24", "192.0.2.0/33", "::1/64", "::/129", "a.org/8", "", "a,,b", "!"]
        {
            assert_eq!(FromList::parse(bad), None, "{bad}");
        }
    }
}

//! Lists of addresses in Match lines: addresses, networks as address/masklen, patterns with `*` and
//! `?`, each perhaps with `!` before it (sshd_config(5), Match).

use crate::pattern::matches_pattern;
use std::net::IpAddr;

/// Whether the list can be used.
///
/// # Errors
/// An entry that is empty, a network with a mask that is too long or with bits beyond it, and what
/// can only be meant as an address and is none.
pub(crate) fn check(list: &str) -> Result<(), String> {
    list.split(',').try_for_each(|item| Entry::read(positive(item).1).map(drop))
}

/// Whether the list names `address`. A negated entry that does decides, whatever its place.
pub(crate) fn matches(address: IpAddr, list: &str) -> bool {
    let mut found = false;
    for item in list.split(',') {
        let (wanted, text) = positive(item);
        if Entry::read(text).is_ok_and(|entry| entry.holds(address)) {
            if !wanted {
                return false;
            }
            found = true;
        }
    }
    found
}

fn positive(item: &str) -> (bool, &str) {
    item.strip_prefix('!').map_or((true, item), |item| (false, item))
}

enum Entry<'a> {
    /// An address, and how many bits of it count.
    Network(IpAddr, u32),
    Pattern(&'a str),
}

impl<'a> Entry<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        let Ok(ip) = address.parse::<IpAddr>() else {
            // OpenSSH reads `10/8` as 10.0.0.0/8; a pattern of that form would match nothing.
            let numeric = text.starts_with(|c: char| c.is_ascii_digit()) || mask.is_some();
            return match numeric && !text.contains(['*', '?']) || text.is_empty() {
                true => Err(format!("'{text}' is not an address or network written in full")),
                false => Ok(Self::Pattern(text)),
            };
        };
        let bits = match mask {
            None => Some(width(ip)),
            Some(mask) => crate::field::decimal(mask).and_then(|bits| u32::try_from(bits).ok()),
        };
        match bits.filter(|bits| *bits <= width(ip)) {
            Some(bits) if beyond(ip, bits) == 0 => Ok(Self::Network(ip, bits)),
            Some(_) => Err(format!("'{text}' has bits beyond its mask")),
            None => Err(format!("'{text}' has a mask that no address has")),
        }
    }

    fn holds(&self, address: IpAddr) -> bool {
        match *self {
            Self::Network(network, bits) => {
                network.is_ipv4() == address.is_ipv4()
                    && number(network) == number(address) - beyond(address, bits)
            }
            Self::Pattern(pattern) => matches_pattern(&address.to_string(), pattern),
        }
    }
}

fn width(ip: IpAddr) -> u32 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The part of an address that a network of `bits` bits leaves open.
fn beyond(ip: IpAddr, bits: u32) -> u128 {
    let open = width(ip).saturating_sub(bits);
    let mask = u128::MAX.checked_shl(open).map_or(u128::MAX, |kept| !kept);
    number(ip) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_networks_and_patterns_match_as_in_sshd() {
        let cases = [
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("192.0.2.7", "192.0.2.0/24", true),
            ("192.0.3.7", "192.0.2.0/24", false),
            ("192.0.2.7", "0.0.0.0/0", true),
            ("192.0.2.7", "::/0", false),
            ("2001:db8::1", "2001:db8::/32", true),
            ("2001:db8::1", "2001:0db8:0::1", true),
            ("2001:db9::1", "2001:db8::/32", false),
            ("192.0.2.7", "192.0.*", true),
            ("192.0.2.7", "192.0.2.?,!192.0.2.7", false),
            ("192.0.2.7", "!192.0.2.7,192.0.2.0/24", false),
            ("192.0.2.7", "!192.0.2.0/25,192.0.2.0/24", false),
            ("192.0.2.200", "!192.0.2.0/25,192.0.2.0/24", true),
            ("192.0.2.7", "!10.0.0.0/8", false),
            ("192.0.2.7", "host.example", false),
        ];
        for (address, list, want) in cases {
            check(list).unwrap();
            assert_eq!(matches(address.parse().unwrap(), list), want, "{address} {list}");
        }
    }

    #[test]
    fn entries_that_cannot_be_meant_are_errors() {
        let bad = ["", "10.0.0.0/8,", "10/8", "10.1", "10.0.0.0/33", "10.0.0.1/8", "::1/129"];
        bad.iter().for_each(|list| assert!(check(list).is_err(), "{list}"));
        for bad in ["!", "::1/64", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/+8", "2001:db8/32", "x/8"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}

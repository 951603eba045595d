//! The addresses of a host in the order in which they are tried (RFC 8305 section 4).
//!
//! The resolver sorts by RFC 6724; here families take turns, so that one family that leads nowhere
//! costs one delay and not one per address.

use crate::Error;
use conf::{AddressFamily, Client};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// At least one address.
#[derive(Debug)]
pub(crate) struct Found(Vec<SocketAddr>);

impl Found {
    /// The addresses, with this port.
    pub(crate) fn at(&self, port: u16) -> Vec<SocketAddr> {
        let mut addresses = self.0.clone();
        addresses.iter_mut().for_each(|address| address.set_port(port));
        addresses
    }
}

/// HostName's addresses of the wanted family.
pub(crate) fn resolve(conf: &Client) -> Result<Found, Error> {
    let host = conf.host_name.as_str();
    let failed = |why| Error::Resolve { host: host.to_owned(), why };
    let found = (host, conf.port).to_socket_addrs().map_err(failed)?;
    let wanted = of_family(found, conf.address_family);
    if wanted.is_empty() {
        return Err(failed(io::Error::other("no address of the wanted family")));
    }
    Ok(Found(interleave(wanted)))
}

fn of_family(found: impl Iterator<Item = SocketAddr>, family: AddressFamily) -> Vec<SocketAddr> {
    let wanted = |address: &SocketAddr| match family {
        AddressFamily::Any => true,
        AddressFamily::Inet => address.is_ipv4(),
        AddressFamily::Inet6 => address.is_ipv6(),
    };
    found.filter(wanted).collect()
}

/// Families in turn, beginning with that of the first address; the order within each stays.
fn interleave(sorted: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = sorted.first().is_some_and(SocketAddr::is_ipv6);
    let count = sorted.len();
    let (first, second): (Vec<_>, Vec<_>) =
        sorted.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let pairs = (0..count).flat_map(|_| [first.next(), second.next()]);
    pairs.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<SocketAddr> {
        let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 22);
        text.split_whitespace().map(address).collect()
    }

    #[test]
    fn families_take_turns_and_the_resolvers_order_stays() {
        for (sorted, tried) in [
            ("::1 ::2 ::3 10.0.0.1 10.0.0.2", "::1 10.0.0.1 ::2 10.0.0.2 ::3"),
            ("10.0.0.1 ::1 ::2", "10.0.0.1 ::1 ::2"),
            ("10.0.0.1 10.0.0.2", "10.0.0.1 10.0.0.2"),
            ("::1", "::1"),
            ("", ""),
        ] {
            assert_eq!(interleave(parse(sorted)), parse(tried), "{sorted}");
        }
    }

    /// Effect of AddressFamily (D6).
    #[test]
    fn only_addresses_of_the_wanted_family_are_tried() {
        for (family, left) in [
            (AddressFamily::Any, "::1 10.0.0.1"),
            (AddressFamily::Inet, "10.0.0.1"),
            (AddressFamily::Inet6, "::1"),
        ] {
            assert_eq!(of_family(parse("::1 10.0.0.1").into_iter(), family), parse(left));
        }
    }
}

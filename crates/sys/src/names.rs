//! Names of addresses (getnameinfo(3)).

use std::ffi::CStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Longest name with its end, as in OpenSSH (NI_MAXHOST).
const MAX_NAME: usize = 1025;

/// The name of an address, if looking up the name leads back to the address: only then does it
/// say more than whoever runs the reverse zone wants it to.
pub fn verified_host_name(ip: IpAddr) -> Option<String> {
    let name = host_name(ip)?.to_ascii_lowercase();
    // A name that looks like an address would match patterns meant for addresses.
    if name.parse::<IpAddr>().is_ok() {
        return None;
    }
    let mut addresses = (name.as_str(), 0).to_socket_addrs().ok()?;
    addresses.any(|address| address.ip().to_canonical() == ip.to_canonical()).then_some(name)
}

fn host_name(ip: IpAddr) -> Option<String> {
    let address = socket2::SockAddr::from(SocketAddr::new(ip, 0));
    let mut name = [0; MAX_NAME];
    let room = libc::socklen_t::try_from(name.len()).ok()?;
    // SAFETY: `address` is valid for its own length and `name` for `room` bytes; both live
    // through the call, which writes at most `room` bytes. No service is asked for.
    let result = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr(),
            room,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if result != 0 {
        return None;
    }
    let bytes = name.map(|c| c.to_ne_bytes()[0]);
    Some(CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_localhost_where_hosts_says_so() {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let first = hosts.lines().find(|line| line.starts_with("127.0.0.1"));
        if first.is_some_and(|line| line.split_whitespace().nth(1) == Some("localhost")) {
            let name = verified_host_name("127.0.0.1".parse().unwrap());
            assert_eq!(name.as_deref(), Some("localhost"));
        }
    }

    #[test]
    fn an_address_for_documentation_has_no_name() {
        assert_eq!(verified_host_name("192.0.2.1".parse().unwrap()), None);
    }
}

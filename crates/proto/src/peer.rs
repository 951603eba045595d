//! What a peer's identification tells about it: a row per product we know something about.

use crate::Ident;
use crate::window::Rule;

/// A product with limits or habits of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// OpenSSH and what is built on it.
    OpenSsh,
    /// Ourselves.
    Longhaul,
    /// Dropbear.
    Dropbear,
    /// PuTTY, plink, psftp.
    Putty,
    /// One we know nothing about.
    Other,
}

/// How our own software version begins.
const OURS: &str = "longhaul_";

/// Software version prefixes, longest first.
const PRODUCTS: &[(&str, Product)] = &[
    ("OpenSSH_for_Windows_", Product::OpenSsh),
    ("OpenSSH_", Product::OpenSsh),
    (OURS, Product::Longhaul),
    ("dropbear_", Product::Dropbear),
    ("PuTTY_Release_", Product::Putty),
    ("PuTTY_", Product::Putty),
];

/// A peer as its identification describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    ident: Ident,
    product: Product,
    version: (u32, u32),
    hpn: bool,
}

impl Peer {
    /// Reads the software version.
    pub fn new(ident: Ident) -> Self {
        let software = ident.software();
        // One of us may have a comment of that name behind OpenSSH's.
        let ours = software.split(' ').find(|word| word.starts_with(OURS));
        let software = ours.unwrap_or(software);
        let known = PRODUCTS.iter().find_map(|(prefix, product)| {
            software.strip_prefix(prefix).map(|version| (*product, parse_version(version)))
        });
        let (product, version) = known.unwrap_or((Product::Other, (0, 0)));
        let hpn = product == Product::OpenSsh && software.to_ascii_lowercase().contains("hpn");
        Self { product, version, hpn, ident }
    }

    /// Its identification.
    pub fn ident(&self) -> &Ident {
        &self.ident
    }

    /// Whose program it is.
    pub fn product(&self) -> Product {
        self.product
    }

    /// OpenSSH of at least this version, HPN-SSH included.
    pub fn is_openssh_from(&self, major: u32, minor: u32) -> bool {
        self.product == Product::OpenSsh && self.version >= (major, minor)
    }

    /// HPN-SSH.
    pub fn is_hpn(&self) -> bool {
        self.hpn
    }

    /// One of us.
    pub fn is_longhaul(&self) -> bool {
        self.product == Product::Longhaul
    }

    /// Whether it knows `eow@openssh.com`: that nobody reads a channel's data any more
    /// (OpenSSH's PROTOCOL, section 2.1).
    pub fn knows_end_of_write(&self) -> bool {
        self.is_longhaul() || self.is_openssh_from(0, 0)
    }

    /// Whether it takes a channel's opening and requests before it has answered the login that
    /// they follow, and numbers its channels from 0. Not known of OpenSSH's port to Windows.
    pub fn takes_requests_ahead(&self) -> bool {
        let known = self.is_longhaul() || self.is_openssh_from(0, 0);
        known && !self.ident.software().starts_with("OpenSSH_for_Windows_")
    }

    /// Most window to advertise. OpenSSH 8.9 and later cap the input of a channel they send from
    /// at 16 MiB, move memory when it is full, and collapse.
    pub fn max_window(&self) -> Option<u32> {
        self.is_openssh_from(8, 9).then_some(Rule::OPENSSH_CAP)
    }

    /// Most channel data in one message. HPN-SSH refuses packets over 33 KiB after login.
    pub fn max_data(&self) -> Option<u32> {
        self.hpn.then_some(32 << 10)
    }
}

/// `9.2p1 Debian` is (9, 2); what is not a number is 0.
fn parse_version(text: &str) -> (u32, u32) {
    let mut numbers =
        text.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    fn peer(line: &str) -> Peer {
        Peer::new(Ident::parse(Role::Server, line.as_bytes()).unwrap())
    }

    #[test]
    fn openssh_versions_compare_as_numbers() {
        for (line, from_8_9) in [
            ("SSH-2.0-OpenSSH_8.8", false),
            ("SSH-2.0-OpenSSH_8.9p1 Ubuntu-3", true),
            ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3", true),
            ("SSH-2.0-OpenSSH_10.5", true),
            ("SSH-2.0-OpenSSH_for_Windows_9.5", true),
            ("SSH-1.99-OpenSSH_3.4", false),
            ("SSH-2.0-OpenSSH", false),
        ] {
            assert_eq!(peer(line).is_openssh_from(8, 9), from_8_9, "{line}");
        }
    }

    #[test]
    fn only_openssh_and_our_own_know_the_end_of_writing() {
        for (line, knows) in [
            ("SSH-2.0-OpenSSH_10.5", true),
            ("SSH-2.0-OpenSSH_9.9p2_hpn18.8.0", true),
            ("SSH-2.0-longhaul_0.1.0", true),
            ("SSH-2.0-dropbear_2022.83", false),
            ("SSH-2.0-Go", false),
        ] {
            assert_eq!(peer(line).knows_end_of_write(), knows, "{line}");
        }
    }

    #[test]
    fn requests_go_ahead_to_servers_that_are_known_to_take_them() {
        for (line, takes) in [
            ("SSH-2.0-OpenSSH_10.5", true),
            ("SSH-2.0-longhaul_0.1.0", true),
            ("SSH-2.0-OpenSSH_for_Windows_9.5", false),
            ("SSH-2.0-dropbear_2022.83", false),
            ("SSH-2.0-Go", false),
        ] {
            assert_eq!(peer(line).takes_requests_ahead(), takes, "{line}");
        }
    }

    #[test]
    fn windows_are_as_large_as_the_peer_can_stand() {
        let most = |line, most| Rule::towards(Some(&peer(line)), most).most();
        assert_eq!(most("SSH-2.0-OpenSSH_9.9p2", 128 << 20), Rule::OPENSSH_CAP);
        assert_eq!(most("SSH-2.0-OpenSSH_9.9p2", 100 << 10), 100 << 10);
        assert_eq!(most("SSH-2.0-Go", 128 << 20), 128 << 20);
        assert_eq!(Rule::towards(None, 128 << 20).most(), 128 << 20);
    }

    #[test]
    fn products_are_told_apart() {
        assert!(peer("SSH-2.0-OpenSSH_9.9p2_hpn18.8.0").is_hpn());
        assert_eq!(peer("SSH-2.0-OpenSSH_9.9p2_hpn18.8.0").max_data(), Some(32 << 10));
        assert!(!peer("SSH-2.0-OpenSSH_9.9p2").is_hpn());
        assert!(Peer::new(Ident::ours()).is_longhaul());
        let masked = Peer::new(Ident::ours_as_openssh());
        assert!(masked.is_longhaul() && !masked.is_openssh_from(0, 0) && !masked.is_hpn());
        assert_eq!(masked.max_window(), None);
        assert_eq!(peer("SSH-2.0-dropbear_2022.83").product(), Product::Dropbear);
        assert_eq!(peer("SSH-2.0-PuTTY_Release_0.78").product(), Product::Putty);
        assert_eq!(peer("SSH-2.0-Go").product(), Product::Other);
        assert_eq!(peer("SSH-2.0-Go").max_window(), None);
    }
}

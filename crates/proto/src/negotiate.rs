//! Two proposals in, one answer out (RFC 4253 section 7.1).
//!
//! The answer holds one value per direction, cipher and integrity together (B9): an AEAD has no
//! MAC to choose, anything else must have one.

use crate::kexinit::{KexInit, Names, Proposal};
use crate::{Compression, Mismatch, Role};
use crypt::kex::Method;
use crypt::{Cipher, Cover, Mac, Protection};
use keys::SigAlg;

/// What two proposals agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// The method by the name that was chosen.
    pub kex: &'static str,
    /// The method.
    pub method: Method,
    /// How the server proves its host key.
    pub host_key: SigAlg,
    /// What protects packets from client to server.
    pub c2s: Cover,
    /// What protects packets from server to client.
    pub s2c: Cover,
    /// What happens to payloads from client to server before that.
    pub c2s_compression: Compression,
    /// What happens to payloads from server to client before that.
    pub s2c_compression: Compression,
}

/// The choice between what the client and the server propose, made by `role` (who only decides
/// whom an error speaks of).
pub(crate) fn negotiate(
    role: Role,
    client: &KexInit,
    server: &KexInit,
) -> Result<Negotiated, Mismatch> {
    let (client, server) = (&client.lists, &server.lists);
    let by = Chooser { role };
    let (kex, method) = by.first("key exchange method", &client.kex, &server.kex, method)?;
    let (c, s) = (&client.host_key, &server.host_key);
    let host_key = by.first("host key algorithm", c, s, SigAlg::from_name)?;
    let c2s = by.cover(&Way::to_server(client), &Way::to_server(server))?;
    let s2c = by.cover(&Way::to_client(client), &Way::to_client(server))?;
    let c2s_compression = by.compression(&Way::to_server(client), &Way::to_server(server))?;
    let s2c_compression = by.compression(&Way::to_client(client), &Way::to_client(server))?;
    Ok(Negotiated { kex, method, host_key, c2s, s2c, c2s_compression, s2c_compression })
}

/// Whether a packet sent along with its sender's KEXINIT was guessed rightly. RFC 4253 section
/// 7: wrong if "the kex algorithm and/or the host key algorithm is guessed wrong (server and
/// client have different preferred algorithm)".
pub(crate) fn guess_is_right(one: &KexInit, other: &KexInit) -> bool {
    let same =
        |a: &Names, b: &Names| a.iter().next().is_some() && a.iter().next() == b.iter().next();
    same(&one.lists.kex, &other.lists.kex) && same(&one.lists.host_key, &other.lists.host_key)
}

/// A name and method of our table. The markers are no methods, so no peer can have one chosen.
fn method(name: &str) -> Option<(&'static str, Method)> {
    Method::NAMES.iter().copied().find(|(known, _)| *known == name)
}

/// The lists of one direction.
struct Way<'a> {
    ciphers: &'a Names,
    macs: &'a Names,
    compression: &'a Names,
}

impl<'a> Way<'a> {
    fn to_server(lists: &'a Proposal) -> Self {
        let Proposal { ciphers, macs, compression, .. } = lists;
        Self { ciphers: &ciphers.c2s, macs: &macs.c2s, compression: &compression.c2s }
    }

    fn to_client(lists: &'a Proposal) -> Self {
        let Proposal { ciphers, macs, compression, .. } = lists;
        Self { ciphers: &ciphers.s2c, macs: &macs.s2c, compression: &compression.s2c }
    }
}

/// Chooses and, where it cannot, says what the peer offers.
struct Chooser {
    role: Role,
}

impl Chooser {
    /// "The first algorithm on the client's name-list that is also on the server's."
    fn first<T>(
        &self,
        what: &'static str,
        client: &Names,
        server: &Names,
        known: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Mismatch> {
        let common = client.iter().filter(|name| server.contains(name)).find_map(known);
        let theirs = if self.role == Role::Client { server } else { client };
        common.ok_or_else(|| Mismatch {
            what,
            who: self.role.peer(),
            offered: theirs.as_str().to_owned(),
        })
    }

    /// The first common name itself, which must be known: what the peer chooses, too.
    fn very_first<T>(
        &self,
        what: &'static str,
        client: &Names,
        server: &Names,
        known: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Mismatch> {
        let first: Names = client.iter().filter(|name| server.contains(name)).take(1).collect();
        let theirs = if self.role == Role::Client { server } else { client };
        let offered = || theirs.as_str().to_owned();
        first.iter().next().and_then(known).ok_or_else(|| Mismatch {
            what,
            who: self.role.peer(),
            offered: offered(),
        })
    }

    fn compression(&self, client: &Way<'_>, server: &Way<'_>) -> Result<Compression, Mismatch> {
        let (client, server) = (client.compression, server.compression);
        self.very_first("compression", client, server, Compression::from_name)
    }

    fn cover(&self, client: &Way<'_>, server: &Way<'_>) -> Result<Cover, Mismatch> {
        #[cfg(feature = "none")]
        let none = |name: &str| (name == "none").then_some(());
        #[cfg(feature = "none")]
        if self.very_first("cipher", client.ciphers, server.ciphers, none).is_ok() {
            return self.very_first("MAC", client.macs, server.macs, alone);
        }
        let cipher = self.first("cipher", client.ciphers, server.ciphers, Cipher::from_name)?;
        let mac = || self.very_first("MAC", client.macs, server.macs, Mac::from_name);
        let mac = if cipher.is_aead() { None } else { Some(mac()?) };
        let mismatch = || Mismatch { what: "MAC", who: self.role.peer(), offered: String::new() };
        Protection::new(cipher, mac).map(Cover::Sealed).ok_or_else(mismatch)
    }
}

/// N2: with the NONE cipher a MAC that may stand alone, or the NONE MAC. `none` is in a list of
/// ours only where policy has put it there.
#[cfg(feature = "none")]
fn alone(name: &str) -> Option<Cover> {
    match name {
        "none" => Some(Cover::Bare),
        name => crypt::ClearMac::new(Mac::from_name(name)?).map(Cover::Authenticated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kexinit::Ways;

    fn names(list: &str) -> Names {
        list.split(',').collect()
    }

    fn ways(list: &str) -> Ways {
        Ways { c2s: names(list), s2c: names(list) }
    }

    fn kexinit(kex: &str, host_key: &str, ciphers: &str, macs: &str) -> KexInit {
        KexInit::new(Proposal {
            kex: names(kex),
            host_key: names(host_key),
            ciphers: ways(ciphers),
            macs: ways(macs),
            compression: ways("none,zlib"),
            follows: false,
        })
    }

    const KEX: &str = "curve25519-sha256,ecdh-sha2-nistp256";

    fn suite(ciphers: &str, macs: &str) -> KexInit {
        kexinit(KEX, "ssh-ed25519", ciphers, macs)
    }

    #[test]
    fn the_clients_order_decides() {
        let client = kexinit(KEX, "rsa-sha2-256,ssh-ed25519", "aes128-ctr", "hmac-sha2-256");
        let server = kexinit(
            "ecdh-sha2-nistp256,curve25519-sha256",
            "ssh-ed25519,rsa-sha2-256",
            "aes256-ctr,aes128-ctr",
            "hmac-sha2-512,hmac-sha2-256",
        );
        let got = negotiate(Role::Client, &client, &server).unwrap();
        assert_eq!((got.kex, got.host_key), ("curve25519-sha256", SigAlg::RsaSha256));
        let want = Protection::new(Cipher::Aes128Ctr, Some(Mac::HmacSha256));
        assert_eq!(got.c2s.protection(), want);
        assert_eq!(got.s2c, got.c2s);
    }

    /// B9: with an AEAD the MAC lists do not matter, not even when they have nothing in common.
    #[test]
    fn an_aead_has_no_mac_to_choose() {
        let (client, server) =
            (suite("aes128-gcm@openssh.com", "x"), suite("aes128-gcm@openssh.com", "y"));
        let got = negotiate(Role::Server, &client, &server).unwrap();
        assert_eq!(got.c2s.mac_name(), None);
    }

    /// B9: and any other cipher is not used without one.
    #[test]
    fn a_cipher_without_integrity_is_no_answer() {
        for macs in ["", "none", "umac-64@openssh.com"] {
            let (client, server) = (suite("aes128-ctr", macs), suite("aes128-ctr", macs));
            let error = negotiate(Role::Client, &client, &server).unwrap_err();
            assert_eq!(error.what, "MAC");
        }
    }

    #[test]
    fn directions_are_chosen_apart() {
        let mut client = suite("aes128-gcm@openssh.com,aes256-ctr", "hmac-sha2-512");
        client.lists.ciphers.s2c = names("aes256-ctr");
        let server = suite("aes256-ctr,aes128-gcm@openssh.com", "hmac-sha2-512");
        let got = negotiate(Role::Client, &client, &server).unwrap();
        assert_eq!(got.c2s.cipher_name(), "aes128-gcm@openssh.com");
        assert_eq!(
            (got.s2c.cipher_name(), got.s2c.mac_name()),
            ("aes256-ctr", Some("hmac-sha2-512"))
        );
    }

    #[test]
    fn a_mismatch_names_the_peers_list() {
        let (client, server) =
            (suite("aes128-ctr", "hmac-sha2-256"), suite("3des-cbc,arcfour", "m"));
        let error = negotiate(Role::Client, &client, &server).unwrap_err();
        assert_eq!(error.to_string(), "no common cipher: server offers 3des-cbc, arcfour only");
        let error = negotiate(Role::Server, &client, &server).unwrap_err();
        assert_eq!(error.to_string(), "no common cipher: client offers aes128-ctr only");
    }

    #[test]
    fn b9_compression_before_login_is_no_answer() {
        let both = || suite("aes128-ctr", "hmac-sha2-256");
        let (client, mut server) = (both(), both());
        server.lists.compression = ways("zlib");
        assert_eq!(negotiate(Role::Client, &client, &server).unwrap_err().what, "compression");
    }

    #[test]
    fn directions_are_compressed_as_the_client_prefers() {
        let both = || suite("aes128-ctr", "hmac-sha2-256");
        let (mut client, mut server) = (both(), both());
        client.lists.compression = Ways { c2s: names("zlib@openssh.com,none"), s2c: names("none") };
        server.lists.compression = ways("none,zlib@openssh.com");
        let got = negotiate(Role::Client, &client, &server).unwrap();
        let want = (Compression::Delayed, Compression::None);
        assert_eq!((got.c2s_compression, got.s2c_compression), want);
    }

    /// RFC 8308 section 2.2, OpenSSH PROTOCOL section 1.9: markers are never the method.
    #[test]
    fn a_marker_is_never_negotiated() {
        let markers = "ext-info-c,kex-strict-c-v00@openssh.com";
        let both = || kexinit(markers, "ssh-ed25519", "aes128-ctr", "hmac-sha2-256");
        let error = negotiate(Role::Client, &both(), &both()).unwrap_err();
        assert_eq!(error.what, "key exchange method");
    }

    /// RFC 4253 section 7: it is the first names that count, not what is agreed on.
    #[test]
    fn a_guess_is_right_when_both_first_names_are_the_same() {
        let of = |kex, host_key| kexinit(kex, host_key, "aes128-ctr", "hmac-sha2-256");
        for (kex, host_key, right) in [
            ("curve25519-sha256", "ssh-ed25519", true),
            ("curve25519-sha256,x", "ssh-ed25519,y", true),
            ("x,curve25519-sha256", "ssh-ed25519", false),
            ("curve25519-sha256", "rsa-sha2-256,ssh-ed25519", false),
            ("", "", false),
        ] {
            assert_eq!(guess_is_right(&suite("", ""), &of(kex, host_key)), right, "{kex}");
        }
        assert!(!guess_is_right(&of("", ""), &of("", "")));
    }
}

//! KEXINIT: reading, writing, and what we propose (RFC 4253 section 7.1).

use crate::config::KexConfig;
use crate::transport::ClearOffer;
use crate::{Misbehaved, Role};
use crypt::kex::Method;
use crypt::{Cipher, Mac};
use keys::SigAlg;
use wire::{Malformed, Reader, Writer, msg};

/// Longest KEXINIT we accept, and keep while an exchange runs; OpenSSH's is about 1.5 KiB.
const MAX_LEN: usize = 32 * 1024;

/// A name-list, most preferred first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names(String);

impl Names {
    /// The names in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').filter(|name| !name.is_empty())
    }

    /// Whether `name` is among them.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.iter().any(|n| n == name)
    }

    /// The list as it stands on the wire.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn read(r: &mut Reader<'_>, what: &'static str) -> Result<Self, Malformed> {
        r.names(what).map(|list| Self(list.as_str().to_owned()))
    }
}

impl<'a> FromIterator<&'a str> for Names {
    fn from_iter<T: IntoIterator<Item = &'a str>>(names: T) -> Self {
        Self(names.into_iter().collect::<Vec<_>>().join(","))
    }
}

/// The same kind of algorithm for each direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ways {
    pub(crate) c2s: Names,
    pub(crate) s2c: Names,
}

impl Ways {
    fn both<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let c2s: Names = names.collect();
        Self { s2c: c2s.clone(), c2s }
    }

    fn read(r: &mut Reader<'_>, what: &'static str) -> Result<Self, Malformed> {
        Ok(Self { c2s: Names::read(r, what)?, s2c: Names::read(r, what)? })
    }
}

/// The lists of a KEXINIT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) kex: Names,
    pub(crate) host_key: Names,
    pub(crate) ciphers: Ways,
    pub(crate) macs: Ways,
    pub(crate) compression: Ways,
    /// `first_kex_packet_follows`.
    pub(crate) follows: bool,
}

/// A KEXINIT as sent or received: the exchange hash wants the very bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KexInit {
    pub(crate) payload: Vec<u8>,
    pub(crate) lists: Proposal,
}

impl KexInit {
    /// Ours, with a fresh cookie.
    pub(crate) fn new(lists: Proposal) -> Self {
        let mut w = Writer::message(msg::KEXINIT);
        w.raw(&crypt::random_array::<16>());
        w.string(lists.kex.as_str()).string(lists.host_key.as_str());
        for ways in [&lists.ciphers, &lists.macs, &lists.compression, &Ways::default()] {
            w.string(ways.c2s.as_str()).string(ways.s2c.as_str());
        }
        w.bool(lists.follows).u32(0);
        Self { payload: w.finish(), lists }
    }

    /// The peer's.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Malformed> {
        if payload.len() > MAX_LEN {
            return Err(Malformed("KEXINIT: longer than 32 KiB"));
        }
        let mut r = Reader::new(payload);
        r.take(1, "KEXINIT")?;
        r.take(16, "KEXINIT cookie")?;
        let lists = Proposal {
            kex: Names::read(&mut r, "KEXINIT kex_algorithms")?,
            host_key: Names::read(&mut r, "KEXINIT server_host_key_algorithms")?,
            ciphers: Ways::read(&mut r, "KEXINIT encryption_algorithms")?,
            macs: Ways::read(&mut r, "KEXINIT mac_algorithms")?,
            compression: Ways::read(&mut r, "KEXINIT compression_algorithms")?,
            follows: {
                Ways::read(&mut r, "KEXINIT languages")?;
                r.bool("KEXINIT first_kex_packet_follows")?
            },
        };
        r.u32("KEXINIT reserved")?;
        r.end("KEXINIT: trailing bytes")?;
        Ok(Self { payload: payload.to_vec(), lists })
    }
}

/// Names in `kex_algorithms` that are no methods: what a side can do, said in its first KEXINIT
/// only (RFC 8308 section 2.1, OpenSSH PROTOCOL section 1.9).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Markers {
    pub(crate) ext_info: &'static str,
    pub(crate) strict: &'static str,
}

impl Markers {
    /// Those that `sender` uses.
    pub(crate) const fn of(sender: Role) -> Self {
        match sender {
            Role::Client => Self { ext_info: "ext-info-c", strict: "kex-strict-c-v00@openssh.com" },
            Role::Server => Self { ext_info: "ext-info-s", strict: "kex-strict-s-v00@openssh.com" },
        }
    }
}

/// What we propose.
pub(crate) struct Offer<'a> {
    pub(crate) role: Role,
    pub(crate) cfg: &'a KexConfig,
    /// Methods, most preferred first.
    pub(crate) kex: &'a [&'static str],
    /// Host key algorithms, most preferred first.
    pub(crate) host_key: &'a [SigAlg],
    /// The connection's first KEXINIT.
    pub(crate) first: bool,
    /// A guessed packet follows.
    pub(crate) follows: bool,
    /// `none` among ciphers, and perhaps MACs: a client's first choice, a server's last.
    pub(crate) clear: Option<ClearOffer>,
}

impl Offer<'_> {
    /// N2: a client that wants clear text names only MACs that may stand alone, so that the
    /// server cannot choose another one.
    fn macs(&self) -> impl Iterator<Item = &'static str> {
        let alone = self.clear.is_some() && self.role == Role::Client;
        self.cfg.macs.iter().filter(move |mac| !alone || mac.is_etm()).map(|mac| mac.name())
    }

    fn with_none(
        &self,
        names: impl Iterator<Item = &'static str>,
        wanted: fn(&ClearOffer) -> bool,
    ) -> Ways {
        let none = self.clear.as_ref().filter(|offer| wanted(offer)).map(|_| "none");
        let (before, after) = match self.role {
            Role::Client => (none, None),
            Role::Server => (None, none),
        };
        Ways::both(before.into_iter().chain(names).chain(after))
    }

    /// The message.
    pub(crate) fn kexinit(&self) -> KexInit {
        let Markers { ext_info, strict } = Markers::of(self.role);
        let markers: &[&str] = if self.first { &[ext_info, strict] } else { &[] };
        KexInit::new(Proposal {
            kex: self.kex.iter().copied().chain(markers.iter().copied()).collect(),
            host_key: self.host_key.iter().map(|alg| alg.name()).collect(),
            ciphers: self.with_none(self.cfg.ciphers.iter().map(|cipher| cipher.name()), |_| true),
            macs: self.with_none(self.macs(), |offer| offer.mac),
            compression: Ways::both(self.cfg.compression.iter().map(|one| one.name())),
            follows: self.follows,
        })
    }
}

/// The default order of ciphers for a CPU with AES and carry-less multiply, or without.
pub(crate) fn default_ciphers(fast_aes: bool) -> Vec<Cipher> {
    let mut ciphers = Cipher::ALL.to_vec();
    // Stable: the others keep their order.
    ciphers.sort_by_key(|cipher| (*cipher == Cipher::ChaCha20Poly1305) == fast_aes);
    if fast_aes {
        ciphers.sort_by_key(|cipher| !cipher.is_aead());
    }
    ciphers
}

/// The default order of key exchange methods.
pub(crate) fn default_kex() -> Vec<&'static str> {
    Method::NAMES.iter().map(|(name, _)| *name).collect()
}

/// The default order of MACs.
pub(crate) fn default_macs() -> Vec<Mac> {
    Mac::ALL.to_vec()
}

/// The pre-condition of strict key exchange (OpenSSH PROTOCOL section 1.9), seen from a `role`
/// whose peer's first KEXINIT had sequence number `seq`.
pub(crate) fn strict(role: Role, theirs: &KexInit, seq: u32) -> Result<bool, Misbehaved> {
    let offered = theirs.lists.kex.contains(Markers::of(role.peer()).strict);
    if offered && seq != 0 { Err(Misbehaved::KexInitNotFirst) } else { Ok(offered) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(role: Role, first: bool) -> KexInit {
        let cfg = KexConfig::default();
        let (kex, host_key) = (&cfg.kex.clone(), SigAlg::ALL);
        Offer { role, cfg: &cfg, kex, host_key, first, follows: true, clear: None }.kexinit()
    }

    #[test]
    fn a_kexinit_reads_back_as_written() {
        let ours = ours(Role::Client, true);
        assert_eq!(KexInit::parse(&ours.payload), Ok(ours));
    }

    #[test]
    fn every_cut_and_every_extension_is_malformed() {
        let payload = ours(Role::Server, true).payload;
        for cut in 0..payload.len() {
            assert!(KexInit::parse(&payload[..cut]).is_err(), "{cut}");
        }
        assert!(KexInit::parse(&[payload, vec![0]].concat()).is_err());
    }

    /// B1: markers of each role, in the first KEXINIT only.
    #[test]
    fn markers_stand_in_the_first_kexinit_only() {
        for role in [Role::Client, Role::Server] {
            let Markers { ext_info, strict } = Markers::of(role);
            for (first, there) in [(true, true), (false, false)] {
                let kex = ours(role, first).lists.kex;
                assert_eq!(kex.contains(strict), there);
                assert_eq!(kex.contains(ext_info), there);
            }
        }
    }

    #[test]
    fn the_default_order_depends_on_the_cpu() {
        let fast = default_ciphers(true);
        assert_eq!(fast[..3], [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305]);
        let slow = default_ciphers(false);
        assert_eq!(slow[..2], [Cipher::ChaCha20Poly1305, Cipher::Aes128Gcm]);
        assert_eq!((fast.len(), slow.len()), (Cipher::ALL.len(), Cipher::ALL.len()));
        assert!(default_macs()[..2].iter().all(|mac| mac.is_etm()));
        assert_eq!(default_kex()[0], "mlkem768x25519-sha256");
        assert!(!default_kex().contains(&"ssh-rsa"));
    }
}

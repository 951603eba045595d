//! EXT_INFO (RFC 8308): what is told after the first NEWKEYS, and where it may stand (A3).

use crate::{Misbehaved, Role};
use keys::SigAlg;
use wire::{Malformed, NameList, Reader, Writer, msg};

/// RFC 8308 section 3.1.
const SERVER_SIG_ALGS: &str = "server-sig-algs";
/// OpenSSH PROTOCOL section 1.10; its value is a version.
const PING: &str = "ping@openssh.com";

/// What the peer told us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExtInfo {
    /// The algorithms of [`SERVER_SIG_ALGS`] that we know.
    pub(crate) server_sig_algs: Option<Vec<SigAlg>>,
}

impl ExtInfo {
    /// Reads a message into `self`; what it does not name stays. RFC 8308 section 2.5:
    /// "Unrecognized extensions MUST be ignored".
    pub(crate) fn merge(&mut self, payload: &[u8]) -> Result<(), Malformed> {
        let mut r = Reader::new(payload);
        r.take(1, "EXT_INFO")?;
        for _ in 0..r.u32("EXT_INFO count")? {
            let name = r.string("EXT_INFO name")?;
            let value = r.string("EXT_INFO value")?;
            if name == SERVER_SIG_ALGS.as_bytes() {
                let names = NameList::parse(value).ok_or(Malformed("EXT_INFO server-sig-algs"))?;
                self.server_sig_algs = Some(names.iter().filter_map(SigAlg::from_name).collect());
            }
        }
        r.end("EXT_INFO: trailing bytes")
    }
}

/// A server's EXT_INFO: the signature algorithms that a user's key may sign with, most preferred
/// first, and that we answer PING.
pub(crate) fn of_server(sig_algs: &[SigAlg]) -> Vec<u8> {
    let names: Vec<&str> = sig_algs.iter().map(|alg| alg.name()).collect();
    let mut w = Writer::message(msg::EXT_INFO);
    w.u32(2).string(SERVER_SIG_ALGS).names(&names).string(PING).string("0");
    w.finish()
}

/// Where EXT_INFO may stand (RFC 8308 section 2.4): as the packet right after the peer's first
/// NEWKEYS, and from a server once more right before USERAUTH_SUCCESS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Place {
    /// The first NEWKEYS was the last packet.
    #[default]
    AfterNewKeys,
    /// That place is over.
    Later,
    /// A late one came: USERAUTH_SUCCESS must follow.
    BeforeSuccess,
}

impl Place {
    /// The place after message `number` of the peer of `role`, which came before login. Generic
    /// messages do not count.
    pub(crate) fn step(self, role: Role, number: u8) -> Result<Self, Misbehaved> {
        match (self, number) {
            (_, msg::DISCONNECT..=msg::DEBUG) => Ok(self),
            (Self::Later, msg::EXT_INFO) if role == Role::Client => Ok(Self::BeforeSuccess),
            (Self::Later, msg::EXT_INFO) => Err(Misbehaved::ExtInfo),
            (Self::BeforeSuccess, msg::USERAUTH_SUCCESS) => Ok(Self::Later),
            (Self::BeforeSuccess, _) => Err(Misbehaved::ExtInfo),
            (Self::AfterNewKeys | Self::Later, _) => Ok(Self::Later),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_ext_info_reads_back() {
        let mut got = ExtInfo::default();
        got.merge(&of_server(SigAlg::ALL)).unwrap();
        assert_eq!(got.server_sig_algs.as_deref(), Some(SigAlg::ALL));
    }

    #[test]
    fn unknown_extensions_are_ignored_and_a_false_count_is_malformed() {
        let entries = |count| {
            let mut w = Writer::message(msg::EXT_INFO);
            w.u32(count).string("x@y").string(b"\0\xff");
            w.finish()
        };
        assert_eq!(ExtInfo::default().merge(&entries(1)), Ok(()));
        for count in [0, 2, u32::MAX] {
            assert!(ExtInfo::default().merge(&entries(count)).is_err());
        }
    }

    fn places(role: Role, numbers: &[u8]) -> Result<Place, Misbehaved> {
        numbers.iter().try_fold(Place::default(), |place, number| place.step(role, *number))
    }

    /// A3: EXT_INFO stands where RFC 8308 allows it, and at most so often.
    #[test]
    fn ext_info_out_of_place_is_refused() {
        let (ext, ok) = (msg::EXT_INFO, msg::USERAUTH_SUCCESS);
        assert!(places(Role::Client, &[ext, msg::SERVICE_ACCEPT, ext, ok]).is_ok());
        assert!(places(Role::Client, &[msg::IGNORE, ext]).is_ok());
        assert!(places(Role::Client, &[ext, ext, ext]).is_err());
        assert!(places(Role::Client, &[ext, ext, msg::USERAUTH_FAILURE]).is_err());
        assert!(places(Role::Server, &[ext, msg::SERVICE_REQUEST]).is_ok());
        assert!(places(Role::Server, &[ext, ext]).is_err());
        assert!(places(Role::Server, &[msg::SERVICE_REQUEST, ext]).is_err());
    }
}

//! Errors by culprit; each is one line for the user and one disconnect code for the peer.

use crate::table::{Phase, Role};
use wire::Malformed;
use wire::msg::{self, Disconnect};

/// Why a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A message that does not parse.
    #[error("peer sent a {0}")]
    Malformed(#[from] Malformed),
    /// A message that parses and breaks the protocol.
    #[error("{0}")]
    Peer(#[from] Misbehaved),
    /// Nobody's fault: the two sides have nothing in common.
    #[error("{0}")]
    Incompatible(#[from] Mismatch),
    /// The host key is refused, or did not prove itself.
    #[error("host key: {0}")]
    HostKey(String),
    /// The login failed.
    #[error("{0}")]
    Auth(#[from] crate::auth::Failed),
    /// Our own side cannot: a key that does not sign, a caller out of order.
    #[error("{0}")]
    Local(String),
}

impl Error {
    /// A message of the connection protocol before login. Clients that ask for a channel together
    /// with their last key send one.
    pub fn is_early_channel(&self) -> bool {
        matches!(self, Self::Peer(Misbehaved::Unexpected { number: 80.., phase: Phase::Login }))
    }

    /// The words for the peer: those for the user, but for what is only our own business, such as
    /// paths, and which keys we know for a host.
    pub fn for_peer(&self) -> String {
        match self {
            Self::HostKey(_) => "host key not accepted".to_owned(),
            Self::Local(_) => "internal error".to_owned(),
            _ => self.to_string(),
        }
    }

    /// The reason code that the peer is told (RFC 4250 section 4.2.2).
    pub fn disconnect_code(&self) -> Disconnect {
        match self {
            Self::Malformed(_) => Disconnect::ProtocolError,
            Self::Peer(misbehaved) => misbehaved.disconnect_code(),
            Self::Incompatible(_) => Disconnect::KeyExchangeFailed,
            Self::HostKey(_) => Disconnect::HostKeyNotVerifiable,
            Self::Auth(failed) => failed.disconnect_code(),
            Self::Local(_) => Disconnect::ByApplication,
        }
    }
}

/// What the peer did wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misbehaved {
    /// A message that has no place in this phase (or for this role).
    #[error("peer sent {} {phase}", show(*.number))]
    Unexpected {
        /// Its number.
        number: u8,
        /// When it came.
        phase: Phase,
    },
    /// Strict key exchange: something came before the peer's KEXINIT.
    #[error("peer's KEXINIT was not its first packet, although it offers strict key exchange")]
    KexInitNotFirst,
    /// Strict key exchange: the sequence number came round before the first NEWKEYS.
    #[error("peer sent 2^32 packets before its first NEWKEYS")]
    SequenceWrapped,
    /// RFC 8308 section 2.4: EXT_INFO once, or once more before USERAUTH_SUCCESS.
    #[error("peer sent EXT_INFO where it may not")]
    ExtInfo,
    /// It asks a server that does not know its user yet for more key exchanges than any client
    /// needs.
    #[error("peer started more key exchanges before login than it may")]
    TooManyExchanges,
    /// The exchange's own values are wrong (length, range, signature).
    #[error("key exchange: {0}")]
    BadExchange(String),
    /// A rekey with another host key than the first exchange's.
    #[error("peer changed its host key during the connection")]
    HostKeyChanged,
    /// It makes us hold more than we are willing to.
    #[error("peer made us hold more than {0} bytes during a key exchange")]
    TooMuchHeld(usize),
    /// The identification line is missing, too long or not SSH-2.
    #[error("identification: {0}")]
    Identification(&'static str),
    /// A protocol violation of the layers above: what was wrong, in words.
    #[error("{0}")]
    Upper(String),
}

impl Misbehaved {
    fn disconnect_code(&self) -> Disconnect {
        match self {
            Self::Identification(_) => Disconnect::ProtocolVersionNotSupported,
            Self::BadExchange(_) | Self::KexInitNotFirst => Disconnect::KeyExchangeFailed,
            Self::HostKeyChanged => Disconnect::HostKeyNotVerifiable,
            _ => Disconnect::ProtocolError,
        }
    }
}

/// Negotiation found nothing (RFC 4253 section 7.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no common {what}: {who} offers {}", only(.offered))]
pub struct Mismatch {
    /// What was negotiated: `cipher`, `MAC`, `key exchange method`, ...
    pub what: &'static str,
    /// Which side the peer is.
    pub who: Role,
    /// The peer's list as it stands on the wire.
    pub offered: String,
}

/// A peer's list in an error line, cut to what fits on a screen.
fn only(offered: &str) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = offered.split(',').filter(|name| !name.is_empty()).collect();
    match names.len() {
        0 => "nothing".to_owned(),
        n if n > MOST => {
            format!("{} and {} more", names.get(..MOST).unwrap_or_default().join(", "), n - MOST)
        }
        _ => format!("{} only", names.join(", ")),
    }
}

/// `KEXINIT (20)`, or the bare number.
fn show(number: u8) -> String {
    match msg::name(number) {
        Some(name) => format!("{name} ({number})"),
        None => format!("message {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_is_one_line_with_what_the_peer_offers() {
        let mismatch = Mismatch { what: "cipher", who: Role::Server, offered: "a,b".to_owned() };
        assert_eq!(mismatch.to_string(), "no common cipher: server offers a, b only");
        assert_eq!(Error::from(mismatch).disconnect_code(), Disconnect::KeyExchangeFailed);
    }

    /// A host that is not the one it should be learns neither our paths nor the key we expected.
    #[test]
    fn a_peer_is_not_told_what_we_know() {
        let why = "known is SHA256:abc (/home/me/.ssh/known_hosts:3)".to_owned();
        for error in [Error::HostKey(why.clone()), Error::Local(why)] {
            assert!(error.to_string().contains("known_hosts"));
            assert!(!error.for_peer().contains("known"), "{}", error.for_peer());
        }
        assert_eq!(Error::from(Misbehaved::ExtInfo).for_peer(), Misbehaved::ExtInfo.to_string());
    }

    #[test]
    fn a_long_list_is_cut() {
        let offered = vec!["x"; 20].join(",");
        assert!(only(&offered).ends_with("x and 8 more"));
        assert_eq!(only(""), "nothing");
    }

    #[test]
    fn an_unexpected_message_is_named() {
        let error = Misbehaved::Unexpected { number: msg::CHANNEL_OPEN, phase: Phase::Login };
        assert_eq!(error.to_string(), "peer sent CHANNEL_OPEN (90) before login");
    }
}

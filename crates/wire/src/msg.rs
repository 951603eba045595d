//! Message numbers (RFC 4250 section 4.1.2, RFC 8308, OpenSSH PROTOCOL section 1.10) and
//! disconnect codes (RFC 4250 section 4.2.2).

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $value;)*

        /// The name of a message number, for logs; `None` when it is not one we know.
        pub fn name(number: u8) -> Option<&'static str> {
            match number {
                $($value => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

numbers! {
    /// RFC 4253 section 11.1.
    DISCONNECT = 1;
    /// RFC 4253 section 11.2.
    IGNORE = 2;
    /// RFC 4253 section 11.4.
    UNIMPLEMENTED = 3;
    /// RFC 4253 section 11.3.
    DEBUG = 4;
    /// RFC 4253 section 10.
    SERVICE_REQUEST = 5;
    /// RFC 4253 section 10.
    SERVICE_ACCEPT = 6;
    /// RFC 8308 section 2.3.
    EXT_INFO = 7;
    /// RFC 8308 section 3.2.
    NEWCOMPRESS = 8;
    /// RFC 4253 section 7.1.
    KEXINIT = 20;
    /// RFC 4253 section 7.3.
    NEWKEYS = 21;
    /// RFC 4253 section 8 (KEXDH_INIT), RFC 5656 section 4 (KEX_ECDH_INIT).
    KEX_INIT = 30;
    /// RFC 4253 section 8 (KEXDH_REPLY), RFC 5656 section 4 (KEX_ECDH_REPLY).
    KEX_REPLY = 31;
    /// RFC 4252 section 5.
    USERAUTH_REQUEST = 50;
    /// RFC 4252 section 5.1.
    USERAUTH_FAILURE = 51;
    /// RFC 4252 section 5.1.
    USERAUTH_SUCCESS = 52;
    /// RFC 4252 section 5.4.
    USERAUTH_BANNER = 53;
    /// RFC 4252 section 7; 60 has other meanings in other methods.
    USERAUTH_PK_OK = 60;
    /// RFC 4256 section 3.4.
    USERAUTH_INFO_RESPONSE = 61;
    /// RFC 4254 section 4.
    GLOBAL_REQUEST = 80;
    /// RFC 4254 section 4.
    REQUEST_SUCCESS = 81;
    /// RFC 4254 section 4.
    REQUEST_FAILURE = 82;
    /// RFC 4254 section 5.1.
    CHANNEL_OPEN = 90;
    /// RFC 4254 section 5.1.
    CHANNEL_OPEN_CONFIRMATION = 91;
    /// RFC 4254 section 5.1.
    CHANNEL_OPEN_FAILURE = 92;
    /// RFC 4254 section 5.2.
    CHANNEL_WINDOW_ADJUST = 93;
    /// RFC 4254 section 5.2.
    CHANNEL_DATA = 94;
    /// RFC 4254 section 5.2.
    CHANNEL_EXTENDED_DATA = 95;
    /// RFC 4254 section 5.3.
    CHANNEL_EOF = 96;
    /// RFC 4254 section 5.3.
    CHANNEL_CLOSE = 97;
    /// RFC 4254 section 5.4.
    CHANNEL_REQUEST = 98;
    /// RFC 4254 section 5.4.
    CHANNEL_SUCCESS = 99;
    /// RFC 4254 section 5.4.
    CHANNEL_FAILURE = 100;
    /// OpenSSH PROTOCOL section 1.10, `ping@openssh.com`.
    PING = 192;
    /// OpenSSH PROTOCOL section 1.10.
    PONG = 193;
}

/// Reason codes of SSH_MSG_DISCONNECT (RFC 4250 section 4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Disconnect {
    /// The peer broke the protocol.
    ProtocolError = 2,
    /// Negotiation or the exchange itself failed.
    KeyExchangeFailed = 3,
    /// A packet failed its integrity check.
    MacError = 5,
    /// A payload cannot be decompressed.
    CompressionError = 6,
    /// A service we do not offer.
    ServiceNotAvailable = 7,
    /// The identification string is not SSH-2.
    ProtocolVersionNotSupported = 8,
    /// The host key is not trusted.
    HostKeyNotVerifiable = 9,
    /// The connection is lost.
    ConnectionLost = 10,
    /// A normal end.
    ByApplication = 11,
    /// More connections or attempts than allowed.
    TooManyConnections = 12,
    /// The user gave up.
    AuthCancelledByUser = 13,
    /// No way left to authenticate.
    NoMoreAuthMethods = 14,
}

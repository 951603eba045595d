//! Messages that open a channel, and the short ones (RFC 4254 sections 5.1 to 5.4).

use wire::{Malformed, Reader, Writer, msg};

/// Reason codes of CHANNEL_OPEN_FAILURE (RFC 4254 section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum OpenReason {
    /// Policy says no.
    AdministrativelyProhibited = 1,
    /// What it should lead to cannot be reached.
    ConnectFailed = 2,
    /// A kind that is not offered.
    UnknownChannelType = 3,
    /// Too many channels.
    ResourceShortage = 4,
}

/// What a channel of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose<'a> {
    /// A program at the other end (RFC 4254 section 6.1).
    Session,
    /// A TCP connection that the other end makes (RFC 4254 section 7.2).
    DirectTcpip {
        /// Where to, as the other end resolves it.
        host: &'a str,
        port: u16,
    },
}

/// Who asks for a TCP connection: the user of this program, whom no address on the way describes.
const ORIGINATOR: (&str, u32) = ("127.0.0.1", 0);

impl Purpose<'_> {
    /// The channel type.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::DirectTcpip { .. } => "direct-tcpip",
        }
    }

    /// What follows the head of CHANNEL_OPEN.
    fn details(self) -> Vec<u8> {
        match self {
            Self::Session => Vec::new(),
            Self::DirectTcpip { host, port } => {
                let (address, from) = ORIGINATOR;
                Writer::new().string(host).u32(port.into()).string(address).u32(from).take()
            }
        }
    }

    /// CHANNEL_OPEN.
    pub(super) fn open(self, sender: u32, window: u32, max_packet: u32) -> Vec<u8> {
        let mut message = Open { kind: self.kind(), sender, window, max_packet }.write();
        message.extend(self.details());
        message
    }
}

/// CHANNEL_OPEN.
pub(super) struct Open<'a> {
    pub(super) kind: &'a str,
    pub(super) sender: u32,
    pub(super) window: u32,
    pub(super) max_packet: u32,
}

impl<'a> Open<'a> {
    /// Reads all but the message number; what depends on the kind is left in `r`.
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            kind: r.text("channel type")?,
            sender: r.u32("sender channel")?,
            window: r.u32("initial window")?,
            max_packet: r.u32("maximum packet")?,
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        Writer::message(msg::CHANNEL_OPEN)
            .string(self.kind)
            .u32(self.sender)
            .u32(self.window)
            .u32(self.max_packet)
            .take()
    }
}

/// CHANNEL_OPEN_CONFIRMATION.
pub(super) struct Confirmation {
    pub(super) recipient: u32,
    pub(super) sender: u32,
    pub(super) window: u32,
    pub(super) max_packet: u32,
}

impl Confirmation {
    /// What depends on the channel type is ignored: no type that we open has any.
    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            recipient: r.u32("recipient channel")?,
            sender: r.u32("sender channel")?,
            window: r.u32("initial window")?,
            max_packet: r.u32("maximum packet")?,
        })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        Writer::message(msg::CHANNEL_OPEN_CONFIRMATION)
            .u32(self.recipient)
            .u32(self.sender)
            .u32(self.window)
            .u32(self.max_packet)
            .take()
    }
}

/// CHANNEL_OPEN_FAILURE.
pub(super) struct OpenFailure {
    pub(super) recipient: u32,
    pub(super) reason: u32,
    pub(super) text: String,
}

impl OpenFailure {
    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let recipient = r.u32("recipient channel")?;
        let reason = r.u32("reason")?;
        let text = String::from_utf8_lossy(r.string("description")?).into_owned();
        r.string("language tag")?;
        r.end("CHANNEL_OPEN_FAILURE")?;
        Ok(Self { recipient, reason, text })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        Writer::message(msg::CHANNEL_OPEN_FAILURE)
            .u32(self.recipient)
            .u32(self.reason)
            .string(&self.text)
            .string("")
            .take()
    }
}

/// A message that is its number and the recipient: EOF, CLOSE, SUCCESS, FAILURE.
pub(super) fn short(number: u8, recipient: u32) -> Vec<u8> {
    Writer::message(number).u32(recipient).take()
}

/// Reads what [`short`] wrote, after the number.
pub(super) fn read_short(r: &mut Reader<'_>) -> Result<u32, Malformed> {
    let recipient = r.u32("recipient channel")?;
    r.end("channel message")?;
    Ok(recipient)
}

/// CHANNEL_WINDOW_ADJUST.
pub(super) fn adjust(recipient: u32, bytes: u32) -> Vec<u8> {
    Writer::message(msg::CHANNEL_WINDOW_ADJUST).u32(recipient).u32(bytes).take()
}

/// Reads what [`adjust`] wrote, after the number.
pub(super) fn read_adjust(r: &mut Reader<'_>) -> Result<(u32, u32), Malformed> {
    let both = (r.u32("recipient channel")?, r.u32("bytes to add")?);
    r.end("CHANNEL_WINDOW_ADJUST")?;
    Ok(both)
}

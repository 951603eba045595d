//! One direction of a channel as a table (RFC 4254 section 5.3).
//!
//! A channel has two of these: what we sent and what the peer sent. They are independent until
//! both are [`Half::Closed`]; then the channel is gone.

/// How far one side has closed its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// Data may follow.
    Open,
    /// EOF: no data follows; requests may.
    Eof,
    /// CLOSE: nothing follows.
    Closed,
}

/// What a side may do on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// CHANNEL_DATA and CHANNEL_EXTENDED_DATA.
    Data,
    /// CHANNEL_REQUEST, its replies, CHANNEL_WINDOW_ADJUST.
    Talk,
    /// CHANNEL_EOF.
    Eof,
    /// CHANNEL_CLOSE.
    Close,
}

impl Half {
    /// Every value.
    pub const ALL: [Self; 3] = [Self::Open, Self::Eof, Self::Closed];

    /// Where `step` leads; `None` when it is not allowed.
    pub fn after(self, step: Step) -> Option<Self> {
        #[rustfmt::skip]
        let next = match (self, step) {
            (Self::Open,   Step::Data)  => Some(Self::Open),
            (Self::Open,   Step::Talk)  => Some(Self::Open),
            (Self::Open,   Step::Eof)   => Some(Self::Eof),
            (Self::Open,   Step::Close) => Some(Self::Closed),
            (Self::Eof,    Step::Data)  => None,
            (Self::Eof,    Step::Talk)  => Some(Self::Eof),
            (Self::Eof,    Step::Eof)   => None,
            (Self::Eof,    Step::Close) => Some(Self::Closed),
            (Self::Closed, _)           => None,
        };
        next
    }
}

impl Step {
    /// Every value.
    pub const ALL: [Self; 4] = [Self::Data, Self::Talk, Self::Eof, Self::Close];
}

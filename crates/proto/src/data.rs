//! Splits a channel data message into its head and the range of its body (RFC 4254 section 5.2).
//!
//! Called by the receiving thread for every bulk packet; nothing is copied and nothing is looked
//! up. Who the recipient is, whether the channel may receive, and what the window says, is for
//! the caller.

use std::ops::Range;
use wire::Malformed;
use wire::msg::{CHANNEL_DATA, CHANNEL_EXTENDED_DATA};

/// SSH_EXTENDED_DATA_STDERR, the one code there is (RFC 4254 section 5.2).
pub const STDERR: u32 = 1;

/// Bytes before the body of CHANNEL_DATA: number, recipient, length.
pub const DATA_HEAD: usize = 9;
/// Number, recipient, code, length.
const EXTENDED_HEAD: usize = 13;

/// What stands before the body of CHANNEL_DATA or CHANNEL_EXTENDED_DATA.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataHeader {
    /// Our number of the channel.
    pub recipient: u32,
    /// `None` for CHANNEL_DATA, the type code for CHANNEL_EXTENDED_DATA.
    pub code: Option<u32>,
    /// Where the body stands in the payload that was split.
    pub body: Range<usize>,
}

/// Splits `payload`, whose first byte must be 94 or 95; the body must fill the rest exactly.
#[inline]
pub fn split(payload: &[u8]) -> Result<DataHeader, Malformed> {
    if let Some(([CHANNEL_DATA, a, b, c, d, l0, l1, l2, l3], body)) =
        payload.split_first_chunk::<DATA_HEAD>()
    {
        let len = u32::from_be_bytes([*l0, *l1, *l2, *l3]);
        let recipient = u32::from_be_bytes([*a, *b, *c, *d]);
        return header(recipient, None, DATA_HEAD, body.len(), len);
    }
    if let Some(([CHANNEL_EXTENDED_DATA, a, b, c, d, t0, t1, t2, t3, l0, l1, l2, l3], body)) =
        payload.split_first_chunk::<EXTENDED_HEAD>()
    {
        let len = u32::from_be_bytes([*l0, *l1, *l2, *l3]);
        let recipient = u32::from_be_bytes([*a, *b, *c, *d]);
        let code = u32::from_be_bytes([*t0, *t1, *t2, *t3]);
        return header(recipient, Some(code), EXTENDED_HEAD, body.len(), len);
    }
    Err(Malformed("channel data"))
}

/// The recipient and the length of the body, of a CHANNEL_DATA message of which only this much is
/// here; `None` for any other message.
pub fn front(payload: &[u8]) -> Option<(u32, usize)> {
    let [CHANNEL_DATA, a, b, c, d, l0, l1, l2, l3] = payload.first_chunk::<DATA_HEAD>()? else {
        return None;
    };
    let len = u32::from_be_bytes([*l0, *l1, *l2, *l3]);
    Some((u32::from_be_bytes([*a, *b, *c, *d]), usize::try_from(len).ok()?))
}

#[inline]
fn header(
    recipient: u32,
    code: Option<u32>,
    head: usize,
    body: usize,
    len: u32,
) -> Result<DataHeader, Malformed> {
    if u32::try_from(body) != Ok(len) {
        return Err(Malformed("length of channel data"));
    }
    Ok(DataHeader { recipient, code, body: head..head.saturating_add(body) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::{Reader, Writer};

    /// The same by the bounded reader, field by field.
    fn slowly(payload: &[u8]) -> Option<(u32, Option<u32>, Vec<u8>)> {
        let mut r = Reader::new(payload);
        let number = r.u8("").ok()?;
        let recipient = r.u32("").ok()?;
        let code = match number {
            CHANNEL_DATA => None,
            CHANNEL_EXTENDED_DATA => Some(r.u32("").ok()?),
            _ => return None,
        };
        let body = r.string("").ok()?.to_vec();
        r.end("").ok()?;
        Some((recipient, code, body))
    }

    #[test]
    fn both_kinds_split_into_head_and_body() {
        let data = Writer::message(CHANNEL_DATA).u32(7).string("hello").take();
        assert_eq!(split(&data), Ok(DataHeader { recipient: 7, code: None, body: 9..14 }));
        let extended = Writer::message(CHANNEL_EXTENDED_DATA).u32(7).u32(1).string("").take();
        assert_eq!(split(&extended), Ok(DataHeader { recipient: 7, code: Some(1), body: 13..13 }));
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_malformed() {
        for whole in [
            Writer::message(CHANNEL_DATA).u32(7).string("hello").take(),
            Writer::message(CHANNEL_EXTENDED_DATA).u32(7).u32(1).string("hello").take(),
        ] {
            for n in 0..whole.len() {
                assert!(split(&whole[..n]).is_err(), "{n}");
            }
            assert!(split(&[&whole[..], &[0]].concat()).is_err());
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_bounded_reader(
            number in 92u8..98, rest in proptest::collection::vec(0u8..20, 0..40),
        ) {
            let payload = [&[number][..], &rest].concat();
            let fast = split(&payload).ok().map(|h| (h.recipient, h.code, payload[h.body].to_vec()));
            prop_assert_eq!(fast, slowly(&payload));
        }
    }
}

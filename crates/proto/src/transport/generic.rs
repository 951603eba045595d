//! Messages that are legal at nearly any time (RFC 4253 section 11), EXT_INFO and PING.

use super::{Stage, Transport};
use crate::{Error, Event, Outbox};
use wire::{Malformed, Reader, Writer, msg};

/// Most text of the peer that we pass on.
const MAX_TEXT: usize = 1024;

impl Transport {
    pub(super) fn generic(
        &mut self,
        number: u8,
        payload: &[u8],
        out: &mut Outbox,
    ) -> Result<(), Error> {
        match number {
            msg::DISCONNECT => {
                self.stage = Stage::Closed;
                out.event(disconnected(payload));
            }
            msg::DEBUG => out.event(debug(payload)?),
            msg::UNIMPLEMENTED => out.event(unimplemented(payload)?),
            msg::EXT_INFO => self.ext_info.merge(payload)?,
            msg::PING => {
                let pong = Writer::message(msg::PONG).string(ping_data(payload)?).take();
                self.send(pong, out)?;
            }
            // No PING is ever sent, so nobody waits for an answer.
            msg::PONG => drop(ping_data(payload)?),
            // IGNORE: "MUST be understood (and ignored) by all implementations".
            _ => {}
        }
        Ok(())
    }
}

/// DISCONNECT ends the connection however badly it is written.
fn disconnected(payload: &[u8]) -> Event {
    let mut r = Reader::new(payload.get(1..).unwrap_or_default());
    let code = r.u32("DISCONNECT code").unwrap_or_default();
    let text = r.string("DISCONNECT description").map(text).unwrap_or_default();
    Event::Disconnected { code, text }
}

fn debug(payload: &[u8]) -> Result<Event, Malformed> {
    let mut r = Reader::new(payload);
    r.take(1, "DEBUG")?;
    let always_display = r.bool("DEBUG always_display")?;
    Ok(Event::Debug { always_display, text: text(r.string("DEBUG message")?) })
}

fn unimplemented(payload: &[u8]) -> Result<Event, Malformed> {
    let mut r = Reader::new(payload);
    r.take(1, "UNIMPLEMENTED")?;
    Ok(Event::Unimplemented { seq: r.u32("UNIMPLEMENTED sequence number")? })
}

fn ping_data(payload: &[u8]) -> Result<&[u8], Malformed> {
    let mut r = Reader::new(payload);
    r.take(1, "PING")?;
    let data = r.string("PING data")?;
    r.end("PING: trailing bytes")?;
    Ok(data)
}

/// Text of the peer, cut, with whatever is not UTF-8 replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(bytes)).into_owned()
}

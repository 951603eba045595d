//! `rcvbuf@longhaul`: a larger receive buffer at the server, for what we push (PROTOCOL.md).

use conf::Client;
use engine::Session;
use proto::Event;

/// The request's name.
const NAME: &str = "rcvbuf@longhaul";

/// RemoteRcvBuf: asks a server that may know the request. The connection goes on meanwhile; the
/// answer is an event, for [`receive_buffer_granted`].
pub(crate) fn ask(conf: &Client, session: &Session) -> Result<(), engine::Error> {
    let Some(bytes) = conf.remote_rcv_buf.0 else { return Ok(()) };
    let data = bytes.to_be_bytes();
    session.call(|connection, out| connection.global_request(NAME, &data, true, out)).map(drop)
}

/// What a server says of the receive buffer that it was asked for, for the log.
pub fn receive_buffer_granted(event: &Event) -> Option<String> {
    let Event::GlobalReply { name, ok, data } = event else { return None };
    let bytes = data.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    match bytes {
        _ if name != NAME => None,
        Some(bytes) if *ok => Some(format!("the server's receive buffer is {bytes} bytes")),
        _ => Some("the server gives no larger receive buffer".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_what_was_granted() {
        let said = |name: &str, ok, data: &[u8]| {
            let (name, data) = (name.to_owned(), data.to_vec());
            receive_buffer_granted(&Event::GlobalReply { name, ok, data })
        };
        let granted = "the server's receive buffer is 8388608 bytes";
        assert_eq!(said(NAME, true, &(8u64 << 20).to_be_bytes()).unwrap(), granted);
        let nothing = "the server gives no larger receive buffer";
        assert_eq!(said(NAME, false, &[]).unwrap(), nothing);
        assert_eq!(said(NAME, true, &[1, 2]).unwrap(), nothing);
        assert_eq!(said("keepalive@openssh.com", false, &[]), None);
    }
}

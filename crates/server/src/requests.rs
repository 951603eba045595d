//! Global requests of longhaul's clients (PROTOCOL.md), answered on the spot. Called on the
//! receiving thread.

use crate::socket::buffers;
use conf::Server;
use engine::figures::columns;
use engine::{Error, Port, Session};

/// What is answered here.
pub(crate) const NAMES: &[&str] = &[RCVBUF, TCP_INFO];

/// A larger receive buffer, for a push.
const RCVBUF: &str = "rcvbuf@longhaul";

/// How the connection looks from here.
const TCP_INFO: &str = "tcp-info@longhaul";

/// Carries out one request and answers it.
pub(crate) fn answer(
    port: &mut Port<'_>,
    config: &Server,
    name: &str,
    data: &[u8],
    want_reply: bool,
) -> Result<(), Error> {
    let answer = match name {
        RCVBUF => grow_receive_buffer(port.session(), config, data),
        TCP_INFO => Some(columns::write(&port.figures())),
        _ => None,
    };
    if !want_reply {
        return Ok(());
    }
    port.call(|connection, out| connection.answer(answer.as_deref(), out))
}

/// Asked for: `uint64` bytes. Granted: `uint64`, what the window can be now; MaxSockBuf caps it.
fn grow_receive_buffer(session: &Session, config: &Server, data: &[u8]) -> Option<Vec<u8>> {
    let wanted = u64::from_be_bytes(data.try_into().ok()?);
    let most = u64::try_from(buffers(config).most).unwrap_or(u64::MAX);
    let granted = session.grow_receive_buffer(wanted.min(most))?;
    Some(granted.to_be_bytes().to_vec())
}

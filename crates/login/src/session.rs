//! From a login to the running pipeline: windows, buffers, workers and keepalives as configured.

use crate::{Error, LoggedIn, Proxy, buffers, receive_buffer};
use conf::Client;
use engine::{Alive, Plan, Program, Rx, Session, Tune, plan};
use proto::channel::Limits;
use proto::window::Rule;
use proto::{Connection, Peer, RekeyLimit};

/// A session that runs as soon as a thread is given to its receiver.
pub struct Started<P> {
    /// For opening channels and for sources.
    pub session: Session,
    /// To be run; it ends with the session.
    pub rx: Rx<P>,
    /// The window rule of channels.
    pub rule: Rule,
    /// The ProxyCommand or jump, to be kept as long as the session.
    pub proxy: Option<Proxy>,
}

impl LoggedIn {
    /// Makes a pipeline of it whose events go to `program`.
    ///
    /// # Errors
    /// The operating system starts no more threads.
    pub fn start<P: Program>(self, conf: &Client, program: P) -> Result<Started<P>, Error> {
        let Self { link, authenticated, proxy } = self;
        let buffers = buffers(conf);
        let peer = authenticated.transport().peer();
        let rule = Rule::towards(peer, buffers.window);
        let asks = peer.is_some_and(Peer::is_longhaul);
        let plan = Plan {
            workers: plan::workers(conf.crypto_workers.count(), authenticated.transport()),
            rekey: RekeyLimit { bytes: conf.rekey_limit.bytes, time: conf.rekey_limit.time },
        };
        let connection = Connection::new(authenticated, Limits::client());
        let tune = Tune::new(buffers, rule);
        let (session, rx) = link.into_session(connection, plan, tune, alive(conf), program)?;
        if asks {
            receive_buffer::ask(conf, &session)?;
        }
        Ok(Started { session, rx, rule, proxy })
    }
}

fn alive(conf: &Client) -> Option<Alive> {
    (!conf.server_alive_interval.is_zero()).then_some(Alive {
        interval: conf.server_alive_interval,
        count: conf.server_alive_count_max,
    })
}

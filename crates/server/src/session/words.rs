//! What the log says of a visit, in sshd's words: who did not get in, who did, what was moved, and
//! why it ended.

use super::{Failure, Visit};
use crate::log;
use crate::transfer::{self, Guest};
use conf::LogLevel;
use engine::{Error, Figures, Session};
use keys::PublicKey;
use proto::auth::{Authenticated, Failed};
use std::time::SystemTime;

impl Visit {
    /// One request for a login that was refused; `known`: it was for the user who is served. As in
    /// sshd, what looks like guessing is told at the usual level.
    pub(super) fn log_refusal(&mut self, user: &str, method: &str, key: Option<&str>, known: bool) {
        let (user, asked, ends) = (log::name(user), log::name(method), self.ends);
        if !known && method != "none" {
            self.log.info(format_args!("Invalid user {user} from {ends}"));
        }
        let guesses = !known || self.tries.refused >= self.config.max_auth_tries / 2;
        let level = if guesses { LogLevel::Info } else { LogLevel::Verbose };
        let user = format!("{}{user}", if known { "" } else { "invalid user " });
        let key = key.map_or_else(String::new, |key| format!(": {key}"));
        self.log.write(level, format_args!("Failed {asked} for {user} from {ends} ssh2{key}"));
        self.tries.user = user;
    }

    /// Somebody is in.
    pub(super) fn log_login(&self, authenticated: &Authenticated, key: &PublicKey) {
        let login = authenticated.login();
        let (user, method, ends, key) = (&login.user, login.method, self.ends, describe(key));
        self.log.info(format_args!("Accepted {method} for {user} from {ends} ssh2: {key}"));
    }

    /// Why nobody is.
    pub(super) fn log_failure(&self, failure: &Failure) {
        let ends = self.ends;
        match failure {
            Failure::Engine(Error::Timeout(_)) => {
                self.log.error(format_args!("Timeout before authentication for {ends}"));
            }
            Failure::Engine(Error::Closed) => {
                self.log.info(format_args!("Connection closed by {ends} [preauth]"));
            }
            Failure::Engine(Error::Disconnected(code, text)) => {
                self.log
                    .info(format_args!("Received disconnect from {ends}:{code}: {text} [preauth]"));
            }
            Failure::Engine(Error::Protocol(proto::Error::Auth(Failed::TooMany))) => {
                let user = &self.tries.user;
                self.log.error(format_args!(
                    "maximum authentication attempts exceeded for {user} from {ends} ssh2 [preauth]"
                ));
            }
            Failure::Engine(Error::Protocol(error)) if error.is_early_channel() => {
                self.log.info(format_args!("Connection with {ends}: {error} [preauth]"));
            }
            Failure::Engine(error) => {
                self.log.error(format_args!("Connection with {ends}: {error} [preauth]"));
            }
            Failure::Local(error) => self.log.error(format_args!("{error:#}")),
        }
    }

    /// Both sides say how much arrived, above all when the connection broke.
    pub(super) fn log_end(
        &self,
        user: &str,
        traffic: Traffic,
        end: Result<(), Error>,
    ) -> Result<(), ()> {
        let ends = self.ends;
        let quiet = match &end {
            Ok(()) => true,
            // SSH_DISCONNECT_BY_APPLICATION: how clients say goodbye.
            Err(Error::Disconnected(11, _)) => true,
            Err(Error::Closed) => {
                self.log.info(format_args!("Connection closed by user {user} {ends}"));
                false
            }
            Err(error) => {
                self.log.error(format_args!("Connection with user {user} {ends}: {error}"));
                false
            }
        };
        if quiet {
            self.log.info(format_args!("Disconnected from user {user} {ends}"));
        }
        let end = match &end {
            Err(error) if !quiet => error.to_string(),
            _ => "disconnected by user".to_owned(),
        };
        self.log_transfer(user, &traffic, &end);
        if quiet { Ok(()) } else { Err(()) }
    }

    /// The transfer log.
    fn log_transfer(&self, user: &str, traffic: &Traffic, end: &str) {
        let guest = Guest {
            ends: self.ends,
            user,
            client: &traffic.client,
            negotiated: traffic.negotiated,
            duration: self.began.elapsed(),
            end,
        };
        let clear = (traffic.figures.received.clear, traffic.figures.sent.clear);
        if clear != (0, 0) {
            let (ends, (received, sent)) = (self.ends, clear);
            self.log.info(format_args!(
                "Unencrypted for user {user} from {ends}: received {received} bytes, sent {sent} bytes"
            ));
        }
        let record = transfer::record(&guest, &traffic.figures, SystemTime::now());
        self.log.info(format_args!("Transfer: {}", record.line()));
        if let Some(path) = self.config.transfer_log()
            && let Err(error) = transfer::append(&record, path)
        {
            self.log.error(format_args!("TransferLog {}: {error}", path.display()));
        }
    }
}

/// A key as sshd's log has it: `ED25519 SHA256:...`.
fn describe(key: &PublicKey) -> String {
    let kind = key.key_type();
    let kind = kind.strip_prefix("ssh-").or_else(|| kind.split('-').next()).unwrap_or(kind);
    format!("{} {}", kind.to_ascii_uppercase(), key.fingerprint())
}

/// What a session did.
#[derive(Default)]
pub(super) struct Traffic {
    figures: Figures,
    negotiated: Option<proto::Negotiated>,
    /// The client's software version.
    client: String,
}

impl Traffic {
    /// A session that is over.
    pub(super) fn of(session: &Session) -> Self {
        let (negotiated, client) = session.transport(|transport| {
            let client = transport.peer().map(|peer| peer.ident().software().to_owned());
            (transport.negotiated().copied(), client.unwrap_or_default())
        });
        Self { figures: session.figures(), negotiated, client }
    }
}

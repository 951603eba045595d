//! Channel requests of a session (RFC 4254 sections 6.2 to 6.10, OpenSSH PROTOCOL sections 2.1
//! and 2.2): one row per name says who may receive it and how it is read.

use crate::Role;
use wire::{Malformed, Reader, Writer, msg};

/// A terminal's size (RFC 4254 sections 6.2 and 6.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TermSize {
    /// Characters per line.
    pub columns: u32,
    /// Lines.
    pub rows: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// A request that we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a command (section 6.5).
    Exec(Vec<u8>),
    /// Run the user's shell (section 6.5).
    Shell,
    /// Run a subsystem (section 6.5).
    Subsystem(String),
    /// Set an environment variable (section 6.4).
    Env {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// Allocate a terminal (section 6.2).
    Pty {
        /// `TERM`.
        term: String,
        /// Its size.
        size: TermSize,
        /// Encoded modes (section 8).
        modes: Vec<u8>,
    },
    /// The terminal's size changed (section 6.7).
    WindowChange(TermSize),
    /// Deliver a signal, by its name without `SIG` (section 6.9).
    Signal(String),
    /// The command ended (section 6.10).
    ExitStatus(u32),
    /// The command was killed (section 6.10).
    ExitSignal {
        /// The signal's name without `SIG`.
        name: String,
        /// It dumped core.
        core: bool,
        /// The server's words; escape them before they reach a terminal.
        text: String,
    },
    /// The receiver of our data wants no more of it (OpenSSH PROTOCOL section 2.1).
    EndOfWrite,
    /// Only there to be answered (OpenSSH's ClientAlive and ServerAlive).
    Keepalive,
}

type Read = fn(&mut Reader<'_>) -> Result<Request, Malformed>;

/// Name, who may receive it, how to read what follows `want reply`.
#[rustfmt::skip]
const ROWS: &[(&str, Receiver, Read)] = &[
    ("exec",                  Receiver::Server, |r| Ok(Request::Exec(r.string("command")?.to_vec()))),
    ("shell",                 Receiver::Server, |_| Ok(Request::Shell)),
    ("subsystem",             Receiver::Server, |r| Ok(Request::Subsystem(r.text("subsystem")?.to_owned()))),
    ("env",                   Receiver::Server, read_env),
    ("pty-req",               Receiver::Server, read_pty),
    ("window-change",         Receiver::Server, |r| Ok(Request::WindowChange(read_size(r)?))),
    ("signal",                Receiver::Server, |r| Ok(Request::Signal(r.text("signal")?.to_owned()))),
    ("exit-status",           Receiver::Client, |r| Ok(Request::ExitStatus(r.u32("exit status")?))),
    ("exit-signal",           Receiver::Client, read_exit_signal),
    ("eow@openssh.com",       Receiver::Both,   |_| Ok(Request::EndOfWrite)),
    ("keepalive@openssh.com", Receiver::Both,   |_| Ok(Request::Keepalive)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Client,
    Server,
    Both,
}

impl Receiver {
    fn is(self, role: Role) -> bool {
        match self {
            Self::Both => true,
            Self::Client => role == Role::Client,
            Self::Server => role == Role::Server,
        }
    }
}

impl Request {
    /// Reads what follows `want reply`. `None`: not a request that `role` knows.
    pub(super) fn read(
        role: Role,
        name: &str,
        r: &mut Reader<'_>,
    ) -> Result<Option<Self>, Malformed> {
        let row = ROWS.iter().find(|(known, receiver, _)| *known == name && receiver.is(role));
        let Some((_, _, read)) = row else { return Ok(None) };
        let request = read(r)?;
        r.end("CHANNEL_REQUEST")?;
        Ok(Some(request))
    }

    /// The whole CHANNEL_REQUEST.
    pub(super) fn write(&self, recipient: u32, want_reply: bool) -> Vec<u8> {
        let mut w = Writer::message(msg::CHANNEL_REQUEST);
        w.u32(recipient).string(self.name()).bool(want_reply);
        match self {
            Self::Exec(command) => w.string(command),
            Self::Subsystem(name) | Self::Signal(name) => w.string(name),
            Self::Env { name, value } => w.string(name).string(value),
            Self::Pty { term, size, modes } => write_size(w.string(term), size).string(modes),
            Self::WindowChange(size) => write_size(&mut w, size),
            Self::ExitStatus(status) => w.u32(*status),
            Self::ExitSignal { name, core, text } => {
                w.string(name).bool(*core).string(text).string("")
            }
            Self::Shell | Self::EndOfWrite | Self::Keepalive => &mut w,
        };
        w.finish()
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Shell => "shell",
            Self::Subsystem(_) => "subsystem",
            Self::Env { .. } => "env",
            Self::Pty { .. } => "pty-req",
            Self::WindowChange(_) => "window-change",
            Self::Signal(_) => "signal",
            Self::ExitStatus(_) => "exit-status",
            Self::ExitSignal { .. } => "exit-signal",
            Self::EndOfWrite => "eow@openssh.com",
            Self::Keepalive => "keepalive@openssh.com",
        }
    }
}

fn read_env(r: &mut Reader<'_>) -> Result<Request, Malformed> {
    let name = r.string("variable name")?.to_vec();
    let value = r.string("variable value")?.to_vec();
    Ok(Request::Env { name, value })
}

fn read_pty(r: &mut Reader<'_>) -> Result<Request, Malformed> {
    let term = r.text("TERM")?.to_owned();
    let size = read_size(r)?;
    let modes = r.string("terminal modes")?.to_vec();
    Ok(Request::Pty { term, size, modes })
}

fn read_exit_signal(r: &mut Reader<'_>) -> Result<Request, Malformed> {
    let name = r.text("signal")?.to_owned();
    let core = r.bool("core dumped")?;
    let text = String::from_utf8_lossy(r.string("error message")?).into_owned();
    r.string("language tag")?;
    Ok(Request::ExitSignal { name, core, text })
}

fn read_size(r: &mut Reader<'_>) -> Result<TermSize, Malformed> {
    const WHAT: &str = "terminal size";
    let (columns, rows) = (r.u32(WHAT)?, r.u32(WHAT)?);
    Ok(TermSize { columns, rows, width: r.u32(WHAT)?, height: r.u32(WHAT)? })
}

fn write_size<'w>(w: &'w mut Writer, size: &TermSize) -> &'w mut Writer {
    w.u32(size.columns).u32(size.rows).u32(size.width).u32(size.height)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Request> {
        let size = TermSize { columns: 80, rows: 24, width: 640, height: 480 };
        vec![
            Request::Exec(b"cat \xff".to_vec()),
            Request::Shell,
            Request::Subsystem("sftp".into()),
            Request::Env { name: b"LANG".to_vec(), value: b"C".to_vec() },
            Request::Pty { term: "vt100".into(), size, modes: vec![0] },
            Request::WindowChange(size),
            Request::Signal("INT".into()),
            Request::ExitStatus(255),
            Request::ExitSignal { name: "KILL".into(), core: true, text: "out".into() },
            Request::EndOfWrite,
            Request::Keepalive,
        ]
    }

    fn read(role: Role, message: &[u8]) -> Result<Option<Request>, Malformed> {
        let mut r = Reader::new(message);
        r.u8("number")?;
        r.u32("recipient")?;
        let name = r.text("request")?;
        r.bool("want reply")?;
        Request::read(role, name, &mut r)
    }

    #[test]
    fn every_request_reads_as_it_was_written_by_the_side_that_may_receive_it() {
        for request in all() {
            let message = request.write(7, true);
            let (client, server) = (read(Role::Client, &message), read(Role::Server, &message));
            let (_, receiver, _) = ROWS.iter().find(|row| row.0 == request.name()).unwrap();
            let expect = |role| receiver.is(role).then_some(request.clone());
            assert_eq!(client.unwrap(), expect(Role::Client), "{}", request.name());
            assert_eq!(server.unwrap(), expect(Role::Server), "{}", request.name());
        }
        assert_eq!(all().len(), ROWS.len());
    }

    #[test]
    fn every_cut_and_every_extra_byte_of_a_request_is_malformed() {
        for request in all() {
            let whole = request.write(7, false);
            let role =
                if read(Role::Server, &whole) == Ok(None) { Role::Client } else { Role::Server };
            for n in 0..whole.len() {
                assert!(read(role, &whole[..n]).is_err(), "{} at {n}", request.name());
            }
            assert!(read(role, &[&whole[..], &[0]].concat()).is_err(), "{}", request.name());
        }
    }
}

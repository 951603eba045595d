//! ProxyCommand and ProxyJump (ssh_config(5)): what reaches the server in place of a socket of
//! ours. The one that is given first counts (`rows`).
//!
//! A jump is a call of lhssh: through the last host on the way, with `-W` to the server and with
//! `-J` for the hosts before it, as ssh(1) calls itself. It is a list of arguments, never text for
//! a shell.

use super::{Client, Destination, Files};
use crate::choice::LogLevel;
use crate::error::Error;
use crate::expand::{self, Tokens};
use crate::field::{Field, Input};
use std::ffi::OsString;

/// A command for the user's shell, all of the line; the word `none` takes it away.
#[derive(Debug, Clone, Default)]
pub(super) struct ProxyCommand(pub(super) Option<String>);

impl Field for ProxyCommand {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        self.0 = unless_none(input.one()?).map(str::to_owned);
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.0.iter().cloned().collect()
    }

    fn syntax(&self) -> &'static str {
        "text|none"
    }
}

/// Hosts to go through; the word `none` takes them away.
#[derive(Debug, Clone, Default)]
pub(super) struct ProxyJump(pub(super) Option<Hops>);

impl Field for ProxyJump {
    fn set(&mut self, input: &Input<'_>) -> Result<(), String> {
        self.0 = unless_none(input.one()?).map(Hops::parse).transpose()?;
        Ok(())
    }

    fn show(&self) -> Vec<String> {
        self.0.iter().map(Hops::show).collect()
    }

    fn syntax(&self) -> &'static str {
        "host,...|none"
    }
}

fn unless_none(text: &str) -> Option<&str> {
    (!text.eq_ignore_ascii_case("none")).then_some(text)
}

/// How lhssh is called so that its standard input and output are a connection to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jump {
    /// The host that connects to the server.
    pub via: String,
    /// The arguments.
    pub args: Vec<OsString>,
}

/// The hosts on the way, in their order: at least one.
#[derive(Debug, Clone)]
pub(super) struct Hops {
    /// All but the last, as they were written.
    written: Option<String>,
    earlier: Vec<Destination>,
    last: Destination,
}

impl Hops {
    fn parse(text: &str) -> Result<Self, String> {
        let (written, last) = match text.rsplit_once(',') {
            Some((written, last)) => (Some(written.to_owned()), last),
            None => (None, text),
        };
        let earlier = written.iter().flat_map(|hosts| hosts.split(','));
        let earlier = earlier.map(Destination::hop).collect::<Result<_, _>>()?;
        Ok(Self { earlier, last: Destination::hop(last)?, written })
    }

    /// As `ssh -G` has it, which only takes the last one apart.
    fn show(&self) -> String {
        let before = self.written.iter().map(|written| format!("{written},"));
        before.chain([show(&self.last)]).collect()
    }

    /// What reaches `conf`'s server through them.
    ///
    /// As with ssh, options of the command line are the server's: the hosts on the way have their
    /// own in the configuration files.
    pub(super) fn call(&self, conf: &Client) -> Result<Jump, Error> {
        let port = conf.port.to_string();
        let tokens = conf.proxy_tokens(&port);
        let last = expanded(&self.last, &tokens)?;
        refuse_loop(&last, conf)?;
        let mut args: Vec<OsString> = Vec::new();
        args.extend(last.user.iter().flat_map(|user| ["-l".into(), user.into()]));
        args.extend(last.port.iter().flat_map(|port| ["-p".into(), port.to_string().into()]));
        if !self.earlier.is_empty() {
            args.extend(["-J".into(), self.earlier_expanded(&tokens)?.into()]);
        }
        match &conf.files {
            Files::Standard => {}
            Files::None => args.extend(["-F".into(), "none".into()]),
            Files::Only(path) => args.extend(["-F".into(), path.into()]),
        }
        args.extend(verbosity(conf.log_level).map(OsString::from));
        let server = format!("[{}]:{port}", conf.host_name);
        args.extend(["-W".into(), server.into(), "--".into(), (&last.host).into()]);
        Ok(Jump { via: last.host, args })
    }

    /// For `-J`, where tokens are expanded once more.
    fn earlier_expanded(&self, tokens: Tokens<'_>) -> Result<String, Error> {
        let hops = self.earlier.iter().map(|hop| expanded(hop, tokens).map(|hop| show(&hop)));
        Ok(hops.collect::<Result<Vec<_>, _>>()?.join(",").replace('%', "%%"))
    }
}

/// `[user@]host[:port]`; brackets where the host could be taken for something else, or, as in
/// ssh, is numbers only.
fn show(hop: &Destination) -> String {
    let Destination { host, user, port } = hop;
    let user = user.as_ref().map_or(String::new(), |user| format!("{user}@"));
    let numeric = host.contains(':') || host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    if numeric { format!("{user}[{host}]{port}") } else { format!("{user}{host}{port}") }
}

/// Name by name, so that what a token stands for cannot become another host on the way.
fn expanded(hop: &Destination, tokens: Tokens<'_>) -> Result<Destination, Error> {
    let expand = |text: &str| {
        let text =
            expand::percent(text, tokens).map_err(|why| Error::Expansion("ProxyJump", why))?;
        match text.contains([',', '[', ']']) {
            true => Err(Error::Name("jump host", text, "it has commas or brackets")),
            false => Ok(text),
        }
    };
    let host = expand(&hop.host)?;
    let user = hop.user.as_deref().map(expand).transpose()?;
    let hop = Destination { host, user, port: hop.port };
    hop.check()?;
    match hop.host.contains('@') {
        true => Err(Error::Name("jump host", hop.host, "it has an '@'")),
        false => Ok(hop),
    }
}

/// A host through itself would start one program after the other.
fn refuse_loop(hop: &Destination, conf: &Client) -> Result<(), Error> {
    let same_host = [&conf.host_name, &conf.host].iter().any(|n| n.eq_ignore_ascii_case(&hop.host));
    let same_user = hop.user.as_ref().is_none_or(|user| *user == conf.user);
    match same_host && same_user && hop.port.unwrap_or(22) == conf.port {
        true => {
            Err(Error::Expansion("ProxyJump", format!("{} is reached through itself", hop.host)))
        }
        false => Ok(()),
    }
}

fn verbosity(level: LogLevel) -> Option<&'static str> {
    match level {
        LogLevel::Debug1 => Some("-v"),
        LogLevel::Debug2 => Some("-vv"),
        LogLevel::Debug3 => Some("-vvv"),
        _ => None,
    }
}

//! The options in front of a key: what they are called, what they change, what we refuse.

use super::expiry::ExpiryTime;
use super::from::FromList;
use super::{Refusal, scan};

/// What the holder of a key may do. Flags are permissions; the server's own configuration can
/// take away more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `command=`: runs instead of whatever the client asks for.
    pub command: Option<String>,
    /// `from=`: where the client must come from.
    pub from: Option<FromList>,
    /// `environment=`: names and values, in order, the first of a name counts.
    pub environment: Vec<(String, String)>,
    /// `expiry-time=`: until when it may be used.
    pub expiry: Option<ExpiryTime>,
    /// `pty`, `no-pty`.
    pub pty: bool,
    /// `user-rc`, `no-user-rc`.
    pub user_rc: bool,
    /// `port-forwarding`, `no-port-forwarding`.
    pub port_forwarding: bool,
    /// `agent-forwarding`, `no-agent-forwarding`.
    pub agent_forwarding: bool,
    /// `x11-forwarding`, `no-x11-forwarding`.
    pub x11_forwarding: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            command: None,
            from: None,
            environment: Vec::new(),
            expiry: None,
            pty: true,
            user_rc: true,
            port_forwarding: true,
            agent_forwarding: true,
            x11_forwarding: true,
        }
    }
}

/// The permissions that have a name, `no-` and all.
type Flag = fn(&mut Options) -> &mut bool;
const FLAGS: [(&str, Flag); 5] = [
    ("pty", |o| &mut o.pty),
    ("user-rc", |o| &mut o.user_rc),
    ("port-forwarding", |o| &mut o.port_forwarding),
    ("agent-forwarding", |o| &mut o.agent_forwarding),
    ("x11-forwarding", |o| &mut o.x11_forwarding),
];

/// Options with a value, and what sets them.
type Setter = fn(&mut Options, String) -> Result<(), Refusal>;
const VALUES: [(&str, Setter); 7] = [
    ("command", set_command),
    ("from", set_from),
    ("environment", add_environment),
    ("expiry-time", set_expiry),
    // Nothing is forwarded, so there is nothing to restrict.
    ("permitopen", check_permit_open),
    ("permitlisten", check_permit_listen),
    ("tunnel", check_tunnel),
];

/// Flags about security keys, with `no-` or without. As in sshd they mean nothing for other keys,
/// and a security key is refused as a type that is not supported.
const SECURITY_KEY: [&str; 2] = ["touch-required", "verify-required"];

/// Options of sshd(8) that speak of certificates: a line with one of them is refused. The flag says
/// whether it takes a value.
const NOT_HONOURED: [(&str, bool); 2] = [("principals", true), ("cert-authority", false)];

/// Parses the options of a line; names are compared without case.
pub(super) fn parse(text: &str) -> Result<Options, Refusal> {
    let mut options = Options::default();
    for item in scan::split_options(text)? {
        apply(&mut options, &item.name.to_ascii_lowercase(), item.value)?;
    }
    Ok(options)
}

fn apply(options: &mut Options, name: &str, value: Option<String>) -> Result<(), Refusal> {
    let unknown = || Refusal::UnknownOption(name.to_owned());
    if let Some((_, set)) = VALUES.iter().find(|(known, _)| *known == name) {
        return set(options, value.ok_or_else(|| Refusal::NoValue(name.to_owned()))?);
    }
    if let Some((known, _)) = NOT_HONOURED
        .iter()
        .find(|(known, takes_value)| *known == name && *takes_value == value.is_some())
    {
        return Err(Refusal::NotHonoured(known));
    }
    if value.is_some() {
        return Err(unknown());
    }
    let (permission, allowed) = match name.strip_prefix("no-") {
        Some(permission) => (permission, false),
        None => (name, true),
    };
    match FLAGS.iter().find(|(known, _)| *known == permission) {
        Some((_, flag)) => *flag(options) = allowed,
        None if name == "restrict" => {
            FLAGS.iter().for_each(|(_, flag)| *flag(options) = false);
        }
        None if SECURITY_KEY.contains(&permission) => {}
        None => return Err(unknown()),
    }
    Ok(())
}

fn set_command(options: &mut Options, value: String) -> Result<(), Refusal> {
    once("command", &mut options.command, value)
}

fn set_from(options: &mut Options, value: String) -> Result<(), Refusal> {
    let list = FromList::parse(&value).ok_or(Refusal::BadValue("from"))?;
    once("from", &mut options.from, list)
}

fn set_expiry(options: &mut Options, value: String) -> Result<(), Refusal> {
    let time = ExpiryTime::parse(&value).ok_or(Refusal::BadValue("expiry-time"))?;
    once("expiry-time", &mut options.expiry, time)
}

/// `host:port`.
fn check_permit_open(_: &mut Options, value: String) -> Result<(), Refusal> {
    let good = value.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && is_port(port));
    good.then_some(()).ok_or(Refusal::BadValue("permitopen"))
}

/// `port` or `host:port`.
fn check_permit_listen(_: &mut Options, value: String) -> Result<(), Refusal> {
    let good = match value.rsplit_once(':') {
        Some((host, port)) => !host.is_empty() && is_port(port),
        None => is_port(&value),
    };
    good.then_some(()).ok_or(Refusal::BadValue("permitlisten"))
}

/// The number of a device, or `any`.
fn check_tunnel(_: &mut Options, value: String) -> Result<(), Refusal> {
    let good = value == "any" || value.parse::<u32>().is_ok();
    good.then_some(()).ok_or(Refusal::BadValue("tunnel"))
}

/// A number, the name of a service, or `*` for all.
fn is_port(text: &str) -> bool {
    let is_name = || text.starts_with(|c: char| c.is_ascii_alphabetic());
    text == "*" || text.parse().is_ok_and(|port: u16| port > 0) || is_name()
}

/// Two of these contradict each other, and the wrong one could win.
fn once<T>(name: &'static str, slot: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::Twice(name)),
    }
}

fn add_environment(options: &mut Options, value: String) -> Result<(), Refusal> {
    let (name, value) = value.split_once('=').ok_or(Refusal::BadValue("environment"))?;
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || !name.bytes().all(word) {
        return Err(Refusal::BadValue("environment"));
    }
    if !options.environment.iter().any(|(known, _)| known == name) {
        options.environment.push((name.to_owned(), value.to_owned()));
    }
    Ok(())
}

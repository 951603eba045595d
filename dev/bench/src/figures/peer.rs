//! `--peer 'name=client command;server command'`: any program as one more line of every picture.
//!
//! With `{command}` in it, the client runs a command at the other end, as ssh does. Without, the
//! two are the ends of a pipe, as netcat's are. Without a server command, it is the stock sshd.

use std::str::FromStr;

/// What a command may hold; anything else in braces is a mistake.
const PLACES: &[&str] = &[
    "host",
    "port",
    "user",
    "key",
    "known_hosts",
    "config",
    "cipher",
    "mac",
    "command",
    "client_options",
    "sshd_config",
    "host_key",
    "server_options",
];

/// A program given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) client: String,
    pub(crate) server: Option<String>,
}

impl Peer {
    /// Whether it runs commands at the other end.
    pub(crate) fn runs_commands(&self) -> bool {
        self.client.contains("{command}")
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{text}': {why}");
        let (name, commands) =
            text.split_once('=').ok_or_else(|| wrong("not name=client command;server command"))?;
        let (client, server) = match commands.split_once(';') {
            Some((client, server)) => (client.trim(), Some(server.trim())),
            None => (commands.trim(), None),
        };
        if name.is_empty() || client.is_empty() {
            return Err(wrong("no name or no client command"));
        }
        for command in [Some(client), server].into_iter().flatten() {
            if let Some(place) = places(command).find(|place| !PLACES.contains(place)) {
                return Err(wrong(&format!("{{{place}}} is none of {{{}}}", PLACES.join("} {"))));
            }
        }
        if !client.contains("{port}") && !client.contains("{config}") {
            return Err(wrong("the client has neither {port} nor {config}"));
        }
        let server = server.filter(|server| !server.is_empty()).map(str::to_owned);
        let peer = Self { name: name.to_owned(), client: client.to_owned(), server };
        match peer.server {
            None if !peer.runs_commands() => Err(wrong("no {command} and no server command")),
            _ => Ok(peer),
        }
    }
}

/// What stands in braces.
fn places(command: &str) -> impl Iterator<Item = &str> {
    let after = |part: &'_ str| part.find('}');
    command.split('{').skip(1).filter_map(move |part| part.get(..after(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_two_commands_and_known_places() {
        let peer: Peer =
            "hpn=hpnssh -F {config} -c {cipher} {host} {command};hpnsshd -De -f {sshd_config}"
                .parse()
                .unwrap();
        assert_eq!((peer.name.as_str(), peer.runs_commands()), ("hpn", true));
        let pipe: Peer =
            "socat=socat - TCP:{host}:{port};socat - TCP-LISTEN:{port}".parse().unwrap();
        assert!(!pipe.runs_commands() && pipe.server.is_some());
        assert_eq!("x=y -F {config} {command}".parse::<Peer>().unwrap().server, None);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, why) in [
            ("hpn", "not name="),
            ("=a {port} {command}", "no name"),
            ("a=;b", "no client"),
            ("a=b {prot} {command}", "{prot} is none of"),
            ("a=b {command}", "neither {port} nor {config}"),
            ("a=b {port}", "no {command} and no server"),
        ] {
            let said = text.parse::<Peer>().unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }
}

//! `--peer 'name=command'`: any scp-like program as one more contender of every case.

use crate::lab::Lab;
use std::str::FromStr;

/// A program given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// For a shell, with `{src}`, `{dst}`, `{port}`, `{key}`, `{known_hosts}` and `{config}`.
    command: String,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{text}': {why}");
        let (name, command) = text.split_once('=').ok_or_else(|| wrong("not name=command"))?;
        if name.is_empty() {
            return Err(wrong("no name"));
        }
        for needed in ["{src}", "{dst}"] {
            if !command.contains(needed) {
                return Err(wrong(&format!("the command lacks {needed}")));
            }
        }
        Ok(Self { name: name.to_owned(), command: command.to_owned() })
    }
}

impl Peer {
    /// The command for one turn; paths of the bench hold nothing that a shell would read.
    pub(crate) fn command(
        &self,
        lab: &Lab,
        port: u16,
        config: &str,
        [source, target]: [&str; 2],
    ) -> Vec<String> {
        let dir = lab.user_dir(&lab.user);
        let in_dir = |name: &str| dir.join(name).display().to_string();
        let line = self
            .command
            .replace("{src}", source)
            .replace("{dst}", target)
            .replace("{port}", &port.to_string())
            .replace("{key}", &in_dir("login"))
            .replace("{known_hosts}", &in_dir("known_hosts"))
            .replace("{config}", config);
        ["bash", "-c", &line].map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_name_and_places_for_both_ends() {
        let peer: Peer = "mscp=mscp -P {port} -i {key} {src} {dst}".parse().unwrap();
        assert_eq!(peer.name, "mscp");
        for wrong in ["mscp", "=x {src} {dst}", "a=b {src}", "a=b {dst}"] {
            assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
        }
    }
}

//! The configuration on its way from the listener to a session: its length, then its text. A
//! listener that ends in between leaves a session without one, not with one that lacks its last
//! lines.

use crate::setup;
use anyhow::{Context, Result, ensure};
use conf::Server;
use conf::server::ConfigFile;
use std::io::{self, Read, Write};

/// Hands a configuration on.
pub(crate) fn give(to: &mut impl Write, config: &Server) -> io::Result<()> {
    let text = config.to_text();
    let length = u64::try_from(text.len()).map_err(io::Error::other)?;
    to.write_all(&[&length.to_be_bytes(), text.as_bytes()].concat())
}

/// The configuration that a listener hands on; an error unless it is whole.
pub(crate) fn take(from: &mut impl Read) -> Result<Server> {
    let text = read(from).context("configuration of the listener")?;
    let loaded = conf::server::load(&[], &ConfigFile::Text(text), &setup::supported());
    Ok(loaded.context("configuration of the listener")?.config)
}

fn read(from: &mut impl Read) -> Result<String> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    let mut text = String::new();
    from.take(length).read_to_string(&mut text)?;
    ensure!(u64::try_from(text.len()) == Ok(length), "not whole");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Setting;

    fn load(settings: &[&str]) -> Server {
        let given: Vec<Setting> = settings.iter().map(|s| Setting::option(s).unwrap()).collect();
        conf::server::load(&given, &ConfigFile::None, &setup::supported()).unwrap().config
    }

    fn given_on(config: &Server) -> Vec<u8> {
        let mut bytes = Vec::new();
        give(&mut bytes, config).unwrap();
        bytes
    }

    /// The last lines are Match blocks, which restrict.
    #[test]
    fn a_configuration_that_is_cut_anywhere_is_none() {
        let whole = given_on(&load(&["Port=2222"]));
        assert!(take(&mut &*whole).is_ok());
        for cut in 0..whole.len() {
            assert!(take(&mut &whole[..cut]).is_err(), "{cut}");
        }
    }

    /// Session processes get the listener's configuration in this form.
    #[test]
    fn a_configuration_survives_being_handed_on() {
        let given = [
            "Port=2222",
            "ListenAddress=[::1]:23",
            "HostKey=\"/a b/key\"",
            "PidFile=none",
            "AuthorizedKeysFile=\".ssh/my keys\" %h/other",
            "Subsystem=x \"/a b/c\" d",
            "SetEnv=\"A=b c\" D=e",
            "AcceptEnv=LANG LC_*",
            "Ciphers=aes128-ctr,aes256-ctr",
            "MaxStartups=3:50:9",
            "RekeyLimit=64K 1h",
            "LoginGraceTime=3m",
            "CryptoWorkers=3",
            "Banner=\"/etc/my \\\"#1\\\\ banner\"",
            "PermitUserEnvironment=A*,B",
            "MaxWindow=4M",
            "TestSubsystems=yes",
            "IdentifyAsOpenSSH=yes",
            "CongestionControl=cubic",
            "LogLevel=DEBUG2",
            "Subsystem=odd \"/opt/bob's/run\" \"#a\" \"b\\\\c\"",
            "ForceCommand=echo \"a  b\" # c",
        ];
        let first = load(&given);
        let again = take(&mut &*given_on(&first)).unwrap();
        assert_eq!(again.dump(), first.dump());
        assert_eq!(again.host_keys(), first.host_keys());
        assert_eq!(again.set_env, first.set_env);
        let home = std::path::Path::new("/home/u");
        let files = |c: &Server| c.authorized_keys_files("u", 1, home).unwrap();
        assert_eq!(files(&again), files(&first));
        assert_eq!(files(&again).len(), 2);
        assert_eq!(again.banner(), first.banner());
        assert_eq!(again.subsystems, first.subsystems);
        assert_eq!(again.force_command(), Some("echo \"a  b\" # c"));
    }
}

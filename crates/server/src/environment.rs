//! The environment of a command, in sshd's order: later ones win.

use crate::account::Account;
use crate::endpoint::Endpoints;
use conf::{Server, UserEnvironment};
use keys::authorized_keys::Options;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

/// Debian's sshd for users, and for root.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games";
const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Most of `~/.ssh/environment` that is read: 1000 lines, as in OpenSSH.
const MAX_LINES: usize = 1000;

/// All that a command's environment comes from.
pub(crate) struct Facts<'a> {
    pub(crate) account: &'a Account,
    pub(crate) config: &'a Server,
    pub(crate) ends: Endpoints,
    /// Who the client says it is.
    pub(crate) software: &'a str,
    /// Of the key that logged in.
    pub(crate) options: &'a Options,
    /// What the client asked for and AcceptEnv allowed.
    pub(crate) client: &'a [(OsString, OsString)],
    /// What the client wanted to run, where something else is run.
    pub(crate) original: Option<&'a OsStr>,
}

/// Names and values, each name once.
pub(crate) fn build(facts: &Facts<'_>) -> Vec<(OsString, OsString)> {
    let Facts { account, config, ends, .. } = facts;
    let mut all = Environment(Vec::new());
    facts.client.iter().for_each(|(name, value)| all.set(name, value));
    all.set("USER", &account.name);
    all.set("LOGNAME", &account.name);
    all.set("HOME", &account.home);
    all.set("PATH", if account.is_root() { ROOT_PATH } else { PATH });
    all.set("MAIL", format!("/var/mail/{}", account.name));
    all.set("SHELL", &account.shell);
    if let Some(zone) = std::env::var_os("TZ") {
        all.set("TZ", zone);
    }
    for (name, value) in user_environment(facts) {
        all.set(name, value);
    }
    config.set_env.iter().for_each(|(name, value)| all.set(name, value));
    all.set("SSH_CLIENT", ends.ssh_client());
    all.set("SSH_CONNECTION", ends.ssh_connection());
    all.set(sftp::server::CLIENT, facts.software);
    if let Some(original) = facts.original {
        all.set("SSH_ORIGINAL_COMMAND", original);
    }
    all.0
}

struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    fn set(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let (name, value) = (name.as_ref(), value.as_ref().to_owned());
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }
}

/// `environment=` of the key, then `~/.ssh/environment`, as far as PermitUserEnvironment goes.
fn user_environment(facts: &Facts<'_>) -> Vec<(OsString, OsString)> {
    let permit = &facts.config.permit_user_environment;
    if *permit == UserEnvironment::No {
        return Vec::new();
    }
    let of_key = facts.options.environment.iter().map(|(n, v)| (n.into(), v.into()));
    let file = std::fs::read(facts.account.home.join(".ssh/environment")).unwrap_or_default();
    let all = of_key.chain(parse(&file));
    all.filter(|(name, _): &(OsString, _)| name.to_str().is_some_and(|name| permit.allows(name)))
        .collect()
}

/// Lines `NAME=value`; blank lines, comments and lines without `=` are passed over.
fn parse(file: &[u8]) -> Vec<(OsString, OsString)> {
    let lines = file.split(|b| *b == b'\n').take(MAX_LINES);
    lines
        .map(<[u8]>::trim_ascii_start)
        .filter(|line| !line.starts_with(b"#") && !line.contains(&0))
        .filter_map(|line| {
            let at = line.iter().position(|b| *b == b'=')?;
            let (name, value) = line.split_at_checked(at)?;
            let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((owned(name), owned(value.get(1..)?)))
        })
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conf::Setting;
    use conf::server::ConfigFile;

    fn config(settings: &[&str]) -> Server {
        let given: Vec<_> = settings.iter().map(|s| Setting::option(s).unwrap()).collect();
        conf::server::load(&given, &ConfigFile::None, &crate::setup::supported()).unwrap().config
    }

    fn built(config: &Server, options: &Options, client: &[(&str, &str)]) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        let text = "# no\n A=file\nUSER=other\n\nnonsense\nC=c=c\n=x\n";
        std::fs::write(home.path().join(".ssh/environment"), text).unwrap();
        let account = Account {
            name: "u".into(),
            uid: 7,
            home: home.path().to_owned(),
            shell: "/bin/sh".into(),
        };
        let client: Vec<_> = client.iter().map(|(n, v)| (n.into(), v.into())).collect();
        let ends = Endpoints::default();
        let facts = Facts {
            account: &account,
            config,
            ends,
            software: "Go",
            options,
            client: &client,
            original: Some(OsStr::new("ls")),
        };
        let show = |(n, v): &(OsString, OsString)| format!("{}={}", n.display(), v.display());
        build(&facts).iter().map(show).collect()
    }

    fn has(all: &[String], line: &str) -> bool {
        all.iter().any(|have| have == line)
    }

    #[test]
    fn what_is_set_last_wins_and_no_name_comes_twice() {
        let config = config(&["SetEnv=A=admin LANG=C"]);
        let all =
            built(&config, &Options::default(), &[("A", "client"), ("HOME", "/x"), ("L", "l")]);
        for line in ["A=admin", "LANG=C", "L=l", "USER=u", "SHELL=/bin/sh", "MAIL=/var/mail/u"] {
            assert!(has(&all, line), "{line} not in {all:?}");
        }
        assert!(has(&all, "SSH_ORIGINAL_COMMAND=ls"));
        assert!(has(&all, "LONGHAUL_CLIENT=Go"));
        assert!(has(&all, "SSH_CONNECTION=UNKNOWN 65535 UNKNOWN 65535"));
        assert!(!has(&all, "HOME=/x"));
        assert_eq!(all.iter().filter(|line| line.starts_with("A=")).count(), 1);
    }

    /// Effect of PermitUserEnvironment (D6).
    #[test]
    fn the_users_own_variables_count_as_far_as_permitted() {
        let mut options = Options::default();
        options.environment.push(("B".into(), "key".into()));
        let no = built(&config(&[]), &options, &[]);
        assert!(!no.iter().any(|line| ["A=", "B=", "C="].iter().any(|n| line.starts_with(n))));
        let yes = built(&config(&["PermitUserEnvironment=yes"]), &options, &[]);
        for line in ["A=file", "B=key", "C=c=c", "USER=other"] {
            assert!(has(&yes, line), "{line} not in {yes:?}");
        }
        let some = built(&config(&["PermitUserEnvironment=A*,B"]), &options, &[]);
        assert!(has(&some, "A=file") && has(&some, "B=key") && has(&some, "USER=u"));
        assert!(!has(&some, "C=c=c"));
    }
}

//! The server's configuration: one table of files and what follows from them, then the same files
//! against `sshd -T` where it can run.

use super::*;
use crate::row::Level;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;

fn supported() -> Supported {
    Supported {
        ciphers: vec!["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr"],
        macs: vec!["hmac-sha2-256-etm@openssh.com", "hmac-sha2-256"],
        kex: vec!["curve25519-sha256", "ecdh-sha2-nistp256"],
        signatures: vec!["ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"],
    }
}

fn load_text(text: &str) -> Result<Loaded<Server>, Error> {
    load_with(&[], text)
}

fn load_with(options: &[&str], text: &str) -> Result<Loaded<Server>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    std::fs::write(&file, text).unwrap();
    let given: Vec<Setting> = options.iter().map(|o| Setting::option(o).unwrap()).collect();
    load(&given, &ConfigFile::Only(file), &supported())
}

fn lines_by_keyword(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        map.entry(keyword.to_owned()).or_default().push(value.to_owned());
    }
    map
}

/// File, keyword, what the dump says of it.
const CASES: &[(&str, &str, &str)] = &[
    ("Port 1\nPort 2", "port", "1|2"),
    ("", "port", "22"),
    ("ListenAddress 127.0.0.1:7\nListenAddress [::1]:8", "listenaddress", "127.0.0.1:7|[::1]:8"),
    ("AddressFamily inet\nAddressFamily inet6", "addressfamily", "inet"),
    ("PidFile none", "pidfile", "none"),
    ("LogLevel DEBUG", "loglevel", "DEBUG"),
    ("LogLevel verbose", "loglevel", "VERBOSE"),
    ("LoginGraceTime 2m", "logingracetime", "120"),
    ("MaxStartups 5", "maxstartups", "5:30:5"),
    ("MaxStartups 5:50:60", "maxstartups", "5:50:60"),
    ("MaxAuthTries 3\nMaxAuthTries 9", "maxauthtries", "3"),
    ("MaxSessions 0", "maxsessions", "0"),
    ("ClientAliveInterval 1h\nClientAliveCountMax 0", "clientaliveinterval", "3600"),
    ("AuthorizedKeysFile /a/%u .ssh/b", "authorizedkeysfile", "/a/%u .ssh/b"),
    ("AuthorizedKeysFile none", "authorizedkeysfile", "none"),
    ("PubkeyAuthentication no", "pubkeyauthentication", "no"),
    ("StrictModes no", "strictmodes", "no"),
    ("Subsystem sftp /x/y -l INFO\nSubsystem z w", "subsystem", "sftp /x/y -l INFO|z w"),
    ("AcceptEnv LANG LC_*\nAcceptEnv X", "acceptenv", "LANG|LC_*|X"),
    ("PermitUserEnvironment LANG,LC_*", "permituserenvironment", "LANG,LC_*"),
    ("PermitUserEnvironment yes", "permituserenvironment", "yes"),
    ("SetEnv A=1 B=2\nSetEnv C=3", "setenv", "A=1|B=2"),
    ("Ciphers aes128-ctr,aes128-gcm@openssh.com", "ciphers", "aes128-ctr,aes128-gcm@openssh.com"),
    ("RekeyLimit 1G 1h", "rekeylimit", "1073741824 3600"),
    ("Banner /etc/issue", "banner", "/etc/issue"),
    ("Banner none", "banner", "none"),
    ("PrintMotd no\nUseDNS yes\nTCPKeepAlive no", "usedns", "yes"),
    ("KexAlgorithms curve25519-sha256", "kexalgorithms", "curve25519-sha256"),
    ("PubkeyAcceptedKeyTypes ssh-ed25519", "pubkeyacceptedalgorithms", "ssh-ed25519"),
    ("TestSubsystems yes", "testsubsystems", "yes"),
    ("MaxSockBuf 128M", "maxsockbuf", "134217728"),
    ("CryptoWorkers auto", "cryptoworkers", "auto"),
];

#[test]
fn files_say_what_sshd_config_says() {
    for (text, keyword, want) in CASES {
        let loaded = load_text(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let dump = lines_by_keyword(&loaded.config.dump());
        assert_eq!(dump.get(*keyword).unwrap().join("|"), *want, "{text}");
    }
}

#[test]
fn errors_name_file_line_and_what_is_wrong() {
    let cases = [
        ("Port 1\nFoo 1", "line 2: Bad configuration option: Foo"),
        ("Host x", "line 1: Bad configuration option: Host"),
        ("Match user x", "line 1: Match is not supported yet"),
        ("ListenAddress [::1", "line 1: ListenAddress: '[::1' is not an address"),
        ("ListenAddress 1.2.3.4 rdomain x", "line 1: ListenAddress: extra value"),
        ("MaxStartups 10:30", "line 1: MaxStartups: '10:30' is not start"),
        ("Subsystem sftp", "line 1: Subsystem: subsystem 'sftp' has no command"),
        ("Subsystem a b\nSubsystem a c", "line 2: Subsystem: subsystem 'a' is already defined"),
        ("SetEnv A", "line 1: SetEnv: 'A' is not NAME=value"),
        ("AcceptEnv A=b", "line 1: AcceptEnv: 'A=b' is not a variable's name"),
        ("AuthorizedKeysFile none x", "line 1: AuthorizedKeysFile: 'none' does not go with"),
        ("StrictModes 1", "line 1: StrictModes: '1' is neither yes nor no"),
    ];
    for (text, want) in cases {
        let error = load_text(text).err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

#[test]
fn what_would_grant_more_than_was_written_is_refused() {
    for line in [
        "AllowUsers a",
        "DenyUsers a",
        "AllowGroups a",
        "DenyGroups a",
        "ForceCommand x",
        "ChrootDirectory /x",
        "AuthenticationMethods publickey,password",
        "PermitRootLogin no",
        "PermitRootLogin forced-commands-only",
        "RevokedKeys /x",
        "Match all",
        "RequiredRSASize 4096",
        "PerSourceMaxStartups 2",
        "UnusedConnectionTimeout 10",
        "ChannelTimeout *=10",
    ] {
        let error = load_text(line).unwrap_err();
        assert!(matches!(error, Error::NotYet(..)), "{line}: {error}");
    }
    for line in [
        "ForceCommand none",
        "ChrootDirectory none",
        "AuthenticationMethods any",
        "AuthenticationMethods publickey",
        "PermitRootLogin prohibit-password",
    ] {
        load_text(line).unwrap();
    }
}

#[test]
fn ports_and_addresses_make_places_to_listen() {
    let listen = |options: &[&str], text: &str| {
        let config = load_with(options, text).unwrap().config;
        let show = |(host, port): (Option<&str>, u16)| format!("{} {port}", host.unwrap_or("*"));
        config.listen().into_iter().map(show).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(listen(&[], ""), "* 22");
    assert_eq!(listen(&[], "Port 1\nPort 2\nPort 1"), "* 1, * 2");
    assert_eq!(
        listen(&[], "Port 1\nListenAddress a\nListenAddress ::1\nPort 2\nListenAddress [b]:3"),
        "a 1, a 2, ::1 1, ::1 2, b 3"
    );
    assert_eq!(listen(&["Port=7", "Port=8"], "Port 1\nPort 2"), "* 7, * 8");
}

#[test]
fn authorized_keys_files_expand_for_their_user() {
    let files = |text: &str| {
        let config = load_text(text).unwrap().config;
        config.authorized_keys_files("me", 7, Path::new("/home/me"))
    };
    assert_eq!(files("").unwrap()[0], Path::new("/home/me/.ssh/authorized_keys"));
    let found = files("AuthorizedKeysFile /k/%u-%U %h/x %%").unwrap();
    assert_eq!(found, ["/k/me-7", "/home/me/x", "/home/me/%"].map(PathBuf::from));
    assert!(files("AuthorizedKeysFile none").unwrap().is_empty());
    assert!(files("AuthorizedKeysFile %x").is_err());
}

#[test]
fn host_keys_that_are_named_replace_the_usual_ones() {
    let config = load_with(&["HostKey=/a"], "HostKey /b").unwrap().config;
    assert_eq!(config.host_keys(), [Path::new("/a"), Path::new("/b")]);
    assert!(config.host_keys_given());
    assert!(!load_text("").unwrap().config.host_keys_given());
}

#[test]
fn a_named_file_must_exist_and_none_reads_none() {
    let load = |file| load(&[], &file, &supported());
    assert!(matches!(load(ConfigFile::Only("/no/such".into())), Err(Error::File(..))));
    assert!(load(ConfigFile::from_option(Path::new("none"))).is_ok());
}

#[test]
fn the_stock_file_of_debian_loads() {
    let text = "Include /etc/ssh/sshd_config.d/*.conf\nKbdInteractiveAuthentication no\nUsePAM yes\n\
                X11Forwarding yes\nPrintMotd no\nAcceptEnv LANG LC_*\n\
                Subsystem\tsftp\t/usr/lib/openssh/sftp-server\n";
    let Loaded { config, notices } = load_text(text).unwrap();
    assert_eq!(config.subsystems.command("sftp"), Some("/usr/lib/openssh/sftp-server"));
    let warned = notices.iter().filter(|notice| notice.level == Level::Warning).count();
    assert_eq!(warned, 1, "only UsePAM: {notices:?}");
}

/// Lines of `sshd -T`, or nothing where it is not installed or cannot run.
fn openssh_dump(text: &str) -> Option<BTreeMap<String, Vec<String>>> {
    let dir = tempfile::tempdir().unwrap();
    let (file, key) = (dir.path().join("config"), dir.path().join("key"));
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    made.ok().filter(|status| status.success())?;
    std::fs::write(&file, text).unwrap();
    let mut sshd = Command::new("/usr/sbin/sshd");
    let output = sshd.arg("-T").arg("-f").arg(&file).arg("-h").arg(&key).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Missing privilege separation directory") {
        return None;
    }
    assert!(output.status.success(), "{text}: {said}");
    Some(lines_by_keyword(&String::from_utf8_lossy(&output.stdout)))
}

#[test]
fn sshd_itself_understands_the_same_files_in_the_same_way() {
    let ours = ["TestSubsystems", "MaxSockBuf", "CryptoWorkers"];
    let mut compared = 0;
    for (text, keyword, want) in CASES {
        if ours.iter().any(|word| text.contains(word)) {
            continue;
        }
        let Some(theirs) = openssh_dump(text) else { return };
        // sshd -T lists addresses in an order of its own.
        let mut theirs = theirs.get(*keyword).cloned().unwrap_or_default();
        let mut want: Vec<&str> = want.split('|').collect();
        theirs.sort_unstable();
        want.sort_unstable();
        assert_eq!(theirs, want, "{text}");
        compared += 1;
    }
    assert!(compared > 20);
}

#[test]
fn defaults_that_both_have_are_those_of_sshd() {
    let Some(theirs) = openssh_dump("") else { return };
    let ours = lines_by_keyword(&load_text("").unwrap().config.dump());
    let differ = [
        "hostkey",
        "pidfile",
        "ciphers",
        "macs",
        "kexalgorithms",
        "hostkeyalgorithms",
        "pubkeyacceptedalgorithms",
        "listenaddress",
    ];
    for (keyword, values) in ours.iter().filter(|(k, _)| !differ.contains(&k.as_str())) {
        if let Some(theirs) = theirs.get(keyword) {
            assert_eq!(theirs, values, "{keyword}");
        }
    }
}

#[test]
fn what_sshd_prints_of_its_defaults_loads() {
    let Some(theirs) = openssh_dump("") else { return };
    for (keyword, values) in &theirs {
        for value in values {
            load_text(&format!("{keyword} {value}")).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_value_panics(row in 0..TABLE.rows.len(), args in prop::collection::vec("\\PC{0,20}", 0..4)) {
        let mut setting = Setting::given(TABLE.rows[row].name, "");
        setting.args = args;
        if let Ok(Loaded { config, .. }) = load(&[setting], &ConfigFile::None, &supported()) {
            let _ = (config.dump(), config.listen().len(), config.host_keys());
            let _ = config.authorized_keys_files("me", 0, Path::new("/home/me"));
        }
    }

    #[test]
    fn a_dump_reads_back_as_itself(port in 1u16.., start in 1u32..99, rate in 1u32..=100, grace in 0u32..9999) {
        let text = format!("Port {port}\nPort 1\nMaxStartups {start}:{rate}:100\nLoginGraceTime {grace}\n\
                            ListenAddress [::1]:{port}\nSubsystem a 'b c' d\nSetEnv A=b\nAcceptEnv C");
        let first = load_text(&text).unwrap().config.dump();
        // A command has become a shell's text, which a file's quotes are not.
        let lines = |dump: &str| {
            dump.lines().filter(|l| !l.starts_with("subsystem")).collect::<Vec<_>>().join("\n")
        };
        prop_assert_eq!(lines(&load_text(&lines(&first)).unwrap().config.dump()), lines(&first));
    }
}

//! The server's configuration: one table of files and what follows from them, then the same files
//! against `sshd -T` where it can run.

use super::*;
use crate::row::Level;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;

const SSHD: &str = "/usr/sbin/sshd";

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
    ("ForceCommand  echo 'a  b' # \"c\"", "forcecommand", "echo 'a  b' # \"c\""),
    ("ForceCommand none", "forcecommand", "none"),
    ("ForceCommand internal-sftp -R\nForceCommand x", "forcecommand", "internal-sftp -R"),
    ("TestSubsystems yes", "testsubsystems", "yes"),
    ("IdentifyAsOpenSSH yes", "identifyasopenssh", "yes"),
    ("MaxSockBuf 128M", "maxsockbuf", "134217728"),
    ("NoneEnabled yes\nNoneMacEnabled yes", "noneenabled", "yes"),
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
        ("Match user", "line 1: Match user: missing value"),
        ("Match user x\nPort 1", "line 2: Port is not allowed within a Match block"),
        ("Match user x\nUseDNS yes", "line 2: UseDNS is not allowed within a Match block"),
        ("Match user x\nFoo 1", "line 2: Bad configuration option: Foo"),
        ("Match user x\nMaxSessions many", "line 2: MaxSessions: 'many' is not a number"),
        ("Match user x\nChrootDirectory /x", "line 2: ChrootDirectory is not supported yet"),
        ("Match rdomain x", "line 1: Match: unsupported criterion rdomain"),
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
        "ChrootDirectory /x",
        "AuthenticationMethods publickey,password",
        "PermitRootLogin maybe",
        "RevokedKeys /x",
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

/// A server that is an ordinary user's lets root in in no case.
#[test]
fn a_hardened_file_loads_for_an_ordinary_user() {
    for line in ["PermitRootLogin no", "PermitRootLogin forced-commands-only"] {
        assert_eq!(load_text(line).is_err(), nix::unistd::geteuid().is_root(), "{line}");
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
    assert_eq!(config.subsystems.command("sftp").as_deref(), Some("/usr/lib/openssh/sftp-server"));
    let warned = notices.iter().filter(|notice| notice.level == Level::Warning).count();
    assert_eq!(warned, 1, "only UsePAM: {notices:?}");
}

/// What `-T -C spec` says of a file.
fn dump_for(text: &str, spec: &str) -> BTreeMap<String, Vec<String>> {
    let mut visitor = Visitor { groups: vec!["root".to_owned()], ..Visitor::default() };
    visitor.read(spec).unwrap();
    if visitor.user.as_deref() != Some("root") {
        visitor.groups.clear();
    }
    let loaded = load_text(text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let direct = loaded.config.matched(&visitor, &supported()).unwrap();
    // Sessions get the listener's configuration as a text.
    let text = ConfigFile::Text(loaded.config.to_text());
    let handed_on = load(&[], &text, &supported()).unwrap().config;
    assert_eq!(handed_on.matched(&visitor, &supported()).unwrap().dump(), direct.dump());
    lines_by_keyword(&direct.dump())
}

/// File, `-C`, keyword, what the dump says of it.
const MATCHES: &[(&str, &str, &str, &str)] = &[
    ("MaxSessions 5\nMatch user root\nMaxSessions 7", "user=root", "maxsessions", "7"),
    ("MaxSessions 5\nMatch user root\nMaxSessions 7", "user=x", "maxsessions", "5"),
    ("MaxSessions 5\nMatch user root\nMaxSessions 7", "addr=10.0.0.1", "maxsessions", "5"),
    (
        "Match user root\nMaxSessions 1\nMatch user r*\nMaxSessions 2",
        "user=root",
        "maxsessions",
        "1",
    ),
    ("Match user !root,*\nMaxSessions 1", "user=root", "maxsessions", "10"),
    ("Match user !root,*\nMaxSessions 1", "user=x", "maxsessions", "1"),
    ("Match group root\nMaxSessions 1", "user=root", "maxsessions", "1"),
    ("Match group root\nMaxSessions 1", "user=no-such-user", "maxsessions", "10"),
    ("Match group !root,*\nMaxSessions 1", "user=root", "maxsessions", "10"),
    ("Match host *.Example\nMaxSessions 1", "host=a.example", "maxsessions", "1"),
    ("Match host *.example,!b.*\nMaxSessions 1", "host=b.example", "maxsessions", "10"),
    ("Match address 10.0.0.0/8\nMaxSessions 1", "addr=10.1.2.3", "maxsessions", "1"),
    ("Match address 10.0.0.0/8\nMaxSessions 1", "addr=11.1.2.3", "maxsessions", "10"),
    ("Match address 10.0.0.0/8,!10.1.0.0/16\nMaxSessions 1", "addr=10.1.2.3", "maxsessions", "10"),
    ("Match address 2001:db8::/32\nMaxSessions 1", "addr=2001:db8::7", "maxsessions", "1"),
    ("Match address 10.1.*\nMaxSessions 1", "addr=10.1.2.3", "maxsessions", "1"),
    ("Match localaddress 10.0.0.1\nMaxSessions 1", "laddr=10.0.0.1", "maxsessions", "1"),
    ("Match localport 2222\nMaxSessions 1", "lport=2222", "maxsessions", "1"),
    ("Match localport 2222\nMaxSessions 1", "lport=22", "maxsessions", "10"),
    ("Match user root address 10.*\nMaxSessions 1", "user=root,addr=10.1.1.1", "maxsessions", "1"),
    ("Match user root address 10.*\nMaxSessions 1", "user=root,addr=9.1.1.1", "maxsessions", "10"),
    ("MaxSessions 3\nMatch all\nMaxSessions 1", "user=x", "maxsessions", "1"),
    ("Match user x\nMaxSessions 3\nMatch all\nUseDNS yes", "user=y", "usedns", "yes"),
    ("AcceptEnv A\nMatch user x\nAcceptEnv B C\nAcceptEnv D", "user=x", "acceptenv", "B|C|D"),
    ("AcceptEnv A\nMatch user x\nAcceptEnv B", "user=y", "acceptenv", "A"),
    ("SetEnv A=1\nMatch user x\nSetEnv \"B=2 3\"", "user=x", "setenv", "B=2 3"),
    ("Banner /a\nMatch user x\nBanner none", "user=x", "banner", "none"),
    ("Match user x\nForceCommand echo \"a b\"", "user=x", "forcecommand", "echo \"a b\""),
    ("ForceCommand a\nMatch user x\nForceCommand none", "user=x", "forcecommand", "none"),
    ("Match user x\nX11Forwarding no\nLogLevel DEBUG", "user=x", "loglevel", "DEBUG"),
    ("Match user=x\nAuthorizedKeysFile /k/%u", "user=x", "authorizedkeysfile", "/k/%u"),
    ("Match user x\nRekeyLimit 1G 1h", "user=x", "rekeylimit", "1073741824 3600"),
];

#[test]
fn match_blocks_count_for_the_connections_they_describe() {
    for (text, spec, keyword, want) in MATCHES {
        let dump = dump_for(text, spec);
        assert_eq!(dump.get(*keyword).unwrap().join("|"), *want, "{text}: {spec}");
    }
}

#[test]
fn sshd_itself_finds_the_same_of_the_same_match_blocks() {
    if !has_sshd() {
        return;
    }
    for (text, spec, keyword, want) in MATCHES {
        let theirs = openssh_says(text, &["-C", spec]);
        let theirs = theirs.get(*keyword).cloned().unwrap_or_default();
        assert_eq!(theirs.join("|"), *want, "{text}: {spec}");
    }
}

#[test]
fn blocks_of_included_files_end_with_them_and_count_only_under_the_conditions_around() {
    let has_sshd = has_sshd();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("1.in"), "MaxSessions 1\nMatch address 10.*\nMaxAuthTries 1\n").unwrap();
    // A block ends with its file, not with the Include line.
    std::fs::write(at("2.in"), "LogLevel DEBUG\n").unwrap();
    let text = format!("Match user a\nInclude {}/*.in\n", dir.path().display());
    for (spec, want) in [
        ("user=a,addr=10.0.0.1", ["1", "1", "DEBUG"]),
        ("user=a,addr=9.0.0.1", ["1", "6", "DEBUG"]),
        ("user=b,addr=10.0.0.1", ["10", "6", "INFO"]),
    ] {
        let said = |dump: &BTreeMap<String, Vec<String>>| {
            ["maxsessions", "maxauthtries", "loglevel"].map(|k| dump.get(k).unwrap().join("|"))
        };
        assert_eq!(said(&dump_for(&text, spec)), want, "{spec}");
        if has_sshd {
            assert_eq!(said(&openssh_says(&text, &["-C", spec])), want, "{spec}: sshd");
        }
    }
}

/// What sshd lets stand in a Match block, we do, and nothing else but keywords of our own.
#[test]
fn a_match_block_may_have_what_sshds_may() {
    if !has_sshd() {
        return;
    }
    let ours = [
        "CryptoWorkers",
        "MaxSockBuf",
        "MaxWindow",
        "NoneEnabled",
        "NoneMacEnabled",
        "TestSubsystems",
    ];
    let mut differ = Vec::new();
    let all = TABLE
        .rows
        .iter()
        .map(|row| row.name)
        .chain(TABLE.missing.iter().map(|missing| missing.name));
    for name in all.filter(|name| !ours.contains(name)) {
        let text = format!("Match user x\n{name} no\n");
        let said = openssh_complaint(&text);
        if said.contains("Bad configuration option") || said.contains("Deprecated option") {
            continue; // newer, older, or another distribution's
        }
        let allowed = !said.contains("is not allowed within a Match block");
        if TABLE.is_for_match(name) != allowed {
            differ.push((name, allowed));
        }
    }
    assert_eq!(differ, [], "with what sshd does");
}

/// Whether `sshd -T` can run; without it the rest of a test is skipped.
fn has_sshd() -> bool {
    if !need::require(&[SSHD, "ssh-keygen"]) {
        return false;
    }
    let said = openssh_complaint("");
    let complete = !said.contains("Missing privilege separation directory");
    need::have(complete, said.lines().next().unwrap_or_default())
}

/// Lines of `sshd -T`.
fn openssh_dump(text: &str) -> BTreeMap<String, Vec<String>> {
    openssh_says(text, &[])
}

fn openssh_says(text: &str, more: &[&str]) -> BTreeMap<String, Vec<String>> {
    let output = openssh(text, more);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}: {said}");
    lines_by_keyword(&String::from_utf8_lossy(&output.stdout))
}

/// What sshd finds wrong with a file.
fn openssh_complaint(text: &str) -> String {
    String::from_utf8_lossy(&openssh(text, &[]).stderr).into_owned()
}

fn openssh(text: &str, more: &[&str]) -> std::process::Output {
    let dir = tempfile::tempdir().unwrap();
    let (file, key) = (dir.path().join("config"), dir.path().join("key"));
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    std::fs::write(&file, text).unwrap();
    let mut sshd = Command::new(SSHD);
    sshd.arg("-T").arg("-f").arg(&file).arg("-h").arg(&key).args(more).output().unwrap()
}

#[test]
fn sshd_itself_understands_the_same_files_in_the_same_way() {
    if !has_sshd() {
        return;
    }
    let ours =
        ["TestSubsystems", "IdentifyAsOpenSSH", "MaxSockBuf", "CryptoWorkers", "NoneEnabled"];
    let mut compared = 0;
    for (text, keyword, want) in CASES {
        if ours.iter().any(|word| text.contains(word)) {
            continue;
        }
        let theirs = openssh_dump(text);
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
    if !has_sshd() {
        return;
    }
    let theirs = openssh_dump("");
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
    if !has_sshd() {
        return;
    }
    let theirs = openssh_dump("");
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

//! The client's configuration: one table of files and what follows from them, then the same files
//! against `ssh -G` where it is installed.

use super::*;
use crate::line::Setting;
use crate::row::{Level, Loaded};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn supported() -> Supported {
    Supported {
        ciphers: vec!["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr"],
        macs: vec!["hmac-sha2-256-etm@openssh.com", "hmac-sha2-256"],
        kex: vec!["curve25519-sha256", "ecdh-sha2-nistp256"],
        signatures: vec!["ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"],
    }
}

fn local() -> Local {
    Local { home: PathBuf::from("/home/me"), user: "me".to_owned(), uid: 1000 }
}

/// Loads `text` as the only file.
fn load_text(host: &str, text: &str) -> Result<Loaded<Client>, Error> {
    load_with(host, &[], text)
}

fn load_with(host: &str, options: &[&str], text: &str) -> Result<Loaded<Client>, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    std::fs::write(&file, text).unwrap();
    let given: Vec<Setting> = options.iter().map(|o| Setting::option(o).unwrap()).collect();
    load(host, &given, &Files::Only(file), &supported(), &local())
}

fn value(config: &Client, keyword: &str) -> String {
    let lines = config.dump();
    let values = lines.lines().filter_map(|line| line.strip_prefix(keyword)?.strip_prefix(' '));
    let values = values.collect::<Vec<_>>();
    // What a dump leaves out is not set.
    if values.is_empty() { "none".to_owned() } else { values.join("|") }
}

/// Host, file, keyword, what the dump says of it.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("h", "Port 1\nPort 2", "port", "1"),
    ("h", "Host h\nPort 1\nHost *\nPort 2", "port", "1"),
    ("x", "Host h\nPort 1\nHost *\nPort 2", "port", "2"),
    ("a.x", "Host *.x !a.x\nPort 1", "port", "22"),
    ("b.x", "Host *.x !a.x\nPort 1", "port", "1"),
    ("a.x", "Host !a.x *.x\nPort 1", "port", "22"),
    ("b", "Host a? b\nPort 1", "port", "1"),
    // What cannot be had here hurts nobody where it has no effect.
    ("x", "Host h\nRequestTTY force\nHost *\nRequestTTY no", "requesttty", "false"),
    ("h", "RequestTTY no\nRequestTTY yes", "requesttty", "false"),
    ("x", "Host h\nCiphers aes256-cbc\nHost *\nCiphers aes128-ctr", "ciphers", "aes128-ctr"),
    ("h", "Ciphers aes128-ctr\nCiphers aes256-cbc", "ciphers", "aes128-ctr"),
    ("h", "HostName %h.example.ORG", "hostname", "h.example.org"),
    ("h", "User=you", "user", "you"),
    ("h", "", "user", "me"),
    ("h", "IdentityFile a\nHost h\nIdentityFile b\nIdentityFile a", "identityfile", "a|b"),
    ("h", "StrictHostKeyChecking yes", "stricthostkeychecking", "true"),
    ("h", "StrictHostKeyChecking off", "stricthostkeychecking", "false"),
    ("h", "StrictHostKeyChecking accept-new", "stricthostkeychecking", "accept-new"),
    ("h", "UserKnownHostsFile \"a b\" c", "userknownhostsfile", "a b c"),
    ("h", "UserKnownHostsFile none", "userknownhostsfile", "none"),
    ("h", "RekeyLimit 1G 1h", "rekeylimit", "1073741824 3600"),
    ("h", "RekeyLimit default none", "rekeylimit", "0 0"),
    ("h", "RekeyLimit 64K", "rekeylimit", "65536 0"),
    ("h", "ConnectTimeout 1m", "connecttimeout", "60"),
    ("h", "ConnectTimeout none", "connecttimeout", "none"),
    ("h", "ConnectTimeout 0", "connecttimeout", "0"),
    ("h", "SendEnv LANG LC_*\nSendEnv A\nSendEnv -LC_*", "sendenv", "LANG|A"),
    ("h", "SetEnv A=1 B=\"2 3\" A=4\nSetEnv C=1", "setenv", "A=1|B=2 3"),
    (
        "h",
        "Ciphers ^aes128-ctr",
        "ciphers",
        "aes128-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com",
    ),
    ("h", "Ciphers -aes*-gcm@openssh.com", "ciphers", "aes128-ctr"),
    ("h", "MACs hmac-sha2-256,umac-64@openssh.com", "macs", "hmac-sha2-256"),
    ("h", "PubkeyAcceptedKeyTypes ssh-ed25519", "pubkeyacceptedalgorithms", "ssh-ed25519"),
    ("h", "ProxyCommand none", "proxycommand", "none"),
    ("h", "ProxyCommand nc \"%h\" %p # gate", "proxycommand", "nc \"%h\" %p # gate"),
    ("h", "ProxyCommand nc %h %p\nProxyJump gate", "proxycommand", "nc %h %p"),
    ("h", "ProxyJump none\nProxyCommand nc %h %p", "proxycommand", "none"),
    ("h", "ProxyCommand nc %h %p\nProxyJump gate", "proxyjump", "none"),
    ("h", "ProxyCommand none\nProxyJump gate", "proxyjump", "none"),
    ("h", "ProxyJump gate # comment\nProxyCommand nc %h %p", "proxyjump", "gate"),
    ("h", "ProxyJump gate\nProxyCommand nc %h %p", "proxycommand", "none"),
    ("h", "ProxyJump gate\nProxyJump other", "proxyjump", "gate"),
    ("h", "ProxyJump NONE\nProxyJump other", "proxyjump", "none"),
    ("h", "ProxyJump me@a:7,b,c@d:2222", "proxyjump", "me@a:7,b,c@d:2222"),
    ("h", "ProxyJump ssh://me@a:7,ssh://b:9", "proxyjump", "ssh://me@a:7,b:9"),
    ("h", "ProxyJump 10.0.0.1,10.0.0.2", "proxyjump", "10.0.0.1,[10.0.0.2]"),
    ("h", "ProxyJump [::1]:7", "proxyjump", "[::1]:7"),
    ("h", "ProxyJump a@b@gate-%h", "proxyjump", "a@b@gate-%h"),
    ("h", "RequestTTY no", "requesttty", "false"),
    ("h", "CryptoWorkers 4", "cryptoworkers", "4"),
    ("h", "TcpRcvBuf 64M", "tcprcvbuf", "67108864"),
    ("h", "MaxWindow auto", "maxwindow", "auto"),
    ("h", "CongestionControl bbr", "congestioncontrol", "bbr"),
    ("h", "IgnoreUnknown foo,UseKey*\nFoo 1\nUseKeychain yes", "port", "22"),
    ("x", "Host h\nProxyJump gate\nLocalForward 1 a:2", "port", "22"),
    ("h", "Match host h user me\nPort 1", "port", "1"),
    ("h", "Match !host h\nPort 1\nMatch all\nUser a", "user", "a"),
    ("h", "Match !host h\nPort 1\nMatch all\nUser a", "port", "22"),
    ("H", "HostName %h.org\nMatch host h.ORG\nPort 1", "port", "1"),
    ("h", "HostName Real\nMatch originalhost h\nPort 1", "port", "1"),
    ("h", "Match user you\nPort 1\nHost h\nUser you\nMatch user you\nPort 2", "port", "2"),
    ("h", "Match host=\"h\" # comment\nPort 1", "port", "1"),
    ("h", "Match host x exec /no/such\nPort 1\nHost *\nPort 2", "port", "2"),
    ("h", "Match final\nPort 1", "port", "1"),
    ("h", "Match final\nPort 1\nMatch all\nPort 2", "port", "2"),
    ("h", "Match !final\nPort 1\nMatch final\nPort 2", "port", "1"),
    ("h", "Match canonical\nPort 1", "port", "22"),
    ("h", "Match canonical\nPort 1\nMatch final", "port", "1"),
    // In the final pass the new name counts, for Host lines, too.
    ("h", "Host real\nPort 1\nHost h\nHostName Real\nMatch final", "port", "1"),
    ("h", "Match final host real\nPort 1\nHost h\nHostName Real", "port", "1"),
    ("h", "Match final originalhost h\nPort 1\nHost h\nHostName Real", "port", "1"),
    ("h", "Match final\nHostName other", "hostname", "h"),
    ("h", "HostName a%%b.%h\nMatch final", "hostname", "a%b.h"),
    ("h", "IdentityFile a\nIdentityFile b\nMatch final\nIdentityFile c", "identityfile", "a|b|c"),
    ("h", "ControlMaster auto\nControlPath ~/.ssh/%C\nControlPersist 60s", "port", "22"),
    ("h", "ForwardX11 no\nControlMaster no\nGSSAPIAuthentication yes", "port", "22"),
];

#[test]
fn files_say_what_ssh_config_says() {
    for (host, text, keyword, want) in CASES {
        let loaded = load_text(host, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(value(&loaded.config, keyword), *want, "{host}: {text}");
    }
}

#[test]
fn errors_name_file_line_and_what_is_wrong() {
    let cases = [
        ("Port 1\nFoo 1", "line 2: Bad configuration option: Foo"),
        ("Host x\nFoo 1", "line 2: Bad configuration option: Foo"),
        ("Port 0", "line 1: Port: '0' is not a port (1 to 65535)"),
        ("Host x\n\nPort ssh", "line 3: Port: 'ssh' is not a port"),
        ("Port", "line 1: Port: missing value"),
        ("Port 1 2", "line 1: Port: extra value at end of line: '2'"),
        ("User \"me", "line 1: unbalanced quotes"),
        ("BatchMode maybe", "line 1: BatchMode: 'maybe' is neither yes nor no"),
        ("Ciphers aes128-gmc", "line 1: Ciphers: unknown algorithm 'aes128-gmc'"),
        ("MACs umac-64@openssh.com", "line 1: MACs: no supported algorithm is left"),
        ("Host *\nRequestTTY force", "line 2: RequestTTY: a terminal at the other end"),
        ("RekeyLimit 1", "line 1: RekeyLimit: '1' is too small"),
        ("Host", "line 1: Host: missing value"),
        ("Include", "line 1: Include: missing value"),
        ("Match exec true", "line 1: Match exec is not supported yet"),
        ("Match host x nope y", "line 1: Match: unsupported criterion nope"),
        ("HostName %x\nMatch host h", "HostName: unknown token %x"),
        ("ProxyJump gate,", "line 1: ProxyJump: host \"\" is refused: it is empty"),
        ("ProxyJump -oX=y", "line 1: ProxyJump: host \"-oX=y\" is refused: it starts with '-'"),
        ("ProxyJump a,-l@b", "line 1: ProxyJump: user \"-l\" is refused: it starts with '-'"),
        ("ProxyJump $(x),b", "line 1: ProxyJump: host \"$(x)\" is refused: it has characters"),
        ("ProxyJump gate:0", "line 1: ProxyJump: '0' is not a port"),
        ("ProxyJump ::1", "line 1: ProxyJump: ':1' is not a port"),
        ("ProxyJump gate-%d", "ProxyJump: unknown token %d"),
        ("ProxyJump H", "ProxyJump: H is reached through itself"),
        ("HostName gate\nUser a\nProxyJump a@gate:22", "ProxyJump: gate is reached through itself"),
        ("LocalForward 1 a:2", "line 1: LocalForward is not supported yet"),
        ("CheckHostIP yes", "line 1: CheckHostIP is not supported yet"),
        ("RevokedHostKeys /x", "line 1: RevokedHostKeys is not supported yet"),
        (
            "RequestTTY force",
            "line 1: RequestTTY: a terminal at the other end is not supported yet",
        ),
        ("HostName %x", "HostName: unknown token %x"),
        ("HostName -x", "host \"-x\" is refused"),
        ("User $(x)", "user \"$(x)\" is refused"),
        ("HostKeyAlias a;b", "host \"a;b\" is refused"),
    ];
    for (text, want) in cases {
        let error = load_text("h", text).err().unwrap_or_else(|| panic!("{text}")).to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
    let error = load_text("h", "Foo 1").unwrap_err();
    assert!(error.to_string().contains("/config line 1: "), "{error}");
    assert!(error.hint().unwrap().contains("IgnoreUnknown Foo"));
}

#[test]
fn the_command_line_comes_first_and_is_named_in_errors() {
    let loaded = load_with("h", &["Port=1", "port 2"], "Port 3").unwrap();
    assert_eq!(loaded.config.port, 1);
    let error = load_with("h", &["Port=x"], "").unwrap_err().to_string();
    assert!(error.starts_with("command line: Port: 'x'"), "{error}");
    let loaded = load_with("h", &["ProxyCommand=none"], "ProxyJump gate").unwrap();
    assert_eq!(loaded.config.proxy_command().unwrap(), None);
    let loaded = load_with("h", &["IdentityFile=/a"], "IdentityFile /b").unwrap();
    assert_eq!(loaded.config.identity_files().unwrap(), [Path::new("/a"), Path::new("/b")]);
}

#[test]
fn what_is_passed_over_is_noticed_once() {
    let text = "VisualHostKey yes\nVisualHostKey no\nTunnel no\nForwardX11 yes\nForwardAgent no";
    let notices = load_text("h", text).unwrap().notices;
    let warned: Vec<bool> = notices.iter().map(|n| n.level == Level::Warning).collect();
    assert_eq!(warned, [false, false, true, false]);
    assert!(notices[2].text.contains("line 4: ForwardX11 is not supported yet, ignored"));
}

#[test]
fn values_expand_from_checked_names() {
    let text = "HostName %h.org\nUser you\nPort 7\nIdentityFile ~/.ssh/%r@%h-%u-%d-%%\n\
                ProxyCommand nc %h %p %r %n %%\nUserKnownHostsFile ~/kh_%k\nHostKeyAlias al";
    let config = load_text("h", text).unwrap().config;
    let want = "/home/me/.ssh/you@h.org-me-/home/me-%";
    assert_eq!(config.identity_files().unwrap(), [Path::new(want)]);
    assert!(config.identity_files_given());
    assert_eq!(config.proxy_command().unwrap().unwrap(), "nc h.org 7 you h %");
    assert_eq!(config.user_known_hosts().unwrap(), [Path::new("/home/me/kh_al")]);
    let config = load_text("h", "").unwrap().config;
    assert_eq!(config.identity_files().unwrap()[0], Path::new("/home/me/.ssh/id_ed25519"));
    assert!(!config.identity_files_given());
    let config = load_text("h", "IdentityFile none\nIdentityAgent none").unwrap().config;
    assert!(config.identity_files().unwrap().is_empty());
    assert_eq!(config.agent_socket().unwrap(), None);
    let config = load_text("h", "ProxyCommand nc %q").unwrap().config;
    assert!(config.proxy_command().is_err());
}

/// The call for the last host on the way, its arguments with a blank between them.
fn jump(host: &str, options: &[&str], text: &str) -> Result<(String, String), Error> {
    let given: Vec<Setting> = options.iter().map(|o| Setting::option(o).unwrap()).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config"), text).unwrap();
    let files = Files::Only(dir.path().join("config"));
    let config = load(host, &given, &files, &supported(), &local())?.config;
    assert_eq!(config.proxy_command()?, None);
    let call = config.jump()?.unwrap();
    let args: Vec<_> = call.args.iter().map(|arg| arg.to_str().unwrap()).collect();
    let args = args.join(" ").replace(dir.path().join("config").to_str().unwrap(), "FILE");
    Ok((call.via, args))
}

/// Effect of ProxyJump (D6): lhssh calls itself as ssh(1) does, with the configuration of each host
/// on the way left to its own call.
#[test]
fn a_jump_is_a_call_for_its_last_host_with_the_others_left_to_it() {
    let inner = "HostName h.org\nUser you\nPort 7\nIdentityFile /key\n";
    for (jump_to, options, want) in [
        ("gate", &[][..], "-F FILE -W [h.org]:7 -- gate"),
        ("me@gate:2222", &["LogLevel=DEBUG2"], "-l me -p 2222 -F FILE -vv -W [h.org]:7 -- gate"),
        ("a,b@c:3,ssh://d@e", &[], "-l d -J a,b@c:3 -F FILE -W [h.org]:7 -- e"),
        ("[::1]:9,gate", &[], "-J [::1]:9 -F FILE -W [h.org]:7 -- gate"),
        ("[fe80::1%%eth0]", &[], "-F FILE -W [h.org]:7 -- fe80::1%eth0"),
        ("%r@a-%n:9,x-%p.%h", &[], "-J you@a-h:9 -F FILE -W [h.org]:7 -- x-7.h.org"),
        // The call expands what is in -J once more.
        ("a%%b,gate", &[], "-J a%%b -F FILE -W [h.org]:7 -- gate"),
    ] {
        let text = format!("{inner}ProxyJump {jump_to}");
        let (via, args) = jump("h", options, &text).unwrap_or_else(|e| panic!("{jump_to}: {e}"));
        assert_eq!(args, want, "{jump_to}");
        assert!(args.ends_with(&format!(" -- {via}")));
    }
    let calls =
        [(Files::None, "-F none -W [h]:22 -- gate"), (Files::Standard, "-W [h]:22 -- gate")];
    for (files, want) in calls {
        let given = [Setting::given("ProxyJump", "gate")];
        let home = tempfile::tempdir().unwrap();
        let local = Local { home: home.path().to_owned(), ..local() };
        let call = load("h", &given, &files, &supported(), &local).unwrap().config.jump().unwrap();
        assert_eq!(call.unwrap().args.join(std::ffi::OsStr::new(" ")), want);
    }
}

/// E1.
#[test]
fn what_a_token_stands_for_is_no_other_host_on_the_way() {
    for (options, hops) in [
        (["User=a,b"], "%r@gate"),
        (["User=a,b"], "%r@gate,c"),
        (["User=a@b"], "%r,c"),
        (["User=a@b"], "c,%r"),
        (["HostName=::1]"], "[%h]"),
    ] {
        let refused = jump("h", &options, &format!("ProxyJump {hops}"));
        assert!(refused.is_err(), "{options:?} {hops}: {refused:?}");
    }
}

#[test]
fn forwards_are_an_error_unless_they_are_cleared() {
    for forward in ["LocalForward 1 a:2", "RemoteForward 1 a:2", "DynamicForward 1"] {
        let clear =
            |value: &str| load_with("h", &[&format!("ClearAllForwardings={value}")], forward);
        assert!(clear("yes").is_ok());
        assert!(clear("no").is_err());
    }
}

#[test]
fn where_a_forward_leads_is_a_host_and_a_port() {
    for (text, host, port) in
        [("h:22", "h", 22), ("[::1]:7", "::1", 7), ("10.0.0.1:1", "10.0.0.1", 1)]
    {
        assert_eq!(Endpoint::parse(text).unwrap(), Endpoint { host: host.into(), port }, "{text}");
    }
    for bad in
        ["", "h", "22", "h:", ":22", "h:0", "h:ssh", "::1", "[::1]", "-h:22", "$h:22", "a b:22"]
    {
        assert!(Endpoint::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn included_files_stand_where_they_are_named_and_keep_their_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("1.conf"), "Host other\nPort 1\nHost *\nUser a").unwrap();
    std::fs::write(at("2.conf"), "User b\nPort 2").unwrap();
    let text = format!("Include {0}/*.conf {0}/missing\nPort 3", dir.path().display());
    let config = load_text("h", &text).unwrap().config;
    assert_eq!((config.user.as_str(), config.port), ("a", 2));
    // A block ends with its file, not with the Include line.
    std::fs::write(at("1.conf"), "Host other\nPort 1").unwrap();
    let text = format!("Include {}/*.conf\nPort 3", dir.path().display());
    let config = load_text("h", &text).unwrap().config;
    assert_eq!((config.user.as_str(), config.port), ("b", 2));
    // Inside a block that does not apply, nothing of the file does, its own blocks included.
    let text = format!("Host x\nInclude {}/*.conf\nHost h\nPort 3", dir.path().display());
    let config = load_text("h", &text).unwrap().config;
    assert_eq!((config.user.as_str(), config.port), ("me", 3));
}

/// What is revoked there must not be missed.
#[test]
fn the_global_known_hosts_may_be_in_the_users_home() {
    let text = "GlobalKnownHostsFile ~/revoked /etc/%h";
    let files = load_text("h", text).unwrap().config.global_known_hosts().unwrap();
    assert_eq!(files, [local().home.join("revoked"), "/etc/%h".into()]);
    let other = load_text("h", "GlobalKnownHostsFile ~you/x").unwrap().config;
    assert!(other.global_known_hosts().unwrap_err().to_string().contains("another user's home"));
}

#[test]
fn a_pattern_takes_no_hidden_file_and_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("0.conf")).unwrap();
    std::fs::write(dir.path().join(".1.conf"), "Port 1").unwrap();
    std::fs::write(dir.path().join("2.conf"), "Port 2").unwrap();
    let include = |what: &str| load_text("h", &format!("Include {}/{what}", dir.path().display()));
    assert_eq!(include("*.conf").unwrap().config.port, 2);
    assert_eq!(include(".*.conf").unwrap().config.port, 1);
    assert!(include("0.conf").unwrap_err().to_string().contains("is a directory"));
}

#[test]
fn files_that_include_one_another_end_in_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    std::fs::write(&file, format!("Include {}", file.display())).unwrap();
    let error = load("h", &[], &Files::Only(file), &supported(), &local()).unwrap_err();
    assert!(error.to_string().contains("more than 16 files include one another"), "{error}");
}

#[test]
fn a_users_file_that_others_can_write_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    let file = home.path().join(".ssh/config");
    std::fs::write(&file, "Port 1").unwrap();
    let uid = std::fs::metadata(&file).unwrap().uid();
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    let local = Local { home: home.path().to_owned(), user: "me".to_owned(), uid };
    let load = || load("h", &[], &Files::Standard, &supported(), &local);
    mode(0o644);
    assert_eq!(load().unwrap().config.port, 1);
    mode(0o664);
    assert!(matches!(load(), Err(Error::Permissions(_))));
}

#[test]
fn a_named_file_must_exist_and_none_reads_none() {
    let load = |files| load("h", &[], &files, &supported(), &local());
    assert!(matches!(load(Files::Only("/no/such".into())), Err(Error::File(..))));
    assert!(matches!(load(Files::Only("/".into())), Err(Error::File(..))));
    assert_eq!(load(Files::from_option(Path::new("none"))).unwrap().config.port, 22);
}

#[test]
fn destinations_are_taken_apart_and_checked() {
    let good = [
        ("host", "host", None, None),
        ("me@host", "host", Some("me"), None),
        ("a@b@host", "host", Some("a@b"), None),
        ("::1", "::1", None, None),
        ("ssh://host", "host", None, None),
        ("ssh://me@host:22/", "host", Some("me"), Some(22)),
        ("ssh://m%65@[::1]:7", "::1", Some("me"), Some(7)),
    ];
    for (text, host, user, port) in good {
        let want = Destination { host: host.into(), user: user.map(Into::into), port };
        assert_eq!(Destination::parse(text).unwrap(), want, "{text}");
    }
    for bad in [
        "",
        "@host",
        "me@",
        "-host",
        "-u@host",
        "ssh://",
        "ssh://h:",
        "ssh://h:x",
        "ssh://h/path",
        "ssh://%00@h",
        "ssh://%2dx@h",
        "ssh://%zz@h",
        "ssh://[::1]x",
        "h;x",
        "ssh://::1",
    ] {
        assert!(Destination::parse(bad).is_err(), "{bad}");
    }
}

/// Lines of `ssh -G` for the keywords that both have.
fn openssh_dump(host: &str, text: &str) -> BTreeMap<String, Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("ssh").arg("-G").arg("-F").arg(&file).arg(host).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
    lines_by_keyword(&String::from_utf8_lossy(&output.stdout))
}

fn lines_by_keyword(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
        map.entry(keyword.to_owned()).or_default().push(value.to_owned());
    }
    map
}

#[test]
fn ssh_itself_understands_the_same_files_in_the_same_way() {
    if !need::require(&["ssh"]) {
        return;
    }
    // Ours alone; and lists, where only what was asked for can be compared.
    let ours =
        ["CryptoWorkers", "TcpRcvBuf", "MaxWindow", "CongestionControl", "-aes", "^aes", "umac"];
    let mut compared = 0;
    for (host, text, keyword, want) in CASES {
        // Releases differ on whether ProxyJump none ends the search, as ssh_config(5) says.
        let unlike = ours.iter().any(|word| text.contains(word))
            || text.contains("ump none\nP")
            // It runs as another user.
            || text.contains("user me");
        if unlike {
            continue;
        }
        let theirs = openssh_dump(host, &format!("{text}\nHost *\nUser me"));
        // A dump that OpenSSH leaves out is its default.
        let theirs = theirs.get(*keyword).map_or(String::new(), |lines| lines.join("|"));
        let theirs = if theirs.is_empty() { "none".to_owned() } else { theirs };
        assert_eq!(theirs, *want, "{host}: {text}");
        compared += 1;
    }
    assert!(compared > 25);
}

#[test]
fn defaults_that_both_have_are_those_of_ssh() {
    if !need::require(&["ssh"]) {
        return;
    }
    let theirs = openssh_dump("h", "");
    let ours = lines_by_keyword(&load_text("h", "").unwrap().config.dump());
    // Ours differ on purpose: names of keys and lists of algorithms that exist here; this user.
    let differ = [
        "identityfile",
        "ciphers",
        "macs",
        "kexalgorithms",
        "hostkeyalgorithms",
        "pubkeyacceptedalgorithms",
        "user",
        "userknownhostsfile",
    ];
    for (keyword, values) in ours.iter().filter(|(k, _)| !differ.contains(&k.as_str())) {
        if let Some(theirs) = theirs.get(keyword) {
            assert_eq!(theirs, values, "{keyword}");
        }
    }
}

#[test]
fn every_keyword_of_ssh_is_known() {
    if !need::require(&["ssh"]) {
        return;
    }
    let theirs = openssh_dump("h", "");
    let known = |keyword: &str| {
        let missing = TABLE.missing.iter().map(|missing| missing.name);
        let mut all = TABLE.rows.iter().map(|row| row.name).chain(missing);
        keyword == "host" || all.any(|name| name.eq_ignore_ascii_case(keyword))
    };
    for keyword in theirs.keys() {
        assert!(known(keyword), "{keyword}");
    }
}

#[test]
fn what_ssh_prints_of_its_defaults_loads() {
    if !need::require(&["ssh"]) {
        return;
    }
    let theirs = openssh_dump("h", "");
    // "host" would start a block.
    for (keyword, values) in theirs.iter().filter(|(keyword, _)| *keyword != "host") {
        for value in values {
            load_text("h", &format!("{keyword} {value}")).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn the_stock_file_of_debian_loads() {
    let text = "Include /etc/ssh/ssh_config.d/*.conf\nHost *\n    SendEnv LANG LC_*\n    \
                HashKnownHosts yes\n    GSSAPIAuthentication yes\n";
    let loaded = load_text("h", text).unwrap();
    assert!(loaded.config.hash_known_hosts && loaded.config.send_env.matches("LC_ALL"));
    assert!(loaded.notices.iter().all(|notice| notice.level == Level::Debug));
}

/// Fedora and its kin put this behind the file's Include.
#[test]
fn the_stock_file_of_fedora_loads() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("openssh.config");
    std::fs::write(
        &policy,
        "Ciphers aes256-gcm@openssh.com,chacha20-poly1305@openssh.com\nGSSAPIKeyExchange no\n\
         CASignatureAlgorithms ssh-ed25519\nRequiredRSASize 2048\n",
    )
    .unwrap();
    let text = format!(
        "NoneEnabled yes\nMatch final all\n\tInclude {}\n\tForwardX11Trusted yes\n",
        policy.display()
    );
    let loaded = load_text("h", &text).unwrap();
    assert_eq!(loaded.config.ciphers.names(), ["aes256-gcm@openssh.com"]);
    let warnings = loaded.notices.iter().filter(|notice| notice.level == Level::Warning);
    assert_eq!(warnings.count(), 1, "once, though the files are read twice: {:?}", loaded.notices);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_value_panics(row in 0..TABLE.rows.len(), value in "\\PC{0,40}") {
        let setting = Setting::given(TABLE.rows[row].name, &value);
        let loaded = load("h", &[setting], &Files::None, &supported(), &local());
        if let Ok(Loaded { config, .. }) = loaded {
            let _ = (config.dump(), config.identity_files(), config.proxy_command());
            let _ = (config.user_known_hosts(), config.agent_socket(), config.jump());
        }
    }

    #[test]
    fn no_destination_panics_or_carries_a_dangerous_name(text in "(ssh://)?[-a-z@:%\\[\\]$`;0-9/ ]{0,20}") {
        if let Ok(destination) = Destination::parse(&text) {
            prop_assert!(check_host(&destination.host).is_ok());
            prop_assert!(destination.user.is_none_or(|user| check_user(&user).is_ok()));
        }
    }

    #[test]
    fn a_dump_reads_back_as_itself(port in 1u16.., alive in 0u32..9999, limit in 16u64..1 << 40, strict in 0usize..4) {
        let strict = ["yes", "no", "ask", "accept-new"][strict];
        let text = format!("Port {port}\nServerAliveInterval {alive}\nRekeyLimit {limit} 1m\n\
                            StrictHostKeyChecking {strict}\nSetEnv A=b\nSendEnv X*\nProxyJump a@b:1,c");
        let first = load_text("h", &text).unwrap().config.dump();
        let again = first.lines().filter(|l| !l.starts_with("host ")).collect::<Vec<_>>().join("\n");
        prop_assert_eq!(load_text("h", &again).unwrap().config.dump(), first);
    }
}

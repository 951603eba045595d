//! Tables of lines: what is let in with which options, what is refused and why.

use super::*;
use crate::PrivateKey;
use proptest::prelude::*;

fn key() -> PublicKey {
    PrivateKey::from_ed25519_seed(&[7; 32]).expect("key").public().clone()
}

fn parse_with(options: &str) -> Result<Options, Refusal> {
    let line = format!("{options} {} me@here", key().to_openssh());
    let entry = Entry::parse(line.as_bytes())?.expect("a line");
    assert_eq!((entry.key, entry.comment.as_str()), (key(), "me@here"));
    Ok(entry.options)
}

#[test]
fn a_line_without_options_permits_everything() {
    for space in ["", " ", "\t"] {
        for end in ["", " ", "\r", " a comment with  spaces\r"] {
            let line = format!("{space}{}{end}", key().to_openssh());
            let entry = Entry::parse(line.as_bytes()).expect("valid").expect("a line");
            assert_eq!((entry.key, entry.options), (key(), Options::default()));
            assert_eq!(entry.comment, end.trim());
        }
    }
}

#[test]
fn options_set_what_they_name() {
    let all = Options::default;
    let none = || Options {
        pty: false,
        user_rc: false,
        port_forwarding: false,
        agent_forwarding: false,
        x11_forwarding: false,
        ..all()
    };
    let command = |text: &str| Options { command: Some(text.into()), ..all() };
    let environment = |pairs: &[(&str, &str)]| Options {
        environment: pairs.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
        ..all()
    };
    for (text, expected) in [
        ("restrict", none()),
        ("RESTRICT", none()),
        ("restrict,pty", Options { pty: true, ..none() }),
        ("pty,restrict", none()),
        ("restrict,port-forwarding", Options { port_forwarding: true, ..none() }),
        ("restrict,agent-forwarding", Options { agent_forwarding: true, ..none() }),
        ("restrict,X11-forwarding", Options { x11_forwarding: true, ..none() }),
        ("restrict,user-rc", Options { user_rc: true, ..none() }),
        ("no-pty", Options { pty: false, ..all() }),
        ("no-port-forwarding", Options { port_forwarding: false, ..all() }),
        ("no-agent-forwarding", Options { agent_forwarding: false, ..all() }),
        ("no-X11-forwarding", Options { x11_forwarding: false, ..all() }),
        ("no-user-rc", Options { user_rc: false, ..all() }),
        ("no-touch-required,touch-required,verify-required,no-verify-required", all()),
        (r#"permitopen="host:22",permitopen="[2001:db8::1]:*""#, all()),
        (r#"permitlisten="8080",permitlisten="localhost:http""#, all()),
        (r#"restrict,tunnel="0",permitlisten="*""#, none()),
        (r#"tunnel="any""#, all()),
        (r#"command="zfs recv -s tank""#, command("zfs recv -s tank")),
        (r#"command="a \"b, c\" d""#, command(r#"a "b, c" d"#)),
        (r#"command="a\\b\n""#, command(r"a\\b\n")),
        (r#"command="""#, command("")),
        (r#"Command="x",no-pty"#, Options { pty: false, ..command("x") }),
        (r#"environment="A=1",environment="B=x=y""#, environment(&[("A", "1"), ("B", "x=y")])),
        (r#"environment="A=1",environment="A=2""#, environment(&[("A", "1")])),
        (r#"environment="A=""#, environment(&[("A", "")])),
        (
            r#"from="10.0.0.0/8,!10.1.2.3""#,
            Options { from: FromList::parse("10.0.0.0/8,!10.1.2.3"), ..all() },
        ),
        (r#"expiry-time="20300101Z""#, Options { expiry: ExpiryTime::parse("20300101Z"), ..all() }),
    ] {
        assert_eq!(parse_with(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_cannot_be_honoured_refuses_the_line() {
    let unknown = |name: &str| Refusal::UnknownOption(name.into());
    for (text, why) in [
        ("sudo", unknown("sudo")),
        ("no-sudo", unknown("no-sudo")),
        ("pty,sudo", unknown("sudo")),
        ("no-restrict", unknown("no-restrict")),
        (",pty", unknown("")),
        ("pty,", unknown("")),
        (r#"pty="yes""#, unknown("pty")),
        (r#"cert-authority="x""#, unknown("cert-authority")),
        ("permitopen", Refusal::NoValue("permitopen".into())),
        (r#"touch-required="x""#, unknown("touch-required")),
        ("command", Refusal::NoValue("command".into())),
        ("command=ls", Refusal::Quotes),
        (r#"command="ls"x"#, Refusal::Quotes),
        (r#"command="ls"#, Refusal::Quotes),
        (r#"command="a",command="b""#, Refusal::Twice("command")),
        (r#"from="10.0.0.0/8",from="*""#, Refusal::Twice("from")),
        (r#"from="10.0.0.1/8""#, Refusal::BadValue("from")),
        (r#"from="""#, Refusal::BadValue("from")),
        (r#"environment="A""#, Refusal::BadValue("environment")),
        (r#"environment="A B=1""#, Refusal::BadValue("environment")),
        (r#"environment="=1""#, Refusal::BadValue("environment")),
        (r#"expiry-time="tomorrow""#, Refusal::BadValue("expiry-time")),
        (r#"permitopen="22""#, Refusal::BadValue("permitopen")),
        (r#"permitopen=":22""#, Refusal::BadValue("permitopen")),
        (r#"permitopen="a:0""#, Refusal::BadValue("permitopen")),
        (r#"permitopen="a:""#, Refusal::BadValue("permitopen")),
        (r#"permitlisten="70000""#, Refusal::BadValue("permitlisten")),
        (r#"tunnel="none""#, Refusal::BadValue("tunnel")),
        (r#"principals="a""#, Refusal::NotHonoured("principals")),
        ("cert-authority", Refusal::NotHonoured("cert-authority")),
    ] {
        assert_eq!(parse_with(text), Err(why), "{text}");
    }
}

#[test]
fn keys_that_are_none_refuse_the_line() {
    let other_type = key().to_openssh().replacen("ssh-ed25519", "ssh-rsa", 1);
    for line in
        ["ssh-ed25519", "ssh-ed25519 AAAA", "no-pty", "no-pty ", "ssh-dss AAAA", "x y", &other_type]
    {
        assert!(Entry::parse(line.as_bytes()).is_err(), "{line}");
    }
    assert_eq!(Entry::parse(b"ssh-ed25519 \xff"), Err(Refusal::NotText));
    assert_eq!(Entry::parse(b"a\0b"), Err(Refusal::NotText));
}

/// A comment of another time locks no key out; what is enforced is read as it stands or not at all.
#[test]
fn only_a_comment_may_be_in_another_encoding() {
    let line = |before: &[u8], after: &[u8]| {
        Entry::parse(&[before, key().to_openssh().as_bytes(), after].concat())
    };
    let good: [(&[u8], &str); 2] =
        [(b" \xe9", "\u{fffd}"), (b"\t Andr\xe9 \xfc\r", "Andr\u{fffd} \u{fffd}")];
    for (after, comment) in good {
        let entry = line(b"no-pty ", after).expect("valid").expect("a line");
        assert_eq!((entry.key, entry.options.pty, &*entry.comment), (key(), false, comment));
    }
    assert_eq!(Entry::parse(b"# Andr\xe9"), Ok(None));
    let bad: [(&[u8], &[u8]); 5] = [
        (b"command=\"caf\xe9\" ", b""),
        (b"\xe9 ", b""),
        (b"no-pty \xe9", b""),
        (b"", b"\xe9"),
        (b" ", b"\xe9 me"),
    ];
    for (before, after) in bad {
        assert_eq!(line(before, after), Err(Refusal::NotText), "{before:?} {after:?}");
    }
    let blanks = key().to_openssh().replace(' ', "  ");
    assert_eq!(Entry::parse(&[blanks.as_bytes(), b"\xe9"].concat()), Err(Refusal::NotText));
}

#[test]
fn a_bad_line_does_not_hide_the_next() {
    let file = format!("# comment\r\n\r\nbad line\nno-pty {}", key().to_openssh());
    let lines: Vec<_> = parse(file.as_bytes()).map(|(n, line)| (n, line.is_ok())).collect();
    assert_eq!(lines, [(3, false), (4, true)]);
}

#[test]
fn without_from_a_key_is_good_from_anywhere() {
    let ip = "192.0.2.1".parse().expect("ip");
    for (options, expected) in [
        ("no-pty", true),
        (r#"from="192.0.2.0/24""#, true),
        (r#"from="host.example""#, true),
        (r#"from="198.51.100.0/24""#, false),
    ] {
        let line = format!("{options} {}", key().to_openssh());
        let entry = Entry::parse(line.as_bytes()).expect("valid").expect("a line");
        assert_eq!(from_matches(&entry, ip, Some("host.example")), expected, "{options}");
    }
}

#[test]
fn a_key_expires_at_its_time() {
    let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let entry = |options: &str| {
        let line = format!("{options} {}", key().to_openssh());
        Entry::parse(line.as_bytes()).expect("valid").expect("a line")
    };
    let expiring = entry(r#"expiry-time="197001020000Z""#);
    assert!(!has_expired(&expiring, at(86_399), 3_600));
    assert!(has_expired(&expiring, at(86_400), -3_600));
    assert!(!has_expired(&entry("no-pty"), at(86_400), 0));
}

proptest! {
    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Entry::parse(&line);
    }

    #[test]
    fn no_options_panic(text in r#"(command|from|environment|expiry-time|pty|x|[=,"\\ !/.0-9é]){0,12}"#) {
        let _ = parse_with(&text);
        let _ = options::parse(&text);
    }
}

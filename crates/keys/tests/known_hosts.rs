//! known_hosts: verdicts, writing, and `ssh-keygen -F`, `-H`, `-R` on the same files.

mod common;

use common::run;
use keys::known_hosts::{HostName, KnownHosts, Verdict, append};
use keys::{PrivateKey, PublicKey, SigAlg};
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn key(seed: u8) -> PublicKey {
    PrivateKey::from_ed25519_seed(&[seed; 32]).expect("key").public().clone()
}

/// A file in which `K1`, `K2` and `K3` stand for three keys and `RSA` for one of a type
/// that the keys shown to the verdict do not have.
fn parse(text: &str) -> KnownHosts {
    let mut text = text.to_owned();
    for seed in 1..=3 {
        text = text.replace(&format!("K{seed}"), &key(seed).to_openssh());
    }
    // The blob of a key type is not looked into further than its name.
    text = text.replace("RSA", "ssh-rsa AAAAB3NzaC1yc2E=");
    KnownHosts::parse(Path::new("kh"), text.as_bytes())
}

/// A verdict in one word, with the line that it names.
fn verdict(text: &str, host: &HostName) -> String {
    match parse(text).check(host, &key(1)) {
        Verdict::Trusted(place) => format!("trusted {place}"),
        Verdict::Changed(known) => format!("changed {}", known.place),
        Verdict::Revoked(place) => format!("revoked {place}"),
        Verdict::Unreadable(line) => format!("unreadable {}", line.place),
        Verdict::Unknown { authorities } => {
            format!("unknown {authorities}")
        }
    }
}

#[test]
fn verdicts_follow_the_manual() {
    let host = HostName::new("Host.example", 22);
    for (text, expected) in [
        ("", "unknown 0"),
        ("host.example K1", "trusted kh:1"),
        ("host.example K1\r\n", "trusted kh:1"),
        ("# x\n\n  host.example\tK1 comment here", "trusted kh:3"),
        ("host.example K2", "changed kh:1"),
        ("host.example K2\nhost.example K1", "trusted kh:2"),
        ("host.example RSA", "changed kh:1"),
        ("other,HOST.example K1", "trusted kh:1"),
        ("*.example K1", "trusted kh:1"),
        ("h?st.example K1", "trusted kh:1"),
        ("*.example,!host.example K1", "unknown 0"),
        ("!host.example,* K2", "unknown 0"),
        ("[host.example]:22 K1", "unknown 0"),
        ("@revoked * K1\nhost.example K1", "revoked kh:1"),
        ("host.example K1\n@revoked host.example K1", "revoked kh:2"),
        ("host.example K1\n@revoked other K1", "trusted kh:1"),
        ("host.example K1\n@revoked * K2", "trusted kh:1"),
        ("@cert-authority *.example K1", "unknown 1"),
        ("@cert-authority *.other K1", "unknown 0"),
    ] {
        assert_eq!(verdict(text, &host), expected, "{text}");
    }
}

#[test]
fn ports_and_aliases_are_part_of_the_name() {
    let on_port = HostName::new("h", 2222);
    for (text, expected) in [
        ("[h]:2222 K1", "trusted kh:1"),
        ("[h]:2222 K2", "changed kh:1"),
        ("h K1", "trusted kh:1"),
        ("h K2", "unknown 0"),
        ("[h]:2222 K2\nh K1", "changed kh:1"),
        ("[h]:2222 RSA\nh K1", "changed kh:1"),
        ("[h]:2223 K1", "unknown 0"),
        ("@revoked h K1", "revoked kh:1"),
    ] {
        assert_eq!(verdict(text, &on_port), expected, "{text}");
    }
    let alias = HostName { alias: Some("backup".into()), ..on_port };
    assert_eq!(verdict("backup K1", &alias), "trusted kh:1");
    assert_eq!(verdict("[h]:2222 K1\nh K1\n[backup]:2222 K1", &alias), "unknown 0");
}

#[test]
fn bad_lines_are_counted_and_do_not_hide_others() {
    let known = parse(
        "host\nhost ssh-ed25519\nhost ssh-ed25519 !!\nhost ssh-rsa AAAAC3NzaC1lZDI1NTE5\n\
         @what host K1\n|1|x|y K1\nhost 1024 37 1234\nhost K1",
    );
    let lines: Vec<usize> = known.skipped().iter().map(|skipped| skipped.place.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 6, 7]);
    assert!(matches!(known.check(&HostName::new("host", 22), &key(1)), Verdict::Trusted(_)));
}

/// Nobody knows which key it was to revoke.
#[test]
fn with_a_revocation_that_cannot_be_read_no_key_is_trusted() {
    let host = HostName::new("host", 22);
    for bad in [
        "@revoked * ssh-ed25519 !!",
        "@revoked * ssh-rsa K1",
        "@revoked *",
        "@revoked",
        "\t@Revoked * K1",
        "@revoked, * K1",
        "@revoked * K1\0",
        "\u{feff}@revoked * K1",
    ] {
        assert_eq!(verdict(&format!("{bad}\nhost K1"), &host), "unreadable kh:1", "{bad:?}");
    }
    assert_eq!(verdict("@what * K1\n# @revoked * x\nhost K1", &host), "trusted kh:3");
}

#[test]
fn a_comment_may_be_in_any_encoding() {
    let parse = |start: &str| {
        let line = [start.as_bytes(), b" ", key(1).to_openssh().as_bytes(), b" B\xfcro\n"].concat();
        KnownHosts::parse(Path::new("kh"), &line).check(&HostName::new("host", 22), &key(1))
    };
    assert!(matches!(parse("host"), Verdict::Trusted(_)));
    assert!(matches!(parse("@revoked *"), Verdict::Revoked(_)));
    assert!(matches!(parse("\u{fffd}"), Verdict::Unknown { .. }));
}

#[test]
fn known_algorithms_come_first_and_once() {
    let host = HostName::new("host", 22);
    let known =
        parse("host RSA\nhost K1\nhost K2\nother ssh-dss AAAAB3NzaC1kc3M=\n@revoked host K3");
    let expected = [SigAlg::RsaSha512, SigAlg::RsaSha256, SigAlg::Ed25519];
    assert_eq!(known.algorithms(&host), expected);
    assert_eq!(known.algorithms(&HostName::new("other", 22)), []);
}

#[test]
fn files_merge_and_places_name_their_file() {
    let mut known = parse("host K2");
    let second = format!("host {}", key(1).to_openssh());
    known.merge(KnownHosts::parse(Path::new("second"), second.as_bytes()));
    let Verdict::Trusted(place) = known.check(&HostName::new("host", 22), &key(1)) else {
        panic!("not trusted");
    };
    assert_eq!(place.to_string(), "second:1");
}

#[test]
fn appending_makes_directory_and_file_for_the_user_alone() {
    let dir = TempDir::new().expect("dir");
    let file = dir.path().join("ssh/known_hosts");
    append(&file, &HostName::new("host", 22), &key(1), false).expect("append");
    let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o7777;
    assert_eq!((mode(&dir.path().join("ssh")), mode(&file)), (0o700, 0o600));
    let expected = format!("host {}\n", key(1).to_openssh());
    assert_eq!(fs::read_to_string(&file).expect("file"), expected);
}

#[test]
fn appending_after_a_missing_newline_starts_a_line() {
    let dir = TempDir::new().expect("dir");
    let file = dir.path().join("known_hosts");
    fs::write(&file, format!("a {}", key(1).to_openssh())).expect("write");
    append(&file, &HostName::new("b", 2222), &key(2), false).expect("append");
    append(&file, &HostName::new("c", 22), &key(3), true).expect("append");
    let known = KnownHosts::parse(&file, &fs::read(&file).expect("file"));
    for (host, port, seed) in [("a", 22, 1), ("b", 2222, 2), ("c", 22, 3)] {
        let verdict = known.check(&HostName::new(host, port), &key(seed));
        assert!(matches!(verdict, Verdict::Trusted(_)), "{host}: {verdict:?}");
    }
    assert!(!fs::read_to_string(&file).expect("file").contains("\nc "));
}

#[test]
fn a_name_that_would_be_a_pattern_or_a_second_line_is_not_written() {
    let dir = TempDir::new().expect("dir");
    let file = dir.path().join("known_hosts");
    for bad in ["", "*", "a,b", "a b", "a\nb", "!a", "|1|a", "#a", "@revoked", "a\0", "h?"] {
        assert!(append(&file, &HostName::new(bad, 22), &key(1), false).is_err(), "{bad:?}");
        assert!(append(&file, &HostName::new(bad, 22), &key(1), true).is_err(), "{bad:?}");
    }
    assert!(!file.exists());
}

#[test]
fn concurrent_appends_keep_their_lines_apart() {
    let dir = TempDir::new().expect("dir");
    let file = dir.path().join("known_hosts");
    fs::write(&file, "# no newline").expect("write");
    std::thread::scope(|scope| {
        for n in 0..16 {
            let file = &file;
            scope.spawn(move || {
                append(file, &HostName::new(format!("h{n}"), 22), &key(1), false).expect("append");
            });
        }
    });
    let known = KnownHosts::parse(&file, &fs::read(&file).expect("file"));
    assert!(known.skipped().is_empty());
    for n in 0..16 {
        let verdict = known.check(&HostName::new(format!("h{n}"), 22), &key(1));
        assert!(matches!(verdict, Verdict::Trusted(_)), "{n}");
    }
}

/// Whether `ssh-keygen -F` finds the name.
fn keygen_finds(file: &Path, name: &str) -> bool {
    let args = ["-F", name, "-f", file.to_str().expect("path")];
    let out = Command::new("ssh-keygen").args(args).output().expect("ssh-keygen");
    !out.stdout.is_empty()
}

fn we_find(file: &Path, host: &HostName) -> bool {
    let known = KnownHosts::parse(file, &fs::read(file).expect("file"));
    !matches!(known.check(host, &key(9)), Verdict::Unknown { authorities: 0 })
}

#[test]
fn ssh_keygen_finds_the_same_hosts_in_clear_and_hashed_files() {
    let dir = TempDir::new().expect("dir");
    let file = dir.path().join("known_hosts");
    let line = |hosts: &str| format!("{hosts} {}\n", key(1).to_openssh());
    let patterns =
        ["plain", "[port]:2222", "a.org,b.org,192.0.2.7", "*.wild,!not.wild", "q?", "::1"];
    fs::write(&file, patterns.map(line).concat()).expect("write");
    append(&file, &HostName::new("ours.example", 22), &key(2), true).expect("append");
    append(&file, &HostName::new("ours.example", 2200), &key(2), true).expect("append");
    let names = [
        ("plain", 22),
        ("PLAIN", 22),
        ("port", 2222),
        ("port", 2223),
        ("a.org", 22),
        ("b.org", 22),
        ("c.org", 22),
        ("192.0.2.7", 22),
        ("x.wild", 22),
        ("not.wild", 22),
        ("qq", 22),
        ("q", 22),
        ("::1", 22),
        ("ours.example", 22),
        ("ours.example", 2200),
        ("ours.example", 2201),
    ];
    let agree = |stage: &str| {
        for (host, port) in names {
            let host = HostName::new(host, port);
            // Without the fallback to the bare name, which `-F` does not do.
            if host.port == 2201 {
                continue;
            }
            assert_eq!(
                we_find(&file, &host),
                keygen_finds(&file, &host.name()),
                "{stage} {host:?}"
            );
        }
    };
    agree("clear");
    run("ssh-keygen", &["-q", "-H", "-f", file.to_str().expect("path")]);
    assert!(!fs::read_to_string(&file).expect("file").contains("plain"));
    agree("hashed");
    run("ssh-keygen", &["-q", "-R", "b.org", "-f", file.to_str().expect("path")]);
    run("ssh-keygen", &["-q", "-R", "ours.example", "-f", file.to_str().expect("path")]);
    assert!(!we_find(&file, &HostName::new("b.org", 22)));
    agree("removed");
}

proptest! {
    #[test]
    fn no_file_panics(content in proptest::collection::vec(any::<u8>(), 0..300)) {
        KnownHosts::parse(Path::new("kh"), &content).check(&HostName::new("h", 1), &key(1));
    }

    #[test]
    fn no_line_panics(line in r"(@revoked |@cert-authority |@x )?[|1*?!,a\[\]:/=+ ]{0,20} (ssh-ed25519|x) [A-Za-z0-9+/=]{0,30}") {
        parse(&line).check(&HostName::new("a", 1), &key(1));
    }
}

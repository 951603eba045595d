//! `-i`: the connection as the standard streams.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::LHSSHD;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;

/// inetd makes the connection standard error as well.
#[test]
fn a_client_of_inetd_does_not_read_our_messages() {
    for args in [&["-i", "-f", "/no/such/file"][..], &["-i", "-o", "Ciphers=none"], &["-Z"]] {
        let (mut client, ours) = UnixStream::pair().unwrap();
        let ours = OwnedFd::from(ours);
        let status = Command::new(LHSSHD)
            .args(args)
            .stdin(ours.try_clone().unwrap())
            .stdout(ours.try_clone().unwrap())
            .stderr(ours)
            .status()
            .unwrap();
        assert!(!status.success(), "{args:?}");
        let mut seen = String::new();
        client.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "", "{args:?}");
    }
}

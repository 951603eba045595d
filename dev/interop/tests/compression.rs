//! Compression (zlib@openssh.com): with every client and server that has it, in both roles.

use anyhow::{Context, Result, ensure};
use interop::checks::{BASICS, both_ways, says};
use interop::run::Input;
use interop::{Client, Kind, Pair};

/// What does not compress, each way.
const NOISE: u64 = 1 << 20;

/// What compresses well: 588,895 bytes.
const TEXT: &str = "seq 1 100000";

/// Text and noise, each way and both ways at once.
fn moves(pair: &Pair) -> Result<()> {
    let want: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    says(pair, TEXT, want.trim())?;
    let back = pair.run("cat", Input::Bytes(want.clone().into_bytes()))?;
    ensure!(back.status == 0 && back.stdout == want.as_bytes(), "{back:?}");
    both_ways(pair, NOISE)
}

/// The figure of this name in the last line of figures.
fn figure(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().rfind(|line| line.contains(" wire_in=")).context(text.to_owned())?;
    let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Ok(value.context("no figure")?.parse()?)
}

/// Our end counted fewer bytes on the wire than it delivered, or not fewer.
fn is_smaller(figures: &str, data: &str, wire: &str, smaller: bool) -> Result<()> {
    let (data, wire) = (figure(figures, data)?, figure(figures, wire)?);
    ensure!((wire * 2 < data) == smaller, "{wire} bytes for {data}: {figures}");
    Ok(())
}

fn compressed_by_client(server: Kind, config: &[&str], smaller: bool) {
    for more in ["-T", "-oCryptoWorkers=2"] {
        let args = ["-C", "-v", more];
        let Some(pair) = Pair::with(Client::Ours, server, &args, config) else { return };
        if smaller {
            pair.must(moves);
        }
        pair.must(|pair| {
            let outcome = pair.run(TEXT, Input::Empty)?;
            is_smaller(&outcome.stderr, "bytes_in", "wire_in", smaller)
        });
    }
}

#[test]
fn lhssh_compresses_with_openssh_and_lhsshd() {
    compressed_by_client(Kind::OpenSsh, &[], true);
    compressed_by_client(Kind::Ours, &["CryptoWorkers 2"], true);
}

#[test]
fn a_server_may_say_no() {
    compressed_by_client(Kind::OpenSsh, &["Compression no"], false);
    compressed_by_client(Kind::Ours, &["Compression no"], false);
}

#[test]
fn lhssh_compresses_with_other_servers() {
    for server in [Kind::Dropbear, Kind::Asyncssh] {
        let Some(pair) = Pair::with(Client::Ours, server, &["-C"], &[]) else { return };
        pair.must_all(BASICS);
        pair.must(moves);
    }
}

/// Effect of Compression at the server.
#[test]
fn lhsshd_compresses_for_every_client_that_wants_it() {
    let wanting = |client| match client {
        // It has no word for it and always asks.
        Client::Dbclient => &[][..],
        _ => &["-C"],
    };
    for client in
        [Client::OpenSsh, Client::Dbclient, Client::Plink, Client::Asyncssh, Client::Paramiko]
    {
        for (config, smaller) in [("Compression delayed", true), ("Compression no", false)] {
            let Some(pair) = Pair::with(client, Kind::Ours, wanting(client), &[config]) else {
                return;
            };
            pair.must(|pair| {
                let text = pair.run(TEXT, Input::Empty)?;
                ensure!(text.status == 0 && text.stdout.len() == 588_895, "{text:?}");
                Ok(())
            });
            if smaller {
                pair.must(moves);
            }
            pair.must(|pair| {
                let text = pair.server.line(" bytes_out=588895 ")?;
                is_smaller(&text, "bytes_out", "wire_out", smaller)
            });
        }
    }
}

#[test]
fn openssh_rekeys_a_compressed_stream() {
    let args = ["-C", "-oRekeyLimit=64K", "-oKexAlgorithms=curve25519-sha256"];
    for (client, server) in [(Client::OpenSsh, Kind::Ours), (Client::Ours, Kind::OpenSsh)] {
        let Some(pair) = Pair::with(client, server, &args, &["RekeyLimit 100K"]) else { return };
        pair.must(moves);
    }
}

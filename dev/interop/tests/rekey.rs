//! Rekeys: by bytes at the smallest limit and by time, by either end, under load both ways.

use anyhow::{Result, ensure};
use interop::checks::{both_ways, says};
use interop::{Client, Kind, Pair};

/// 512 exchanges and more.
const SIZE: u64 = 32 << 20;

/// A rekey by either side at the smallest interval, under load in both directions.
fn rekey(client: Client, server: Kind, by_client: bool, by_server: bool) {
    // A fast exchange: stock sshd needs a quarter of a second for one of its default's.
    let kex = "-oKexAlgorithms=curve25519-sha256";
    let args: &[&str] = if by_client { &[kex, "-oRekeyLimit=64K"] } else { &[kex] };
    let config: &[&str] = if by_server { &["RekeyLimit 64K"] } else { &[] };
    let Some(pair) = Pair::with(client, server, args, config) else { return };
    pair.must(|pair| both_ways(pair, SIZE));
}

#[test]
fn lhssh_rekeys_openssh_every_64_kib_under_load() {
    rekey(Client::Ours, Kind::OpenSsh, true, false);
}

#[test]
fn openssh_rekeys_lhssh_every_64_kib_under_load() {
    rekey(Client::Ours, Kind::OpenSsh, false, true);
}

#[test]
fn lhsshd_rekeys_openssh_every_64_kib_under_load() {
    rekey(Client::OpenSsh, Kind::Ours, false, true);
}

#[test]
fn openssh_rekeys_lhsshd_every_64_kib_under_load() {
    rekey(Client::OpenSsh, Kind::Ours, true, false);
}

#[test]
fn both_ends_rekey_every_64_kib_under_load() {
    rekey(Client::Ours, Kind::Ours, true, true);
    rekey(Client::Ours, Kind::OpenSsh, true, true);
    rekey(Client::OpenSsh, Kind::Ours, true, true);
}

#[test]
fn each_protection_survives_rekeys_by_both_ends() {
    for options in interop::algorithms::protections() {
        let mut args: Vec<&str> = options.iter().map(String::as_str).collect();
        args.push("-oRekeyLimit=256K");
        let Some(pair) = Pair::with(Client::Ours, Kind::Ours, &args, &["RekeyLimit 300K"]) else {
            return;
        };
        pair.must(|pair| both_ways(pair, 4 << 20));
    }
}

/// A few seconds of output, a line at a time.
const SLOWLY: &str = "i=0; while [ $i -lt 35 ]; do echo $i; i=$((i+1)); sleep 0.1; done";

fn slowly(pair: &Pair) -> Result<()> {
    let lines: Vec<String> = (0..35).map(|i| i.to_string()).collect();
    says(pair, SLOWLY, &lines.join("\n"))
}

/// OpenSSH's end counts the exchanges.
fn exchanges(log: &str) -> usize {
    log.matches("SSH2_MSG_NEWKEYS received").count()
}

#[test]
fn a_key_that_has_served_its_time_is_changed() {
    let limit = "RekeyLimit 1G 1s";
    let option = "-oRekeyLimit=1G 1s";
    for (args, config) in
        [(&[option][..], &["LogLevel DEBUG1"][..]), (&[], &["LogLevel DEBUG1", limit])]
    {
        let Some(pair) = Pair::with(Client::Ours, Kind::OpenSsh, args, config) else { return };
        pair.must(|pair| {
            slowly(pair)?;
            let count = exchanges(&pair.server.whole_log());
            ensure!(count >= 3, "{count} exchanges");
            Ok(())
        });
    }
    let Some(pair) = Pair::with(Client::OpenSsh, Kind::Ours, &["-v"], &[limit]) else { return };
    pair.must(|pair| {
        let outcome = pair.run(SLOWLY, interop::run::Input::Empty)?;
        let count = exchanges(&outcome.stderr);
        ensure!(outcome.status == 0 && count >= 3, "{count} exchanges: {}", outcome.stderr);
        Ok(())
    });
    let Some(pair) = Pair::with(Client::Ours, Kind::Ours, &[option], &[limit]) else { return };
    pair.must(slowly);
}

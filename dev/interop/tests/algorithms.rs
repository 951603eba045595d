//! Every algorithm that we offer, one at a time, with a short transfer each: lhssh to sshd, ssh to
//! lhsshd, and ours to ours for what the installed OpenSSH does not know.

use anyhow::{Context, Result, ensure};
use interop::algorithms::{AEAD, CTR, HOST_KEYS, KEX, MACS, known_to_openssh, protections};
use interop::checks::echo;
use interop::lab::KEY_TYPES;
use interop::{Client, Kind, Pair};

const WITH_OPENSSH: [(Client, Kind); 2] =
    [(Client::Ours, Kind::OpenSsh), (Client::OpenSsh, Kind::Ours)];

/// One server, many sessions: each with the client's words of one case.
fn each(client: Client, server: Kind, cases: &[Vec<String>]) {
    let Some(mut pair) = Pair::start(client, server) else { return };
    let mut failures = Vec::new();
    for case in cases {
        pair.args.clone_from(case);
        failures.extend(echo(&pair).err().map(|why| format!("{}: {why:#}", case.join(" "))));
    }
    pair.must(|_| none(&failures));
}

fn none(failures: &[String]) -> Result<()> {
    ensure!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

fn option(name: &str, values: &[&str]) -> Vec<Vec<String>> {
    values.iter().map(|value| vec![format!("-o{name}={value}")]).collect()
}

#[test]
fn every_key_exchange_with_openssh() {
    let known = known_to_openssh("kex", KEX).unwrap();
    for (client, server) in WITH_OPENSSH {
        each(client, server, &option("KexAlgorithms", &known));
    }
}

#[test]
fn every_key_exchange_between_ours() {
    each(Client::Ours, Kind::Ours, &option("KexAlgorithms", KEX));
}

#[test]
fn every_protection_with_openssh() {
    assert_eq!(protections().len(), AEAD.len() + CTR.len() * MACS.len());
    for (client, server) in WITH_OPENSSH {
        each(client, server, &protections());
    }
}

#[test]
fn every_protection_between_ours() {
    each(Client::Ours, Kind::Ours, &protections());
}

#[test]
fn every_host_key_algorithm_with_openssh_and_between_ours() {
    let cases = option("HostKeyAlgorithms", HOST_KEYS);
    for (client, server) in WITH_OPENSSH {
        each(client, server, &cases);
    }
    each(Client::Ours, Kind::Ours, &cases);
}

#[test]
fn every_user_key_type_with_openssh_and_between_ours() {
    let pairs = WITH_OPENSSH.iter().chain(&[(Client::Ours, Kind::Ours)]);
    for (client, server) in pairs {
        let Some(mut pair) = Pair::start(*client, *server) else { return };
        for kind in KEY_TYPES {
            pair.key = kind.name;
            pair.must(|pair| echo(pair).context(kind.wire));
        }
    }
}

/// What the installed OpenSSH lacks, with others that have it, both roles.
#[test]
fn mlkem_with_asyncssh_and_paramiko() {
    let only = "KexAlgorithms=mlkem768x25519-sha256";
    for server in [Kind::Asyncssh, Kind::Paramiko] {
        let args = format!("-o{only}");
        let Some(pair) = Pair::with(Client::Ours, server, &[&args], &[]) else { return };
        pair.must(echo);
    }
    let config = only.replace('=', " ");
    for client in [Client::Asyncssh, Client::Paramiko] {
        let Some(pair) = Pair::with(client, Kind::Ours, &[], &[&config]) else { return };
        pair.must(echo);
    }
}

/// The harness among stock programs: the tables above name things that exist.
#[test]
fn openssh_knows_what_its_tables_here_say() {
    if !Client::OpenSsh.available() {
        return;
    }
    let known = known_to_openssh("kex", KEX).unwrap();
    each(Client::OpenSsh, Kind::OpenSsh, &option("KexAlgorithms", &known));
    each(Client::OpenSsh, Kind::OpenSsh, &protections());
    each(Client::OpenSsh, Kind::OpenSsh, &option("HostKeyAlgorithms", HOST_KEYS));
}

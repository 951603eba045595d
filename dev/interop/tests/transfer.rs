//! 256 MiB each way with every peer in every role, compared byte for byte.

use interop::checks::{both_ways, download, upload};
use interop::{Client, Kind, Pair};
use std::sync::Mutex;

const SIZE: u64 = 256 << 20;

/// One at a time: side by side they would only share the cores and run into deadlines.
static TURN: Mutex<()> = Mutex::new(());

fn each_way(client: Client, server: Kind) {
    let _turn = TURN.lock();
    let Some(pair) = Pair::start(client, server) else { return };
    pair.must(|pair| upload(pair, SIZE));
    pair.must(|pair| download(pair, SIZE));
}

#[test]
fn lhssh_to_lhsshd() {
    each_way(Client::Ours, Kind::Ours);
}

#[test]
fn lhssh_to_lhsshd_both_ways_at_once() {
    let _turn = TURN.lock();
    let Some(pair) = Pair::start(Client::Ours, Kind::Ours) else { return };
    pair.must(|pair| both_ways(pair, SIZE));
}

#[test]
fn lhssh_to_openssh() {
    each_way(Client::Ours, Kind::OpenSsh);
}

#[test]
fn openssh_to_lhsshd() {
    each_way(Client::OpenSsh, Kind::Ours);
}

#[test]
fn lhssh_to_dropbear() {
    each_way(Client::Ours, Kind::Dropbear);
}

#[test]
fn dbclient_to_lhsshd() {
    each_way(Client::Dbclient, Kind::Ours);
}

#[test]
fn plink_to_lhsshd() {
    each_way(Client::Plink, Kind::Ours);
}

#[test]
fn lhssh_to_asyncssh() {
    each_way(Client::Ours, Kind::Asyncssh);
}

#[test]
fn asyncssh_to_lhsshd() {
    each_way(Client::Asyncssh, Kind::Ours);
}

#[test]
fn lhssh_to_paramiko() {
    each_way(Client::Ours, Kind::Paramiko);
}

#[test]
fn paramiko_to_lhsshd() {
    each_way(Client::Paramiko, Kind::Ours);
}

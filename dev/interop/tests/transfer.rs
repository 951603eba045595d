//! 256 MiB each way with every peer in every role, compared byte for byte.

use interop::checks::{both_ways, download, upload};
use interop::{Client, Kind, Pair};
use std::sync::Mutex;

const SIZE: u64 = 256 << 20;
const DUPLEX: u64 = 32 << 20;

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

/// Both directions at once, with everyone: `cat` stops reading when nobody takes what it writes,
/// and so does a client, so whoever waits in the wrong place waits for ever.
#[test]
fn both_ways_at_once_with_each_server() {
    let _turn = TURN.lock();
    for server in [Kind::OpenSsh, Kind::Dropbear, Kind::Asyncssh, Kind::Paramiko] {
        let Some(pair) = Pair::start(Client::Ours, server) else { continue };
        pair.must(|pair| both_ways(pair, DUPLEX));
    }
}

#[test]
fn both_ways_at_once_with_each_client() {
    let _turn = TURN.lock();
    let clients =
        [Client::OpenSsh, Client::Dbclient, Client::Plink, Client::Asyncssh, Client::Paramiko];
    for client in clients {
        let Some(pair) = Pair::start(client, Kind::Ours) else { continue };
        pair.must(|pair| both_ways(pair, DUPLEX));
    }
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

//! What the machines of the protocol make of a peer, and of whoever sits between.

use crate::input::Input;
use crate::pair::Pair;
use proto::KexConfig;

/// From the first KEXINIT on: nothing above the transports. The first byte chooses the proposals.
pub fn transport(data: &[u8]) {
    let mut input = Input(data);
    let cfg = config(input.byte_or_zero());
    Pair::new(&cfg, true).interfere(&mut input);
}

/// From the first NEWKEYS on, with a login above; the first byte says how far it got.
pub fn login(data: &[u8]) {
    let mut input = Input(data);
    let mut pair = Pair::new(&config(1), false);
    let mut trips = input.byte_or_zero() % 8;
    pair.settle(|_| {
        trips = trips.saturating_sub(1);
        trips > 0
    });
    pair.interfere(&mut input);
}

/// A logged-in connection with one session, rekeys included.
pub fn connection(data: &[u8]) {
    let mut pair = Pair::new(&config(1), false);
    pair.settle(|_| true);
    assert!(pair.are_connected(), "an honest login succeeds");
    pair.acts(0, OPEN);
    pair.settle(|_| true);
    pair.acts(1, ACCEPT);
    pair.settle(|_| true);
    pair.interfere(&mut Input(data));
}

/// `open_session` and `accept` of channel 0, as [`Side::acts`](crate::side::Side::acts) reads.
const OPEN: &[u8] = &[1, 15];
const ACCEPT: &[u8] = &[2, 16];

/// The fastest method, unless all are asked for.
fn config(choice: u8) -> KexConfig {
    let mut cfg = KexConfig::default();
    if choice != 0 {
        cfg.kex = vec!["curve25519-sha256"];
    }
    cfg.first_packet_guess = choice & 2 == 0;
    cfg
}

//! When compression begins (OpenSSH PROTOCOL section 1.2).

use crate::pair::{DEFLATE, INFLATE, Pair, quick};
use crate::{Compression, KexConfig, Role};

fn wanting(compression: &[Compression]) -> KexConfig {
    KexConfig { compression: compression.to_vec(), ..quick() }
}

const FIRST: [Compression; 2] = [Compression::Delayed, Compression::None];
const LAST: [Compression; 2] = [Compression::None, Compression::Delayed];

fn begins(pair: &mut Pair) -> [usize; 4] {
    let count = |log: &[u8], what| log.iter().filter(|entry| **entry == what).count();
    let (client, server) = (&pair.client.log, &pair.server.log);
    [count(client, DEFLATE), count(client, INFLATE), count(server, DEFLATE), count(server, INFLATE)]
}

/// B9: nothing is compressed or expanded before the user is known.
#[test]
fn b9_compression_begins_with_the_end_of_the_login() {
    let mut pair = Pair::connected_by(wanting(&FIRST), wanting(&LAST));
    assert_eq!(begins(&mut pair), [0; 4]);
    assert!(pair.keys().all(|keys| !keys.compress));
    pair.log_in();
    assert_eq!(begins(&mut pair), [1; 4]);
    for role in [Role::Client, Role::Server] {
        pair.end(role).rekey();
        pair.run().unwrap();
    }
    let keys: Vec<bool> = pair.keys().map(|keys| keys.compress).collect();
    assert_eq!(keys.iter().filter(|compress| **compress).count(), 8, "anew with each exchange");
    assert_eq!(begins(&mut pair), [1; 4]);
}

#[test]
fn compression_is_the_clients_choice_and_takes_both() {
    for (client, server) in [(&LAST[..], &LAST[..]), (&FIRST, &LAST[..1]), (&LAST[..1], &LAST)] {
        let mut pair = Pair::session_by(wanting(client), wanting(server));
        pair.client.rekey();
        pair.run().unwrap();
        assert_eq!(begins(&mut pair), [0; 4], "{client:?} {server:?}");
        assert!(pair.keys().all(|keys| !keys.compress));
    }
}

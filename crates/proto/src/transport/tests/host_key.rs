//! Host keys that change, lie or are not trusted (B3, B4).

use crate::config::{HostKeys, HostTrust};
use crate::pair::{Anyone, Pair, TestKeys, quick, seed};
use crate::{Error, KexConfig, Role};
use keys::{PublicKey, SigAlg};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::msg::Disconnect;
use wire::{Reader, Writer, msg};

/// A server whose key is another one from the second exchange on.
struct Changing {
    keys: [TestKeys; 2],
    signed: AtomicUsize,
}

impl Changing {
    fn now(&self) -> &TestKeys {
        &self.keys[self.signed.load(Ordering::Relaxed).min(1)]
    }
}

impl HostKeys for Changing {
    fn algorithms(&self) -> Vec<SigAlg> {
        vec![SigAlg::Ed25519]
    }
    fn public(&self, alg: SigAlg) -> Result<Vec<u8>, String> {
        self.now().public(alg)
    }
    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        let signature = self.now().sign(alg, data);
        self.signed.fetch_add(1, Ordering::Relaxed);
        signature
    }
}

fn pair_of(keys: impl HostKeys + Send + Sync + 'static, trust: Arc<Anyone>) -> Pair {
    let mut pair = Pair::with_trust(quick(), quick(), Arc::new(keys), trust);
    pair.start();
    pair
}

/// B3: although both keys would be trusted.
#[test]
fn a_rekey_with_another_host_key_disconnects() {
    let keys = Changing {
        keys: [TestKeys(vec![seed(1)]), TestKeys(vec![seed(2)])],
        signed: AtomicUsize::new(0),
    };
    let mut pair = pair_of(keys, Arc::new(Anyone::default()));
    pair.run().unwrap();
    pair.log_in();
    pair.client.rekey();
    let error = pair.run().unwrap_err();
    assert_eq!(error.to_string(), "peer changed its host key during the connection");
    assert_eq!(error.disconnect_code(), Disconnect::HostKeyNotVerifiable);
    assert_eq!(pair.client.t.host_key(), Some(seed(1).public()));
}

/// B3: trust is asked for once; later exchanges present the same key.
#[test]
fn trust_is_asked_for_once() {
    let trust = Arc::new(Anyone::default());
    let mut pair = pair_of(TestKeys::ed25519(), trust.clone());
    pair.run().unwrap();
    pair.log_in();
    for _ in 0..3 {
        pair.server.rekey();
        pair.run().unwrap();
    }
    assert_eq!(*trust.asked.lock().unwrap(), [seed(7).public().clone()]);
}

/// B3: a rekey proposes algorithms of the key that is there, and no others.
#[test]
fn a_rekey_asks_for_the_same_key_again() {
    let client =
        KexConfig { host_key_algs: SigAlg::ALL.iter().rev().copied().collect(), ..quick() };
    let mut pair = Pair::new(client, quick(), TestKeys::every());
    pair.start();
    pair.run().unwrap();
    pair.log_in();
    pair.client.rekey();
    let kexinit = crate::kexinit::KexInit::parse(&pair.client.out[0].payload).unwrap();
    assert_eq!(kexinit.lists.host_key.as_str(), "rsa-sha2-256,rsa-sha2-512");
    pair.run().unwrap();
}

struct Nobody;

impl HostTrust for Nobody {
    fn verify(&self, _: &PublicKey) -> Result<(), String> {
        Err("changed since the last time".to_owned())
    }
}

#[test]
fn a_key_that_is_not_trusted_disconnects_before_newkeys() {
    let keys = Arc::new(TestKeys::ed25519());
    let mut pair = Pair::with_trust(quick(), quick(), keys, Arc::new(Nobody));
    pair.start();
    let error = pair.run().unwrap_err();
    assert_eq!(error, Error::HostKey("changed since the last time".to_owned()));
    assert!(!pair.client.log.contains(&msg::NEWKEYS) && pair.client.t.session_id().is_none());
}

/// A pair with the server's KEX_REPLY under way; the client knows `alg` only.
fn before_reply(alg: SigAlg, trust: Arc<Anyone>) -> Pair {
    let client = KexConfig { host_key_algs: vec![alg], ..quick() };
    let mut pair = Pair::with_trust(client, quick(), Arc::new(TestKeys::every()), trust);
    pair.start();
    while pair.step(Role::Client).unwrap() {}
    pair.step(Role::Server).unwrap();
    while pair.step(Role::Client).unwrap() {}
    assert_eq!(pair.server.out[0].payload[0], msg::KEX_REPLY);
    pair
}

/// Refused, without anybody being asked about the key.
fn refused(change: impl Fn(&mut [Vec<u8>; 3]), alg: SigAlg) -> String {
    let trust = Arc::new(Anyone::default());
    let mut pair = before_reply(alg, trust.clone());
    let payload = &mut pair.server.out[0].payload;
    let mut r = Reader::new(&payload[1..]);
    let mut fields = [(); 3].map(|()| r.string("field").unwrap().to_vec());
    change(&mut fields);
    let mut w = Writer::message(msg::KEX_REPLY);
    fields.iter().for_each(|field| {
        w.string(field);
    });
    *payload = w.finish();
    let error = pair.step(Role::Server).unwrap_err();
    assert!(trust.asked.lock().unwrap().is_empty());
    assert!(!pair.client.log.contains(&msg::NEWKEYS));
    error.to_string()
}

/// B4: the key's type follows from what was negotiated.
#[test]
fn a_host_key_of_another_type_disconnects() {
    let text = refused(|fields| fields[0] = seed(7).public().blob().to_vec(), SigAlg::RsaSha512);
    assert!(text.contains("ssh-ed25519") && text.contains("rsa-sha2-512"), "{text}");
}

/// B4: the signature blob names the algorithm that was negotiated: not the shorter hash, not
/// SHA-1.
#[test]
fn a_signature_by_another_algorithm_disconnects() {
    for name in ["rsa-sha2-256", "ssh-rsa", "ssh-ed25519"] {
        let text = refused(
            |fields| {
                let blob = fields[2].clone();
                let mut r = Reader::new(&blob);
                assert_eq!(r.text("name"), Ok("rsa-sha2-512"));
                fields[2] = Writer::new().string(name).string(r.string("s").unwrap()).take();
            },
            SigAlg::RsaSha512,
        );
        assert!(text.starts_with("key exchange: host key signature"), "{text}");
    }
}

/// B4: any change of key, public value or signature is noticed before trust is asked for.
#[test]
fn a_reply_that_was_tampered_with_disconnects() {
    for field in 0..3 {
        for byte in 0..32 {
            refused(
                |fields| {
                    let at = fields[field].len() - 1 - byte;
                    fields[field][at] ^= 1;
                },
                SigAlg::Ed25519,
            );
        }
    }
}

/// B4: with a valid signature of a key that is not the one shown.
#[test]
fn a_signature_by_another_key_disconnects() {
    let text = refused(|fields| fields[0] = seed(8).public().blob().to_vec(), SigAlg::Ed25519);
    assert!(text.starts_with("key exchange: host key signature"), "{text}");
}

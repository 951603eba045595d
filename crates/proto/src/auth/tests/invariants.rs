//! Invariants A4, A5, A7 to A10, by name. (A1 to A3: `table` and `tests/login.rs`.)

use super::*;
use msg::{USERAUTH_FAILURE, USERAUTH_PK_OK, USERAUTH_SUCCESS};

const ED: SigAlg = SigAlg::Ed25519;

/// Invariant A4 [CVE-2024-45337]: key 0 is only shown, key 1 signs.
#[test]
fn a4_permissions_come_from_the_key_whose_signature_verified() {
    let (shown, signs) = (ed25519(1), ed25519(2));
    let (mut core, mut draft) = serving(&[&shown, &signs]);
    for request in [query("user", &signs, ED), query("user", &shown, ED)] {
        assert_eq!(answer(&mut core, &mut draft, &request).0, [USERAUTH_PK_OK]);
    }
    let (_, outcome) = answer(&mut core, &mut draft, &signed("user", &signs, ED));
    let (login, permissions) = outcome.unwrap().unwrap();
    assert_eq!(permissions, 1);
    assert_eq!(login.key, Some(signs.public().fingerprint()));
}

/// Invariant A4: a signature by one key never lets in for another.
#[test]
fn a4_a_signature_of_another_key_is_refused() {
    let (known, other) = (ed25519(1), ed25519(2));
    let mut request = super::super::msg::key_request("user", ED, known.public().blob());
    let data = super::super::msg::to_be_signed(SESSION, request.as_slice());
    let forged = request.string(other.sign(ED, &data).unwrap()).take();
    let (mut core, mut draft) = serving(&[&known]);
    assert_eq!(answer(&mut core, &mut draft, &forged).0, [USERAUTH_FAILURE]);
}

/// Invariant A5.
#[test]
fn a5_another_user_or_service_disconnects() {
    let key = ed25519(1);
    let (mut core, mut draft) = serving(&[&key]);
    answer(&mut core, &mut draft, &query("user", &key, ED)).1.unwrap();
    let (sent, outcome) = answer(&mut core, &mut draft, &signed("other", &key, ED));
    assert_eq!((sent, outcome), (vec![], Err(Failed::Changed.into())));

    let (mut core, mut draft) = serving(&[&key]);
    answer(&mut core, &mut draft, &query("user", &key, ED)).1.unwrap();
    let service = Writer::message(msg::USERAUTH_REQUEST)
        .string("user")
        .string("ssh-other")
        .string("none")
        .take();
    let (sent, outcome) = answer(&mut core, &mut draft, &service);
    assert_eq!((sent, outcome), (vec![], Err(Failed::Changed.into())));
}

/// Invariant A7: of everything a client can say, only a good signature of an allowed key by an
/// allowed algorithm is answered by SUCCESS.
#[test]
fn a7_only_a_verified_signature_logs_in() {
    let (known, other) = (ed25519(1), ed25519(2));
    let cut = |mut request: Vec<u8>, n: usize| {
        let at = request.len() - n;
        request[at] ^= 1;
        request
    };
    let bare = |method: &str| {
        Writer::message(msg::USERAUTH_REQUEST)
            .string("user")
            .string("ssh-connection")
            .string(method)
            .take()
    };
    let refused = [
        bare("none"),
        bare("password"),
        bare("hostbased"),
        bare("publickey-hostbound-v00@openssh.com"),
        bare(""),
        query("user", &other, ED),
        signed("user", &other, ED),
        cut(signed("user", &known, ED), 1),
        cut(signed("user", &known, ED), 64),
    ];
    for request in refused {
        let (mut core, mut draft) = serving(&[&known]);
        assert_eq!(answer(&mut core, &mut draft, &request).0, [USERAUTH_FAILURE], "{request:?}");
    }
    let (mut core, mut draft) = serving(&[&known]);
    let (sent, outcome) = answer(&mut core, &mut draft, &signed("user", &known, ED));
    assert_eq!(sent, [USERAUTH_SUCCESS]);
    assert!(outcome.unwrap().is_some());
}

/// Invariant A7: only algorithms in `server-sig-algs`.
#[test]
fn a7_an_algorithm_that_was_not_offered_is_refused() {
    let key = rsa();
    let book = Book { keys: vec![key.public().clone()], asked: vec![] };
    let rules = Rules { sig_algs: vec![SigAlg::RsaSha512], ..rules() };
    let (mut core, mut draft) = (ServerCore::new(book, rules), Draft::default());
    core.handle(&super::super::msg::service_request(), SESSION, &mut draft).unwrap();
    draft.messages.clear();
    let request = signed("user", &key, SigAlg::RsaSha256);
    assert_eq!(answer(&mut core, &mut draft, &request).0, [USERAUTH_FAILURE]);
    let request = signed("user", &key, SigAlg::RsaSha512);
    assert_eq!(answer(&mut core, &mut draft, &request).0, [USERAUTH_SUCCESS]);
}

/// Invariant A7: a signature holds for one session.
#[test]
fn a7_a_signature_of_another_session_is_refused() {
    let key = ed25519(1);
    let (mut core, mut draft) = serving(&[&key]);
    let request = signed("user", &key, ED);
    core.handle(&request, b"another session", &mut draft).unwrap();
    assert_eq!(draft.messages[0][0], USERAUTH_FAILURE);
}

/// Invariant A8: a refusal never reports partial success, so no key can count as one factor and
/// then as another.
#[test]
fn a8_no_key_counts_as_a_first_factor() {
    let key = ed25519(1);
    let (mut core, mut draft) = serving(&[&key]);
    core.handle(&signed("user", &ed25519(2), ED), SESSION, &mut draft).unwrap();
    assert_eq!(draft.messages.remove(0).last(), Some(&0));
}

/// Invariant A9 [CVE-2016-6210, CVE-2018-15473]: same bytes back, same questions to the policy,
/// for a user that there is and one that there is not.
#[test]
fn a9_an_unknown_user_and_a_bad_key_look_the_same() {
    let (known, other) = (ed25519(1), ed25519(2));
    let trace = |user: &str, key: &PrivateKey| {
        let asked = |core: &ServerCore| core.policy().asked.len();
        let (mut core, mut draft) = serving(&[&known]);
        let none = super::super::msg::none_request(user);
        let mut replies = vec![];
        for request in [none, query(user, key, ED), signed(user, key, ED)] {
            core.handle(&request, SESSION, &mut draft).unwrap();
            replies.push((std::mem::take(&mut draft.messages), asked(&core)));
        }
        replies
    };
    let bad_key = trace("user", &other);
    assert_eq!(bad_key, trace("nobody", &other));
    assert_eq!(bad_key, trace("nobody", &known));
}

/// Invariant A10: `none`, unknown methods, key queries, bad signatures.
#[test]
fn a10_every_request_counts_as_a_try() {
    let (known, other) = (ed25519(1), ed25519(2));
    let requests = [
        super::super::msg::none_request("user"),
        query("user", &other, ED),
        query("user", &known, ED),
        signed("user", &other, ED),
    ];
    for request in requests {
        let (mut core, mut draft) = serving(&[&known]);
        let errors =
            (0..).find_map(|n| answer(&mut core, &mut draft, &request).1.err().map(|e| (n, e)));
        let (before, error) = errors.unwrap();
        assert!(before <= 6, "{before} answers");
        assert_eq!(error, Failed::TooMany.into());
    }
}

/// Invariant A10: a stock client's `none`, four wrong keys, and query and signature of the right
/// one are six tries: the signature completes the try of its query.
#[test]
fn a10_a_signature_belongs_to_the_try_of_its_query() {
    let known = ed25519(1);
    let (mut core, mut draft) = serving(&[&known]);
    let mut requests = vec![super::super::msg::none_request("user")];
    requests.extend((2..6).map(|seed| query("user", &ed25519(seed), ED)));
    requests.push(query("user", &known, ED));
    for request in requests {
        answer(&mut core, &mut draft, &request).1.unwrap();
    }
    let (_, outcome) = answer(&mut core, &mut draft, &signed("user", &known, ED));
    assert!(outcome.unwrap().is_some());
}

/// Invariant A10: what cannot be read is an error, never a login.
#[test]
fn a10_every_cut_of_a_good_request_fails_closed() {
    let key = ed25519(1);
    let whole = signed("user", &key, ED);
    for n in 0..whole.len() {
        let (mut core, mut draft) = serving(&[&key]);
        let (sent, outcome) = answer(&mut core, &mut draft, &whole[..n]);
        assert!(outcome.is_err() && sent.is_empty(), "{n}");
    }
}

#[test]
fn requests_before_the_service_and_other_services_disconnect() {
    let key = ed25519(1);
    let mut core = server(&[&key]);
    assert!(core.handle(&signed("user", &key, ED), SESSION, &mut Draft::default()).is_err());
    let other = Writer::message(msg::SERVICE_REQUEST).string("ssh-connection").take();
    let error = server(&[]).handle(&other, SESSION, &mut Draft::default()).err().unwrap();
    assert_eq!(error.disconnect_code(), msg::Disconnect::ServiceNotAvailable);
}

//! The client's choices.

use super::*;

#[test]
fn a_known_key_logs_in_with_one_wait() {
    let key = ed25519(1);
    let run = run(Keys::new([TestKey::new(ed25519(1))]), server(&[&key]), None);
    let login = run.login.unwrap();
    assert_eq!(run.turns, 1);
    assert_eq!(run.sent, [msg::SERVICE_REQUEST, msg::USERAUTH_REQUEST]);
    assert_eq!((login.method, login.key), ("publickey", Some(key.public().fingerprint())));
}

#[test]
fn a_refused_key_is_followed_by_the_next() {
    let key = ed25519(3);
    let keys = Keys::new([1, 2, 3].map(|seed| TestKey::new(ed25519(seed))));
    let run = run(keys, server(&[&key]), None);
    assert!(run.login.is_ok());
    let refused: Vec<_> = run
        .events
        .iter()
        .map(|event| match event {
            Event::AuthRefused { key, left, partial: false, .. } => (key.clone(), left.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expect = [1, 2].map(|seed| (Some(ed25519(seed).public().fingerprint()), "publickey"));
    assert_eq!(refused, expect);
}

#[test]
fn an_agent_that_refuses_is_passed_over() {
    let key = ed25519(2);
    let broken = TestKey { broken: true, ..TestKey::new(ed25519(1)) };
    let run = run(Keys::new([broken, TestKey::new(ed25519(2))]), server(&[&key]), None);
    assert!(run.login.is_ok());
    assert_eq!(run.turns, 1, "the server never heard of the first key");
    let why = "agent refused operation".to_owned();
    let key = ed25519(1).public().fingerprint();
    assert_eq!(run.events, [Event::AuthUnusable { key, why }]);
}

#[test]
fn a_passphrase_is_only_asked_for_a_key_that_the_server_would_take() {
    let right = ed25519(2);
    let costly = |seed| TestKey { costly: true, ..TestKey::new(ed25519(seed)) };
    let keys = [costly(1), costly(2)];
    let signed = [0, 1].map(|n: usize| Arc::clone(&keys[n].signed));
    let run = run(Keys::new(keys), server(&[&right]), None);
    assert!(run.login.is_ok());
    let signed = signed.map(|signed| signed.lock().unwrap().len());
    assert_eq!(signed, [0, 1]);
}

#[test]
fn without_keys_none_is_asked_and_the_methods_are_reported() {
    let run = run(Keys::new([]), server(&[]), None);
    let error = run.login.unwrap_err();
    assert_eq!(error.to_string(), "permission denied (publickey)");
    assert_eq!(error.disconnect_code(), msg::Disconnect::NoMoreAuthMethods);
}

#[test]
fn an_rsa_key_signs_with_sha_512_until_told_otherwise() {
    let key = rsa();
    let sha256_only = super::super::server::Core::new(
        Book { keys: vec![key.public().clone()], asked: vec![] },
        Rules { sig_algs: vec![SigAlg::RsaSha256], ..rules() },
    );
    let test = TestKey::new(rsa());
    let signed = Arc::clone(&test.signed);
    let told = [SigAlg::RsaSha256];
    let run = run(Keys::new([test]), sha256_only, Some(&told));
    assert!(run.login.is_ok(), "the same key again, by what EXT_INFO told meanwhile");
    assert_eq!(*signed.lock().unwrap(), [SigAlg::RsaSha512, SigAlg::RsaSha256]);
}

#[test]
fn a_server_that_takes_no_sha_2_gets_no_rsa_signature() {
    let mut client = super::super::client::Core::new(
        "user".into(),
        Keys::new([TestKey::new(rsa()), TestKey::new(ed25519(1))]),
    );
    let mut draft = Draft::default();
    let facts = Facts { session_id: SESSION, sig_algs: Some(&[SigAlg::Ed25519]), reads_on: false };
    client.begin(&facts, &mut draft).unwrap();
    assert!(matches!(draft.events[..], [Event::AuthUnusable { .. }]));
    assert_eq!(draft.messages.len(), 2);
}

/// Nothing that was not asked for moves the client on.
#[test]
fn answers_to_nothing_disconnect() {
    let name = |number| Writer::message(number).string("ssh-userauth").take();
    let accept = name(msg::SERVICE_ACCEPT);
    let query_ok = super::super::msg::pk_ok("ssh-ed25519", ed25519(9).public().blob());
    let cases: [&[&[u8]]; 5] = [
        &[&[msg::USERAUTH_SUCCESS]],
        &[&accept, &accept],
        &[&accept, &query_ok],
        &[&accept, &[msg::USERAUTH_SUCCESS, 0]],
        &[&name(msg::SERVICE_REQUEST)],
    ];
    for case in cases {
        let keys = Keys::new([TestKey::new(ed25519(1))]);
        let mut client = super::super::client::Core::new("user".into(), keys);
        let (mut draft, facts) =
            (Draft::default(), Facts { session_id: SESSION, sig_algs: None, reads_on: false });
        client.begin(&facts, &mut draft).unwrap();
        let refused = case.iter().any(|m| client.handle(m, &facts, &mut draft).is_err());
        assert!(refused, "{case:?}");
    }
}

#[test]
fn a_pk_ok_for_another_key_disconnects() {
    let costly = TestKey { costly: true, ..TestKey::new(ed25519(1)) };
    let mut client = super::super::client::Core::new("user".into(), Keys::new([costly]));
    let (mut draft, facts) =
        (Draft::default(), Facts { session_id: SESSION, sig_algs: None, reads_on: false });
    client.begin(&facts, &mut draft).unwrap();
    client.handle(&super::super::msg::service_accept(), &facts, &mut draft).unwrap();
    let other = super::super::msg::pk_ok("ssh-ed25519", ed25519(2).public().blob());
    assert!(client.handle(&other, &facts, &mut draft).is_err());
}

#[test]
fn the_banner_reaches_the_caller() {
    let key = ed25519(1);
    let rules = Rules { banner: Some("hello\x1b".into()), ..rules() };
    let book = Book { keys: vec![key.public().clone()], asked: vec![] };
    let run = run(
        Keys::new([TestKey::new(ed25519(2)), TestKey::new(ed25519(1))]),
        ServerCore::new(book, rules),
        None,
    );
    let banners = run.events.iter().filter(|e| matches!(e, Event::Banner { .. })).count();
    assert_eq!(banners, 1, "once, before the first answer");
    assert_eq!(run.events[0], Event::Banner { text: "hello\x1b".into() });
}

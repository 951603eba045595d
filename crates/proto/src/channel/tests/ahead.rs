//! A channel that was asked for together with the login.

use super::*;
use crate::channel::Ahead;

fn exec() -> Request {
    Request::Exec(b"true".to_vec())
}

/// What leaves with the login, and a table of after it.
fn asked(requests: Vec<(Request, bool)>) -> (Vec<Vec<u8>>, Side) {
    let ahead = Ahead::session(WINDOW, PACKET, requests);
    let (mut draft, mut client) = (Draft::default(), Side::client());
    assert!(ahead.send(&mut draft));
    client.channels.asked_ahead(&ahead);
    assert_eq!(client.sent_numbers(), [], "it has left already");
    (draft.messages, client)
}

fn confirmed(client: &mut Side, sender: u32) -> Vec<Event> {
    let open = super::super::msg::Confirmation {
        recipient: Ahead::NUMBER,
        sender,
        window: WINDOW,
        max_packet: PACKET,
    };
    client.gets(&open.write()).unwrap()
}

/// Our server is one of those that take it.
#[test]
fn a_server_of_ours_numbers_its_first_channel_as_foretold() {
    let (messages, mut client) = asked(vec![(exec(), true)]);
    let mut server = Side::server();
    let [open, request] = &messages[..] else { panic!("{messages:?}") };
    server.gets(open).unwrap();
    server.channels.accept(LocalId(0), WINDOW, PACKET, &mut server.draft);
    let events = server.gets(request).unwrap();
    assert!(
        matches!(&events[..], [Event::Request { want_reply: true, request, .. }] if *request == exec())
    );
    server.channels.reply(LocalId(0), true, &mut server.draft);
    let events: Vec<_> = server.sent().iter().flat_map(|m| client.gets(m).unwrap()).collect();
    let [Event::Opened { id, grant }, Event::Reply { ok: true, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((*id, grant.remote), (LocalId(0), Ahead::NUMBER));
}

#[test]
fn nobody_waits_for_replies_to_requests_that_went_astray() {
    let (_, mut client) = asked(vec![(exec(), true)]);
    assert!(matches!(confirmed(&mut client, 5)[..], [Event::Opened { .. }]));
    client.channels.request(LocalId(0), &exec(), true, &mut client.draft);
    let sent = client.sent();
    assert_eq!(sent[0], exec().write(5, true));
    let success = Writer::message(msg::CHANNEL_SUCCESS).u32(0).take();
    assert!(matches!(client.gets(&success).unwrap()[..], [Event::Reply { ok: true, .. }]));
    assert!(client.gets(&success).unwrap().is_empty());
}

#[test]
fn a_refused_channel_leaves_nothing() {
    let (_, mut client) = asked(vec![(exec(), true)]);
    let no = super::super::msg::OpenFailure { recipient: 0, reason: 1, text: "no".into() };
    assert!(matches!(client.gets(&no.write()).unwrap()[..], [Event::OpenFailed { .. }]));
    assert_eq!(client.channels.len(), 0);
}

#[test]
fn a_forward_can_be_asked_for_ahead() {
    let mut draft = Draft::default();
    assert!(Ahead::direct_tcpip(WINDOW, PACKET, "inside", 22).send(&mut draft));
    let mut later = Side::client();
    let inside = Purpose::DirectTcpip { host: "inside", port: 22 };
    later.channels.ask_for(inside, WINDOW, PACKET, &mut later.draft).unwrap();
    assert_eq!(draft.messages, later.sent());
}

//! The whole table against an expectation written the other way round: for each phase, what may
//! come.

use super::*;

/// The legal numbers, from the RFCs' text: per receiving role and phase.
fn legal(role: Role, phase: Phase, strict: bool) -> Vec<u8> {
    let client = role == Role::Client;
    let always: &[u8] = &[1, 2, 3, 4];
    let bare: &[u8] = if strict { &[1] } else { always };
    let method = if client { 31 } else { 30 };
    let login: &[u8] =
        if client { &[6, 7, 20, 51, 52, 53, 60, 192, 193] } else { &[5, 7, 20, 50, 192, 193] };
    let session: Vec<u8> = [20, 80, 81, 82].into_iter().chain(90..=100).chain([192, 193]).collect();
    let with = |base: &[u8], more: &[u8]| [base, more].concat();
    match phase {
        Phase::FirstKexInit => with(bare, &[20]),
        Phase::FirstGuess => with(bare, &(30..=49).collect::<Vec<_>>()),
        Phase::FirstMethod => with(bare, &[method]),
        Phase::FirstNewKeys => with(bare, &[21]),
        Phase::Login => with(always, login),
        Phase::Session if client => with(always, &session),
        Phase::Session => with(&with(always, &session), &[50]),
        Phase::RekeyGuess => with(always, &(30..=49).collect::<Vec<_>>()),
        Phase::RekeyMethod => with(always, &[method]),
        Phase::RekeyNewKeys => with(always, &[21]),
    }
}

fn every_case() -> impl Iterator<Item = (Role, Phase, bool, u8)> {
    let cases = [Role::Client, Role::Server].into_iter().flat_map(|role| {
        Phase::ALL.into_iter().flat_map(move |phase| [(role, phase, false), (role, phase, true)])
    });
    cases.flat_map(|(role, phase, strict)| {
        (0..=255).map(move |number| (role, phase, strict, number))
    })
}

/// A1: all 256 numbers in all phases for both roles, with and without strict kex.
#[test]
fn the_whole_table_is_as_the_rfcs_say() {
    let mut cases = 0;
    for (role, phase, strict, number) in every_case() {
        let expected = legal(role, phase, strict).contains(&number);
        let case = format!("{role} {phase:?} strict={strict} {number}");
        assert_eq!(allowed(role, phase, strict, number), expected, "{case}");
        cases += 1;
    }
    assert_eq!(cases, 2 * 9 * 2 * 256);
}

/// A1: what only servers send never reaches a server's layers, and the reverse.
#[test]
fn no_side_accepts_its_own_messages() {
    for (_, phase, strict, _) in every_case().filter(|(.., number)| *number == 0) {
        for number in [6, 31, 51, 52, 53, 60] {
            let got = verdict(Role::Server, phase, strict, number);
            assert!(matches!(got, Forbidden | WrongGuess), "{phase:?} {number}: {got:?}");
        }
        for number in [5, 30, 50] {
            let got = verdict(Role::Client, phase, strict, number);
            assert!(matches!(got, Forbidden | WrongGuess), "{phase:?} {number}: {got:?}");
        }
    }
}

/// A2: before login every number of the connection protocol ends the connection.
#[test]
fn the_connection_protocol_does_not_exist_before_login() {
    for (role, phase, strict, number) in every_case() {
        if phase != Phase::Session && (80..=127).contains(&number) {
            assert_eq!(verdict(role, phase, strict, number), Forbidden, "{phase:?} {number}");
        }
    }
}

/// A3, B1: inside an exchange nothing is merely unknown; it ends the connection.
#[test]
fn unknown_messages_are_answered_only_outside_an_exchange() {
    for (role, phase, strict, number) in every_case() {
        let unknown = verdict(role, phase, strict, number) == Unknown;
        assert!(!unknown || matches!(phase, Phase::Login | Phase::Session), "{phase:?} {number}");
    }
    assert_eq!(verdict(Role::Server, Phase::Session, true, 83), Unknown);
    assert_eq!(verdict(Role::Client, Phase::Login, true, 200), Unknown);
}

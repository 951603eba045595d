//! Servers that lie, to lhscp and to lhsftp: nothing is written outside the destination, the error
//! is one a person can read, nothing hangs, memory is bounded. The tricks are rows of `chaos`.

use chaos::malicious::{ENDLESS, games, run};
use chaos::{Plan, Whose};

/// A server that goes away is tried again for over a minute: `chaos malicious` has the time.
const PATIENT: [&str; 2] = ["packet-cut", "goes-away"];

/// Every trick whose name begins like one of these, on both clients.
fn nothing_comes_of(prefixes: &[&str]) {
    let mut games = games(Whose::Ours);
    games.retain(|(_, trick)| prefixes.iter().any(|prefix| trick.name.starts_with(prefix)));
    games.retain(|(_, trick)| !PATIENT.contains(&trick.name));
    assert!(!games.is_empty(), "{prefixes:?}");
    let plan = Plan { runs: games.len() as u64, seed: 1, jobs: 8 };
    let tally = run(plan, &games, ENDLESS).expect("the harness itself failed");
    assert_eq!(tally.violations, Vec::<String>::new());
}

#[test]
fn an_honest_server_is_no_problem() {
    nothing_comes_of(&["honest"]);
}

#[test]
fn f1_no_name_from_a_server_leads_out_of_the_destination() {
    nothing_comes_of(&["name-", "realpath-"]);
}

#[test]
fn f2_no_link_from_a_server_leads_what_follows_out_of_the_destination() {
    nothing_comes_of(&["link-"]);
}

#[test]
fn f3_f6_attributes_that_cannot_be_are_survived() {
    nothing_comes_of(&["attrs-", "size-", "mode-", "times-"]);
}

#[test]
fn f5_a_write_that_failed_fails_its_file() {
    nothing_comes_of(&["write-", "rename-", "close-", "fsync-", "put-"]);
}

#[test]
fn f6_replies_that_are_short_oversized_doubled_or_of_another_kind_are_errors() {
    nothing_comes_of(&["data-", "reply-", "packet-", "status-", "handle-"]);
}

#[test]
fn f6_first_words_that_are_none_are_errors() {
    nothing_comes_of(&["greeting-", "version-", "extension-", "limits-"]);
}

#[test]
fn lists_without_end_cost_bounded_memory() {
    nothing_comes_of(&["listing-", "directories-"]);
}

#[test]
fn a_server_that_lies_about_our_extensions_is_found_out() {
    nothing_comes_of(&["files-", "map-", "hashes-"]);
}

//! The checks have teeth: scp, which promises none of this, is caught by them.

#![allow(clippy::unwrap_used, reason = "tests")]

use anyhow::Result;
use chaos::malicious::{self, games};
use chaos::{Plan, Tally, Whose};
use interop::need;
use std::time::Duration;

/// Whether one of some rounds finds a violation that says so: what dies when is up to the machine.
fn catches(run: impl Fn(Plan) -> Result<Tally>, runs: u64, what: &str) -> bool {
    (2..=10).any(|seed| {
        let tally = run(Plan { runs, seed, jobs: 2 }).unwrap();
        tally.violations.iter().any(|violation| violation.contains(what))
    })
}

#[test]
fn the_reader_catches_a_copier_that_writes_under_the_final_name() {
    if need::require(&["scp"]) {
        assert!(catches(|plan| chaos::watch::run(plan, Whose::Scp), 4, "old or new was due"));
    }
}

#[test]
fn random_faults_catch_a_copier_that_leaves_half_files() {
    if need::require(&["scp", "strace"]) {
        assert!(catches(|plan| chaos::random::run(plan, Whose::Scp), 10, "never whole"));
    }
}

#[test]
fn the_guard_catches_a_client_that_follows_a_name_out_of_its_destination() {
    // No client here does; so the trick is played by hand.
    let world = chaos::world::World::new().unwrap();
    let before = malicious::outside(&world).unwrap();
    std::fs::write(world.path("guard"), "escaped").unwrap();
    assert_ne!(malicious::outside(&world).unwrap(), before);
}

#[test]
fn a_client_that_keeps_endless_lists_is_caught() {
    if need::require(&["scp"]) {
        let mut games = games(Whose::Scp);
        games.retain(|(victim, trick)| {
            victim.name() == "scp" && trick.name == "listing-endless-new"
        });
        let patience = Duration::from_secs(60);
        assert!(catches(|plan| malicious::run(plan, &games, patience), 1, "it took "));
    }
}

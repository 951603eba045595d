//! The checks have teeth: scp, which promises none of this, is caught by them.

use chaos::malicious::{self, games};
use chaos::{Plan, Whose};
use interop::need;

fn few(runs: u64) -> Plan {
    Plan { runs, seed: 1, jobs: 2 }
}

#[test]
fn the_reader_catches_a_copier_that_writes_under_the_final_name() {
    if need::require(&["scp"]) {
        let tally = chaos::watch::run(few(4), Whose::Scp).unwrap();
        assert!(tally.violations.iter().any(|what| what.contains("old or new was due")));
    }
}

#[test]
fn random_faults_catch_a_copier_that_leaves_half_files() {
    if need::require(&["scp", "strace"]) {
        let tally = chaos::random::run(few(10), Whose::Scp).unwrap();
        assert!(tally.violations.iter().any(|what| what.contains("never whole")));
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
        let tally = malicious::run(few(1), &games).unwrap();
        assert!(!tally.violations.is_empty());
    }
}

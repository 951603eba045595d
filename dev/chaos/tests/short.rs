//! The short form of every scenario: a few runs each, less than a minute in all. Numbers of the
//! long one are in docs/reliability.md.

use chaos::kill::Load;
use chaos::{Plan, Tally, Whose};
use interop::need;

const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

fn few(runs: u64) -> Plan {
    Plan { runs, seed: 1, jobs: 2 }
}

#[track_caller]
fn clean(tally: anyhow::Result<Tally>) -> Tally {
    let tally = tally.expect("the harness itself failed");
    assert_eq!(tally.violations, Vec::<String>::new());
    tally
}

#[test]
fn r2_r4_a_copy_is_gone_on_with_after_whatever_was_killed() {
    if !need::require(&["ssh", "sshd", "ssh-keygen", SFTP_SERVER]) {
        return;
    }
    let tally = clean(chaos::kill::run_with(few(2), Whose::Ours, Load::SHORT));
    assert_eq!(tally.of("copies ended with 0"), 2);
}

#[test]
fn r1_a_reader_sees_nothing_or_old_or_new_never_a_part() {
    if !need::require(&[SFTP_SERVER]) {
        return;
    }
    let tally = clean(chaos::watch::run(few(8), Whose::Ours));
    assert!(tally.of("looks: old content") > 0 && tally.of("looks: new content") > 0);
}

#[test]
fn r5_f5_a_call_that_fails_is_told_with_file_and_cause_and_costs_nothing() {
    if !need::require(&["strace", SFTP_SERVER]) {
        return;
    }
    let tally = clean(chaos::errors::run(few(16), Whose::Ours));
    assert!(tally.of("told: exit not 0, file and cause named") > 0);
}

#[test]
fn f9_a_source_that_changes_is_never_copied_as_a_mixture() {
    if !need::require(&[SFTP_SERVER]) {
        return;
    }
    clean(chaos::source::run(few(16), Whose::Ours));
}

#[test]
fn r2_a_damaged_journal_is_not_believed() {
    clean(chaos::journal::run(few(4), Whose::Ours));
}

#[test]
fn r6_exit_0_if_and_only_if_the_trees_are_equal() {
    if !need::require(&["strace", SFTP_SERVER]) {
        return;
    }
    let tally = clean(chaos::random::run(few(24), Whose::Ours));
    assert_eq!(tally.of("without faults: exit 0 and equal"), 24);
}

//! Source: a file that changes while it is copied: never exit 0 with a mixture (F9), and never a
//! mixture under its name, whatever the exit.

use crate::copier::{PATIENCE, Whose};
use crate::dice::Dice;
use crate::forest::{Change, write};
use crate::process::Ended;
use crate::snapshot::Snapshot;
use crate::tally::{Plan, Tally};
use crate::world::{Whole, World, turn};
use anyhow::Result;
use std::fs;
use std::time::Duration;

/// Runs as planned.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    plan.carry_out(|run, tally| one(run, plan.seed, whose, tally))
}

fn one(run: u64, seed: u64, whose: Whose, tally: &mut Tally) -> Result<()> {
    let mut dice = Dice::of_run(seed, run);
    let world = World::new()?;
    let (source, target) = (&world.from, world.arrived());
    write(source, dice.within(1 << 20..12 << 20), dice.next())?;
    if dice.percent(30) {
        write(&target, 5000, dice.next())?;
    }
    let mut whole = Whole::before(&Snapshot::of(&target)?);
    let old = Snapshot::of(source)?;
    whole.admit(&old);

    let (way, served) = turn(run);
    let copier = world.copier(whose, served)?;
    let change = dice.pick(&Change::ALL);
    // 32 MB/s: up to 0.4 s for all of it.
    let words = ["-l", "256000", dice.pick(&["-q", "-p"])];
    let mut running = copier.start(way, source, &target, &words)?;
    running.pass(Duration::from_millis(dice.below(450)))?;
    change.happen(source, &world.path("aside"), dice.next())?;
    let ended = running.end(PATIENCE)?;
    let new = Snapshot::of(source)?;
    whole.admit(&new);
    let there = Snapshot::of(&target)?;
    for broken in whole.broken(&there).into_iter().chain(ended.crash()) {
        tally.violation(
            run,
            &format!("{change:?}, {way:?}, {served:?}: {broken}, {}", ended.words()),
        );
    }
    let what = outcome(&ended, [&old, &new, &there], run, tally);
    tally.count(&format!("{}: {what}", format!("{change:?}").to_lowercase()));

    if change != Change::Delete && whose == Whose::Ours {
        let ended = copier.copy(way, source, &target, &words)?;
        tally.crash(run, &ended);
        let same = fs::read(source)? == fs::read(&target).unwrap_or_default();
        let parts = Snapshot::of(&world.to)?.parts();
        if !ended.well() || !same || !parts.is_empty() {
            let what = format!("{change:?}, {way:?}, {served:?}, again: equal {same}, {parts:?}");
            tally.violation(run, &format!("{what}, {}", ended.words()));
        }
    }
    Ok(())
}

/// What came of it, in words; complains about an exit that is not right.
fn outcome(
    ended: &Ended,
    [old, new, there]: [&Snapshot; 3],
    run: u64,
    tally: &mut Tally,
) -> &'static str {
    let same =
        |one: &Snapshot| one.files().map(|(_, hash)| hash).eq(there.files().map(|(_, hash)| hash));
    match (ended.code, same(old) && !there.0.is_empty(), same(new) && !there.0.is_empty()) {
        (Some(0), _, true) => "exit 0 with the new content",
        (Some(0), true, _) => "exit 0 with the old content",
        (Some(0), false, false) => {
            tally.violation(run, &format!("exit 0 with neither: {}", ended.words()));
            "exit 0 with neither"
        }
        // It hangs, or a signal ended it, which is complained about already.
        (None, ..) => {
            if ended.late {
                tally.violation(run, &ended.words());
            }
            "killed"
        }
        _ if ended.stderr.contains("tree") => "refused, and the file named",
        _ => {
            tally.violation(run, &format!("the file is not named: {}", ended.words()));
            "refused without a name"
        }
    }
}

//! Watch: a reader who looks at the target's names all the time sees nothing, the old content or
//! the new, whole (R1), also when the copier is killed meanwhile.

use crate::copier::{Copier, PATIENCE, Way, Whose};
use crate::dice::Dice;
use crate::forest::write;
use crate::snapshot::{Hash, Snapshot, content};
use crate::tally::{Plan, Tally};
use crate::world::{World, turn};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Runs as planned.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    plan.carry_out(|run, tally| one(run, plan.seed, whose, tally))
}

/// What a reader may find.
#[derive(Debug)]
struct Name {
    path: PathBuf,
    old: Option<Hash>,
    new: Hash,
}

/// What the reader found.
#[derive(Debug, Default)]
struct Seen {
    absent: u64,
    old: u64,
    new: u64,
    broken: Vec<String>,
}

fn one(run: u64, seed: u64, whose: Whose, tally: &mut Tally) -> Result<()> {
    let mut dice = Dice::of_run(seed, run);
    let world = World::new()?;
    prepare(&world, &mut dice)?;
    let names = names(&world)?;
    let (way, served) = turn(run);
    let copier = world.copier(whose, served)?;
    let over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let reader = scope.spawn(|| look(&names, &over));
        let copied = copy(&copier, way, &world, &mut dice, run, tally);
        over.store(true, Ordering::Relaxed);
        copied.map(|()| reader.join())
    })?;
    let seen = seen.map_err(|_| anyhow::anyhow!("the reader panicked"))?;
    tally.add("looks: absent", seen.absent);
    tally.add("looks: old content", seen.old);
    tally.add("looks: new content", seen.new);
    for broken in seen.broken {
        tally.violation(run, &broken);
    }
    Ok(())
}

/// One large file and some small ones; most of them stand in the target with other content.
fn prepare(world: &World, dice: &mut Dice) -> Result<()> {
    fs::create_dir(&world.from)?;
    fs::create_dir(world.arrived())?;
    for number in 0..12 {
        let name = format!("f{number}");
        let largest = if number == 0 { 12 << 20 } else { 40_000 };
        if dice.percent(70) {
            write(&world.arrived().join(&name), dice.within(1..largest), dice.next())?;
        }
        write(&world.from.join(&name), dice.within(largest / 2..largest), dice.next())?;
    }
    Ok(())
}

fn names(world: &World) -> Result<Vec<Name>> {
    let (old, new) = (Snapshot::of(&world.arrived())?, Snapshot::of(&world.from)?);
    let old: BTreeMap<_, _> = old.files().map(|(name, hash)| (name.clone(), hash)).collect();
    let name = |(name, new): (&Vec<u8>, Hash)| Name {
        path: world.arrived().join(String::from_utf8_lossy(name).as_ref()),
        old: old.get(name).copied(),
        new,
    };
    Ok(new.files().map(name).collect())
}

/// Copies, now and then after an attempt that is killed.
fn copy(
    copier: &Copier,
    way: Way,
    world: &World,
    dice: &mut Dice,
    run: u64,
    tally: &mut Tally,
) -> Result<()> {
    // 20 MB/s: the reader looks many times.
    let words = ["-r", "-l", "160000"];
    if dice.percent(50) {
        let mut running = copier.start(way, &world.from, &world.to, &words)?;
        running.pass(Duration::from_millis(dice.below(700)))?;
        running.kill()?;
        tally.count("killed");
        tally.crash(run, &running.end(PATIENCE)?);
    }
    let ended = copier.copy(way, &world.from, &world.to, &words)?;
    tally.crash(run, &ended);
    if !ended.well() {
        tally.violation(run, &ended.words());
    }
    Ok(())
}

/// Looks at every name in turn until it is over, and once more.
fn look(names: &[Name], over: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    loop {
        let last = over.load(Ordering::Relaxed);
        names.iter().for_each(|name| seen.look(name, last));
        if last {
            return seen;
        }
        thread::sleep(Duration::from_micros(300));
    }
}

impl Seen {
    fn look(&mut self, name: &Name, last: bool) {
        match found(&name.path) {
            Some((_, hash)) if hash == name.new => self.new += 1,
            Some((_, hash)) if Some(hash) == name.old && !last => self.old += 1,
            None if name.old.is_none() && !last => self.absent += 1,
            found if self.broken.len() < 5 => self.broken.push(format!(
                "{}: {} where {}",
                name.path.display(),
                found.map_or("absent".to_owned(), |(size, _)| format!("{size} other bytes")),
                if last { "the new content was due" } else { "old or new was due" },
            )),
            _ => {}
        }
    }
}

fn found(path: &Path) -> Option<(u64, Hash)> {
    content(path).ok()
}

//! Errors: system calls that fail on the side that writes, and a disk that is full. The error names
//! the file and the cause, the old file is intact, and the same command goes on once the cause is
//! gone (R5, F5).

use crate::copier::{Served, Way, Whose};
use crate::dice::Dice;
use crate::forest::write;
use crate::inject::{ERRORS, Errno, Hit, Point, Strace};
use crate::process::{Ended, call};
use crate::snapshot::{Exactly, Snapshot};
use crate::tally::{Plan, Tally};
use crate::world::{Whole, World};
use anyhow::{Result, ensure};
use interop::need;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Words that every copy here has.
const WORDS: &[&str] = &["-r", "-p"];

/// So many calls fail as planned, each in a copy of its own; and a disk of 4 MiB is full.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    let ends = [Way::Up, Way::Down].map(|way| Served::BOTH.map(|served| (way, served)));
    let mut points = Vec::new();
    for (way, served) in ends.into_iter().flatten() {
        points.push((way, served, calls(whose, way, served)?));
    }
    let mut tally = plan.carry_out(|run, tally| {
        let number = usize::try_from(run)?;
        let (way, served, points) = &points[number % points.len()];
        let errno = ERRORS[number / 4 % ERRORS.len()];
        let at = Dice::of_run(plan.seed, run).pick(points);
        point(run, (*way, *served), errno, &at, whose, tally)
    })?;
    if mountable()? {
        full(whose, &mut tally)?;
    }
    Ok(tally)
}

/// A tree with files that are written in one piece and in several, over older ones.
fn prepare(world: &World) -> Result<Vec<String>> {
    let sizes =
        [("large", 5 << 20), ("second", 1 << 20), ("tiny", 10), ("none", 0), ("below/page", 4096)];
    for root in [&world.from, &world.arrived()] {
        fs::create_dir_all(root.join("below"))?;
    }
    for (number, (name, size)) in (0..).zip(sizes) {
        write(&world.from.join(name), size, number)?;
        if number % 2 == 0 {
            write(&world.arrived().join(name), 3000 + number, 100 + number)?;
        }
    }
    // A first run has something to make, too.
    fs::remove_dir_all(world.arrived().join("below"))?;
    Ok(["large", "second", "tiny", "none", "page", "below", "tree"].map(str::to_owned).to_vec())
}

/// The calls of a copy that succeeds which touch its target.
fn calls(whose: Whose, way: Way, served: Served) -> Result<Vec<Point>> {
    let world = World::new()?;
    prepare(&world)?;
    let mut copier = world.copier(whose, served)?;
    let strace = Strace::around(&mut copier, way, None)?;
    let ended = copier.copy(way, &world.from, &world.to, WORDS)?;
    ensure!(ended.well(), "without faults: {}", ended.words());
    let points = strace.points(&world.to)?;
    ensure!(!points.is_empty(), "{way:?}, {served:?}: no call touches the target");
    Ok(points)
}

fn point(
    run: u64,
    (way, served): (Way, Served),
    errno: Errno,
    point: &Point,
    whose: Whose,
    tally: &mut Tally,
) -> Result<()> {
    let world = World::new()?;
    let names = prepare(&world)?;
    let whole = whole(&world)?;
    let mut copier = world.copier(whose, served)?;
    let inject = format!("{}:error={}:when={}", point.call, errno.0, point.when);
    let strace = Strace::around(&mut copier, way, Some(&inject))?;
    let ended = copier.copy(way, &world.from, &world.to, WORDS)?;
    let to = world.to.display().to_string();
    let hits: Vec<Hit> = strace.hits()?.into_iter().filter(|hit| hit.may_be_about(&to)).collect();
    let case = format!("{way:?}, {served:?}, {inject}");
    let mut complain = |what: &str| {
        let hits: Vec<&str> = hits.iter().map(|hit| hit.line.as_str()).collect();
        tally.violation(run, &format!("{case}: {what}; {}; {hits:?}", ended.words()));
    };
    intact(&world, &whole, &ended)?.iter().for_each(|what| complain(what));
    let silent = served == Served::OpenSsh && way == Way::Up;
    let said = told(&ended, &hits, &names, (!silent).then_some(errno));
    said.iter().for_each(|what| complain(what));
    let what = match (hits.is_empty(), ended.well()) {
        (true, _) => "no call of the target failed",
        (false, true) => "overcome: exit 0 and equal",
        (false, false) => "told: exit not 0, file and cause named",
    };
    tally.count(what);
    again(&world, whose, way, served, run, &case, tally)
}

/// What may stand in the target.
fn whole(world: &World) -> Result<Whole> {
    let mut whole = Whole::before(&Snapshot::of(&world.arrived())?);
    whole.admit(&Snapshot::of(&world.from)?);
    Ok(whole)
}

/// Old or new, whole; and exit 0 only if all is there.
fn intact(world: &World, whole: &Whole, ended: &Ended) -> Result<Vec<String>> {
    let there = Snapshot::of(&world.arrived())?;
    let mut wrong = whole.broken(&there);
    if ended.well() {
        let exactly = Exactly { attributes: true, nanoseconds: false };
        wrong.extend(Snapshot::of(&world.from)?.missing_in(&there, exactly));
    }
    if ended.late {
        wrong.push("it hangs".to_owned());
    }
    wrong.extend(ended.crash());
    Ok(wrong)
}

/// Whether the error names a file that was hit, and the cause where the server says it. A server
/// without words of its own, as OpenSSH's, knows but "Failure".
fn told(ended: &Ended, hits: &[Hit], names: &[String], cause: Option<Errno>) -> Vec<String> {
    let mut wrong = Vec::new();
    if hits.is_empty() || ended.well() {
        let synced = hits.iter().any(|hit| hit.call.ends_with("sync"));
        return synced.then(|| "exit 0 though fsync failed".to_owned()).into_iter().collect();
    }
    let about: Vec<Vec<&str>> = hits.iter().map(|hit| hit.about(names)).collect();
    let clear = about.iter().all(|about| !about.is_empty());
    let about = about.concat();
    if clear && !about.iter().any(|name| ended.stderr.contains(name)) {
        wrong.push(format!("none of {about:?} is named"));
    }
    let called = |words: &[&str]| words.iter().any(|words| ended.stderr.contains(words));
    if let Some(Errno(name, words)) = cause.filter(|Errno(_, words)| !called(words)) {
        wrong.push(format!("{name} is called none of {words:?}"));
    }
    wrong
}

/// The same command without faults.
fn again(
    world: &World,
    whose: Whose,
    way: Way,
    served: Served,
    run: u64,
    case: &str,
    tally: &mut Tally,
) -> Result<()> {
    let copier = world.copier(whose, served)?;
    let ended = copier.copy(way, &world.from, &world.to, WORDS)?;
    tally.crash(run, &ended);
    let there = Snapshot::of(&world.arrived())?;
    let exactly = Exactly { attributes: true, nanoseconds: false };
    let wrong = Snapshot::of(&world.from)?.missing_in(&there, exactly);
    let parts = Snapshot::of(&world.to)?.parts();
    match ended.well() && wrong.is_empty() && parts.is_empty() {
        true => tally.count("again: exit 0, equal, nothing left over"),
        false => {
            let what = format!("{case}, again: {wrong:?}, left over {parts:?}, {}", ended.words());
            tally.violation(run, &what);
        }
    }
    Ok(())
}

/// A file system of its own that goes away with the value.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(at: &'a Path, options: &str) -> Result<Self> {
        let words = ["-t", "tmpfs", "-o", options, "chaos"].map(OsStr::new);
        call("mount", &[&words[..], &[at.as_ref()]].concat())?;
        Ok(Self(at))
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = call("umount", &["-l".as_ref(), self.0.as_ref()]);
    }
}

/// Whether disks can be mounted here: root may in most places, not in every container.
fn mountable() -> Result<bool> {
    let world = World::new()?;
    let mounted = Disk::mount(&world.to, "size=1m").is_ok();
    Ok(need::have(mounted, "full disk: no tmpfs can be mounted"))
}

/// A disk that is really full, and then larger.
fn full(whose: Whose, tally: &mut Tally) -> Result<()> {
    for (run, (way, served)) in
        (0..).zip([(Way::Up, Served::Ours), (Way::Up, Served::OpenSsh), (Way::Down, Served::Ours)])
    {
        let world = World::new()?;
        let disk = Disk::mount(&world.to, "size=4m")?;
        prepare(&world)?;
        let whole = whole(&world)?;
        let copier = world.copier(whose, served)?;
        let ended = copier.copy(way, &world.from, &world.to, WORDS)?;
        let mut wrong = intact(&world, &whole, &ended)?;
        let named = ended.stderr.contains("large");
        let caused =
            ended.stderr.contains("No space left") || (way, served) == (Way::Up, Served::OpenSsh);
        if ended.well() || !named || !caused {
            wrong.push("not told".to_owned());
        }
        for what in wrong {
            tally.violation(
                run,
                &format!("full disk, {way:?}, {served:?}: {what}; {}", ended.words()),
            );
        }
        tally.count("full disk: told, old files intact");
        call("mount", &["-o".as_ref(), "remount,size=64m".as_ref(), disk.0.as_ref()])?;
        again(&world, whose, way, served, run, "full disk", tally)?;
    }
    Ok(())
}

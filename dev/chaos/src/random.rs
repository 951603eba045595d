//! Random: a random tree, random options, random faults, alone and together. Exit 0 if and only if
//! our own comparison finds the trees equal (R6); under every name something whole (R1, F9); and
//! when the faults are over the same command ends with 0 and leaves nothing behind.

use crate::copier::{PATIENCE, Served, Way, Whose};
use crate::dice::Dice;
use crate::forest::{Change, Shape, plant, write};
use crate::inject::{ERRORS, Strace};
use crate::process::{Ended, call, descendants, kill};
use crate::snapshot::{Exactly, Kind, Snapshot, shown};
use crate::tally::{Plan, Tally};
use crate::world::{Whole, World, turn};
use crate::{journal, process::Running};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Calls that are made to fail: those of every writer, so that most injections hit.
const CALLS: &[&str] = &[
    "pwrite64",
    "pwritev",
    "fsync",
    "openat",
    "openat2",
    "renameat",
    "renameat2",
    "rename",
    "mkdirat",
    "mkdir",
    "fchmod",
    "utimensat",
    "ftruncate",
    "symlinkat",
];

/// Something that goes wrong during one attempt.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillCopier,
    KillServer,
    Inject,
    Change(Change),
    Journal(journal::Damage),
    PartLost,
}

impl Fault {
    fn throw(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0 | 1 => Self::KillCopier,
            2 | 3 => Self::KillServer,
            4..=6 => Self::Inject,
            7 => Self::Change(dice.pick(&Change::ALL)),
            8 => Self::Journal(dice.pick(&journal::Damage::ALL)),
            _ => Self::PartLost,
        }
    }
}

/// Runs as planned.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    plan.carry_out(|run, tally| {
        let mut dice = Dice::of_run(plan.seed, run);
        Run::new(run, whose, &mut dice)?.go(&mut dice, tally)
    })
}

struct Run {
    run: u64,
    whose: Whose,
    world: World,
    way: Way,
    served: Served,
    words: Vec<&'static str>,
    whole: Whole,
    /// Names that may be in the target's directory at the end: its own and the source's.
    known: Snapshot,
    /// What went wrong so far, for complaints.
    story: Vec<String>,
}

impl Run {
    fn new(run: u64, whose: Whose, dice: &mut Dice) -> Result<Self> {
        let world = World::new()?;
        let words = words(whose, dice);
        // Without -p links are followed, as scp does: wherever they lead to.
        let links = words.contains(&"-p");
        plant(&world.from, Shape { links, ..Shape::SMALL }, dice)?;
        if dice.percent(50) {
            older(&world, dice)?;
        }
        let mut whole = Whole::before(&Snapshot::of(&world.arrived())?);
        whole.admit(&Snapshot::of(&world.from)?);
        let mut known = Snapshot::of(&world.to)?;
        known.0.extend(Snapshot::of(&world.path("from"))?.0);
        let (way, served) = turn(run);
        Ok(Self { run, whose, world, way, served, words, whole, known, story: Vec::new() })
    }

    fn go(&mut self, dice: &mut Dice, tally: &mut Tally) -> Result<()> {
        for _ in 0..dice.below(4) {
            let faults: Vec<Fault> = (0..dice.within(1..3)).map(|_| Fault::throw(dice)).collect();
            self.attempt(&faults, dice, tally)?;
        }
        let copier = self.world.copier(self.whose, self.served)?;
        let ended = copier.copy(self.way, &self.world.from, &self.world.to, &self.words)?;
        self.story.push(format!("no fault: {}", ended.words()));
        let mut wrong = self.differences(&[])?;
        wrong.extend(self.left_over()?);
        wrong.extend(ended.crash());
        match ended.well() && wrong.is_empty() {
            true => tally.count("without faults: exit 0 and equal"),
            false => self.complain("at the end", &wrong, tally),
        }
        Ok(())
    }

    /// One attempt with faults.
    fn attempt(&mut self, faults: &[Fault], dice: &mut Dice, tally: &mut Tally) -> Result<()> {
        let mut copier = self.world.copier(self.whose, self.served)?;
        let mut strace = None;
        for fault in faults {
            match fault {
                Fault::Inject if strace.is_none() => {
                    let inject = inject(dice);
                    self.story.push(inject.clone());
                    strace = Some(Strace::around(&mut copier, self.way, Some(&inject))?);
                }
                Fault::Journal(damage) => damage.happen(&copier, dice)?,
                Fault::PartLost => self.lose_part()?,
                _ => {}
            }
        }
        let mut running = copier.start(self.way, &self.world.from, &self.world.to, &self.words)?;
        let mut changed = Vec::new();
        for fault in faults {
            running.pass(Duration::from_millis(dice.below(150)))?;
            changed.extend(self.strike(*fault, strace.is_some(), &mut running, dice)?);
        }
        let ended = running.end(PATIENCE)?;
        self.story.push(format!("{faults:?}: {}", ended.words()));
        self.judge(&ended, &changed, tally)
    }

    /// What happens while the copier runs; the file of the source that changed.
    fn strike(
        &mut self,
        fault: Fault,
        traced: bool,
        running: &mut Running,
        dice: &mut Dice,
    ) -> Result<Option<PathBuf>> {
        match fault {
            Fault::KillCopier => running.kill()?,
            // A server that lost its strace is not dead, and no answer comes of it.
            Fault::KillServer if traced => running.kill()?,
            Fault::KillServer => {
                let below = descendants(running.pid());
                let all = dice.percent(50);
                below.into_iter().filter(|_| all || dice.percent(50)).for_each(kill);
            }
            Fault::Change(change) => {
                let files = files(&self.world)?;
                if files.is_empty() {
                    return Ok(None);
                }
                let file = dice.pick(&files);
                change.happen(&file, &self.world.path("aside"), dice.next())?;
                self.whole.admit(&Snapshot::of(&self.world.from)?);
                return Ok(Some(file));
            }
            _ => {}
        }
        Ok(None)
    }

    /// What an attempt left behind; `changed` are files of the source that changed meanwhile.
    fn judge(&mut self, ended: &Ended, changed: &[PathBuf], tally: &mut Tally) -> Result<()> {
        if !self.words.contains(&"--inplace") {
            let broken = self.whole.broken(&Snapshot::of(&self.world.arrived())?);
            if !broken.is_empty() {
                self.complain("never whole", &broken, tally);
            }
        }
        if ended.late {
            self.complain("it hangs", &[], tally);
        }
        if let Some(what) = ended.crash() {
            self.complain(&what, &[], tally);
        }
        let wrong = self.differences(&[])?;
        // Copied before it changed, or after: both are right. All else is as without a change.
        let elsewhere = self.differences(changed)?;
        let what = match (ended.code, wrong.is_empty(), elsewhere.is_empty()) {
            (Some(0), true, _) => "with faults: exit 0 and equal",
            (Some(0), false, true) => "with faults: exit 0, and equal but for what changed",
            (Some(0), false, false) => {
                self.complain("exit 0 and not equal", &elsewhere, tally);
                "with faults: exit 0 and not equal"
            }
            (Some(_), false, _) => "with faults: exit not 0 and not equal",
            (Some(_), true, _) => "with faults: exit not 0, content equal, not vouched for",
            (None, ..) => "with faults: killed",
        };
        tally.count(what);
        Ok(())
    }

    /// How the target differs from the source, as exactly as the options ask for; but for these
    /// files of the source and the directories above them, whose times change with theirs.
    fn differences(&self, but: &[PathBuf]) -> Result<Vec<String>> {
        let attributes = self.words.contains(&"-p");
        let nanoseconds = attributes && self.served == Served::Ours && self.whose == Whose::Ours;
        let source = Snapshot::of(&self.world.from)?.without(&self.world.from, but);
        let target = Snapshot::of(&self.world.arrived())?;
        Ok(source.missing_in(&target, Exactly { attributes, nanoseconds }))
    }

    /// Names in the target that neither it nor the source ever had.
    fn left_over(&self) -> Result<Vec<String>> {
        let beyond = self.known.beyond(&Snapshot::of(&self.world.to)?);
        Ok(beyond.iter().map(|name| format!("{}: left over", shown(name))).collect())
    }

    fn complain(&self, what: &str, wrong: &[String], tally: &mut Tally) {
        let Self { way, served, words, story, .. } = self;
        let shown = wrong.iter().take(5).cloned().collect::<Vec<_>>().join("; ");
        let story = story.join(" -> ");
        tally.violation(
            self.run,
            &format!("{what}: {shown} [{way:?} {served:?} {words:?}] {story}"),
        );
    }

    /// Somebody tidies up: files under way are gone.
    fn lose_part(&self) -> Result<()> {
        let words = ["-name", ".*.part", "-delete"].map(OsStr::new);
        call("find", &[&[self.world.to.as_os_str()], &words[..]].concat())
    }
}

/// An injection of strace.
fn inject(dice: &mut Dice) -> String {
    let (call, errno) = (dice.pick(CALLS), dice.pick(ERRORS));
    let more = if dice.percent(30) { "+" } else { "" };
    let from = if call.starts_with("open") { 8 } else { 1 };
    format!("?{call}:error={}:when={}{more}", errno.0, from + dice.below(12))
}

/// Options of the copy.
fn words(whose: Whose, dice: &mut Dice) -> Vec<&'static str> {
    let mut words = vec!["-r"];
    if dice.percent(60) {
        words.push("-p");
    }
    if dice.percent(30) {
        words.extend(["-l", "80000"]);
    }
    if whose == Whose::Ours {
        words.extend(["-n", dice.pick(&["auto", "1", "2", "4", "8"])]);
        for (word, percent) in
            [("--verify", 25), ("--no-fsync", 20), ("--delay-updates", 20), ("--inplace", 10)]
        {
            let fits = word != "--inplace" || !words.contains(&"--delay-updates");
            if dice.percent(percent) && fits {
                words.push(word);
            }
        }
    }
    words
}

/// An older state of the source in the target: some files gone, some with other content.
fn older(world: &World, dice: &mut Dice) -> Result<()> {
    call("cp", &["-a".as_ref(), world.from.as_ref(), world.arrived().as_ref()])?;
    for (name, item) in Snapshot::of(&world.from)?.0 {
        let at = world.arrived().join(OsStr::from_bytes(&name));
        match (item.kind, dice.below(10)) {
            (Kind::Directory, _) | (_, 0..=3) => {}
            (Kind::File { .. }, 4..=6) => write(&at, dice.below(100_000), dice.next())?,
            _ => fs::remove_file(&at).with_context(|| at.display().to_string())?,
        }
    }
    Ok(())
}

/// The source's files.
fn files(world: &World) -> Result<Vec<PathBuf>> {
    let snapshot = Snapshot::of(&world.from)?;
    let paths = snapshot.files().map(|(name, _)| world.from.join(OsStr::from_bytes(name)));
    Ok(paths.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Ended = Ended {
        code: Some(0),
        signal: None,
        killed: false,
        late: false,
        stdout: String::new(),
        stderr: String::new(),
        peak_kib: 0,
    };

    /// A run whose source, of three files, was copied by somebody else.
    fn copied() -> Run {
        let world = World::new().unwrap();
        fs::create_dir_all(world.from.join("d")).unwrap();
        for name in ["d/changes", "d/beside", "above"] {
            fs::write(world.from.join(name), name).unwrap();
        }
        let mut whole = Whole::default();
        whole.admit(&Snapshot::of(&world.from).unwrap());
        let known = Snapshot::of(&world.path("from")).unwrap();
        call("cp", &["-a".as_ref(), world.from.as_ref(), world.arrived().as_ref()]).unwrap();
        let (way, served) = turn(0);
        let (words, story) = (vec!["-r", "-p", "--inplace"], Vec::new());
        Run { run: 0, whose: Whose::Ours, world, way, served, words, whole, known, story }
    }

    /// How often an attempt of `run` that ended so, with these changes, is complained about.
    fn complaints(run: &mut Run, ended: &Ended, changed: &[&str]) -> usize {
        let changed: Vec<PathBuf> = changed.iter().map(|name| run.world.from.join(name)).collect();
        let mut tally = Tally::default();
        run.judge(ended, &changed, &mut tally).unwrap();
        tally.violations.len()
    }

    #[test]
    fn a_change_of_the_source_excuses_that_file_and_no_other() {
        let mut run = copied();
        assert_eq!(complaints(&mut run, &DONE, &[]), 0);
        fs::remove_file(run.world.from.join("d/changes")).unwrap();
        assert_eq!(complaints(&mut run, &DONE, &[]), 1, "the directory's time");
        assert_eq!(complaints(&mut run, &DONE, &["d/changes"]), 0);
        for other in ["d/beside", "above"] {
            let at = run.world.arrived().join(other);
            fs::rename(&at, run.world.path("kept")).unwrap();
            assert_eq!(complaints(&mut run, &DONE, &["d/changes"]), 1, "{other}");
            fs::rename(run.world.path("kept"), &at).unwrap();
        }
    }

    #[test]
    fn a_panic_is_no_orderly_refusal() {
        let mut run = copied();
        let refused = Ended { code: Some(1), stderr: "no such file".to_owned(), ..DONE };
        assert_eq!(complaints(&mut run, &refused, &[]), 0);
        let panicked = "thread 'main' panicked at x.rs:1".to_owned();
        assert_eq!(complaints(&mut run, &Ended { stderr: panicked, ..refused }, &[]), 1);
        assert_eq!(complaints(&mut run, &Ended { code: None, signal: Some(11), ..DONE }, &[]), 1);
    }

    #[test]
    fn whatever_neither_side_had_is_left_over() {
        let run = copied();
        assert_eq!(run.left_over().unwrap(), Vec::<String>::new());
        for name in ["backup~", "tree/d/.~tmp~", "tree/.above.0.part"] {
            fs::write(run.world.to.join(name), "").unwrap();
        }
        assert_eq!(run.left_over().unwrap().len(), 3);
    }
}

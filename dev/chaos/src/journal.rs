//! Journal: a copy that was stopped is gone on with beside a journal that is cut, changed, lost or
//! another copy's: what is damaged is not believed, and the result is right (R2).

use crate::copier::{Copier, Served, Way, Whose};
use crate::dice::Dice;
use crate::forest::write;
use crate::process::call;
use crate::snapshot::Snapshot;
use crate::tally::{Plan, Tally};
use crate::world::World;
use anyhow::{Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can happen to a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It ends early.
    Cut,
    /// One bit is another.
    Flip,
    /// It is gone.
    Lose,
    /// It is noise.
    Noise,
}

impl Damage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cut, Self::Flip, Self::Lose, Self::Noise];

    /// Lets it happen to every journal of `copier`.
    pub fn happen(self, copier: &Copier, dice: &mut Dice) -> Result<()> {
        copier.journals().iter().try_for_each(|path| self.befall(path, dice))
    }

    fn befall(self, path: &Path, dice: &mut Dice) -> Result<()> {
        let mut bytes = fs::read(path)?;
        let at = usize::try_from(dice.below(bytes.len() as u64))?;
        match self {
            Self::Cut => bytes.truncate(at),
            Self::Flip => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            Self::Lose => return Ok(fs::remove_file(path)?),
            Self::Noise => bytes.iter_mut().for_each(|byte| *byte = dice.next().to_le_bytes()[0]),
        }
        Ok(fs::write(path, bytes)?)
    }
}

/// Copies that were stopped, both ways with our server; `runs` random damages each beside the cuts
/// at every record.
pub fn run(plan: Plan, whose: Whose) -> Result<Tally> {
    let mut tally = Tally::default();
    for (number, way) in [Way::Up, Way::Down].into_iter().enumerate() {
        let mut dice = Dice::of_run(plan.seed, number as u64);
        Stopped::new(way, whose)?.every_damage(plan.runs, &mut dice, &mut tally)?;
    }
    Ok(tally)
}

/// A copy that was killed half-way, kept so that it can be gone on with many times.
struct Stopped {
    world: World,
    copier: Copier,
    way: Way,
    /// What the journal was.
    journal: PathBuf,
    bytes: Vec<u8>,
    number: u64,
}

impl Stopped {
    const SIZE: u64 = 24 << 20;

    fn new(way: Way, whose: Whose) -> Result<Self> {
        let world = World::new()?;
        write(&world.from, Self::SIZE, 1)?;
        let copier = world.copier(whose, Served::Ours)?;
        for tenths in 4..20 {
            // 16 MB/s, 1.5 s in all.
            let words = ["-l", "128000", "-n", "4"];
            let mut running = copier.start(way, &world.from, &world.arrived(), &words)?;
            running.pass(Duration::from_millis(100 * tenths))?;
            running.kill()?;
            let ended = running.end(Duration::from_secs(5))?;
            ensure!(ended.crash().is_none(), "before any damage: {}", ended.words());
            let parts = Snapshot::of(&world.to)?.parts();
            let journal = copier.journals().into_iter().next();
            if let (Some(journal), false) = (journal, parts.is_empty()) {
                let bytes = fs::read(&journal)?;
                if records(&bytes).len() > 5 {
                    keep(&world, "to", "kept to")?;
                    return Ok(Self { world, copier, way, journal, bytes, number: 0 });
                }
            }
        }
        bail!("{way:?}: no copy could be stopped with a journal and a part file")
    }

    fn every_damage(&mut self, runs: u64, dice: &mut Dice, tally: &mut Tally) -> Result<()> {
        let bytes = self.bytes.clone();
        let spared = self.go_on("unharmed", &bytes, tally)?;
        ensure!(spared > 0, "an unharmed journal spares nothing");
        let ends = records(&bytes);
        for (end, next) in ends.iter().zip(ends.iter().skip(1)) {
            for at in [*end, (end + next) / 2] {
                let cut = bytes.get(..at).unwrap_or_default();
                self.go_on("cut at a record or within", cut, tally)?;
            }
        }
        for _ in 0..runs {
            let mut flipped = bytes.clone();
            if let Some(byte) = flipped.get_mut(usize::try_from(dice.below(bytes.len() as u64))?) {
                *byte ^= 1 << dice.below(8);
            }
            self.go_on("a bit flipped", &flipped, tally)?;
        }
        self.go_on("empty", &[], tally)?;
        let noise: Vec<u8> = (0..5000).map(|_| dice.next().to_le_bytes()[0]).collect();
        self.go_on("noise", &noise, tally)?;
        self.go_on("noise behind", &[&bytes[..], &noise].concat(), tally)?;
        self.foreign(tally)?;
        self.changed_since(tally)
    }

    /// The journal of a copy from elsewhere, of another file of the same size.
    fn foreign(&mut self, tally: &mut Tally) -> Result<()> {
        let other = Self::new(self.way, self.copier.whose)?;
        let spared = self.go_on("another copy's", &other.bytes, tally)?;
        if spared > 0 {
            tally.violation(self.number, "another copy's journal was believed");
        }
        Ok(())
    }

    /// The source is another than when the journal was written: nothing of the part may stay.
    fn changed_since(&mut self, tally: &mut Tally) -> Result<()> {
        write(&self.world.from, Self::SIZE, 99)?;
        let bytes = self.bytes.clone();
        let spared = self.go_on("of an older source", &bytes, tally)?;
        if spared > 0 {
            tally.violation(self.number, "an older source's journal was believed");
        }
        Ok(())
    }

    /// Goes on from where the copy was stopped, beside a journal of these bytes; how many bytes
    /// did not have to be moved.
    fn go_on(&mut self, what: &str, journal: &[u8], tally: &mut Tally) -> Result<u64> {
        self.number += 1;
        keep(&self.world, "kept to", "to")?;
        fs::write(&self.journal, journal)?;
        let (from, to) = (&self.world.from, self.world.arrived());
        let words = if self.copier.whose == Whose::Ours { &["--json"][..] } else { &[] };
        let ended = self.copier.copy(self.way, from, &to, words)?;
        tally.crash(self.number, &ended);
        let same = fs::read(from)? == fs::read(&to).unwrap_or_default();
        let parts = Snapshot::of(&self.world.to)?.parts();
        match ended.well() && same && parts.is_empty() {
            true => tally.count(&format!("{what}: right")),
            false => {
                let way = self.way;
                let case = format!("{way:?}, {what}: equal {same}, {parts:?}, {}", ended.words());
                tally.violation(self.number, &case);
            }
        }
        Ok(Self::SIZE.saturating_sub(reported(&ended.stdout, "bytes")))
    }
}

/// A number of the report that `--json` ends with.
#[must_use]
pub fn reported(stdout: &str, field: &str) -> u64 {
    let lines = stdout.lines().rev();
    let report = lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut reports = report.filter(|value| value["event"] == "report");
    reports.next().and_then(|report| report[field].as_u64()).unwrap_or(0)
}

/// A directory of the world in another's place, times, holes and all.
fn keep(world: &World, from: &str, to: &str) -> Result<()> {
    let to = world.path(to);
    if to.exists() {
        fs::remove_dir_all(&to)?;
    }
    call("cp", &["-a".as_ref(), world.path(from).as_ref(), to.as_ref()])
}

/// Where records end: `uint32 length, little-endian | uint8 kind | payload | 8 bytes checksum`.
fn records(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    let mut at = 0;
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        at += 4 + 1 + u32::from_le_bytes(*length) as usize + 8;
        if at > bytes.len() {
            break;
        }
        ends.push(at);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_the_last_of_its_kind() {
        let text = "{\"event\":\"start\"}\n{\"event\":\"report\",\"spared\":7}\n";
        assert_eq!(reported(text, "spared"), 7);
        assert_eq!(reported(text, "wasted"), 0);
        assert_eq!(reported("", "spared"), 0);
    }

    #[test]
    fn records_end_where_their_lengths_say() {
        let record = [&2u32.to_le_bytes()[..], &[0; 1 + 2 + 8]].concat();
        assert_eq!(records(&[&record[..], &record].concat()), [0, 15, 30]);
        assert_eq!(records(&record[..14]), [0]);
    }
}

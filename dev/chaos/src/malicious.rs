//! Malicious: every trick of the evil server on lhscp and on lhsftp's recursive get: nothing is
//! written outside the destination, the error is one a person can read, nothing hangs, and memory
//! is bounded.

use crate::copier::{Copier, Way, Whose, wrapper};
use crate::evil::{Expect, TRICKS, Trick, big};
use crate::forest::write;
use crate::process::{Ended, Running};
use crate::snapshot::Snapshot;
use crate::tally::{Plan, Tally};
use crate::world::World;
use anyhow::Result;
use interop::lab::program;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// How long a client may think about a trick. Lost connections are tried again for a while (R4).
const THINKING: Duration = Duration::from_secs(150);
/// How long it is at work on something without an end.
pub const ENDLESS: Duration = Duration::from_secs(5);
/// Most memory, in KiB: several times what a copy takes, and little to every machine. Who believes a
/// server's lengths takes gigabytes.
const MOST_MEMORY: u64 = 128 << 10;

/// What sftp(1) does not mind: it reads to the end of the file, whatever size it was told.
const LEFT_TO_SFTP: &[&str] = &["name-twice", "data-ends-early", "size-huge", "size-of-8-eib"];

/// Who is played the trick on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// lhscp, or scp.
    Copier(Whose),
    /// lhsftp.
    Sftp,
}

/// Every game there is: each trick on each client that it is for.
#[must_use]
pub fn games(whose: Whose) -> Vec<(Victim, &'static Trick)> {
    let victims = [Victim::Copier(whose), Victim::Sftp];
    let games = victims.into_iter().flat_map(|victim| TRICKS.iter().map(move |t| (victim, t)));
    games.filter(|(victim, trick)| *victim != Victim::Sftp || trick.meets_sftp()).collect()
}

/// These games, in turn, until as many were played as planned; those without an end for so long.
pub fn run(plan: Plan, games: &[(Victim, &Trick)], endless: Duration) -> Result<Tally> {
    plan.carry_out(|run, tally| {
        let (victim, trick) = games[usize::try_from(run)? % games.len()];
        for what in play(victim, trick, endless)? {
            tally.violation(run, &format!("{}, {}: {what}", victim.name(), trick.name));
        }
        tally.count(&format!("tricks on {}", victim.name()));
        Ok(())
    })
}

impl Victim {
    /// The program's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Copier(Whose::Ours) => "lhscp",
            Self::Copier(Whose::Scp) => "scp",
            Self::Sftp => "lhsftp",
        }
    }
}

/// Plays one trick; what was wrong with the client's reaction.
pub fn play(victim: Victim, trick: &Trick, endless: Duration) -> Result<Vec<String>> {
    let world = World::new()?;
    let guard = world.path("guard");
    let dest = guard.join("dest");
    fs::create_dir_all(&dest)?;
    fs::write(guard.join("canary"), "alive")?;
    fs::create_dir(&world.from)?;
    write(&world.from.join("a"), 5000, 1)?;
    write(&world.from.join("large"), 700_000, 2)?;
    let before = outside(&world)?;

    let server = server(&world, trick)?;
    let limit = if trick.expect == Expect::Endless { endless } else { THINKING };
    let command = command(victim, trick, &world, server)?;
    let mut running = Running::start(command, &world.path("home"))?;
    running.pass_below(MOST_MEMORY, limit)?;
    let ended = running.end(Duration::ZERO)?;
    let mut wrong = Vec::new();
    if outside(&world)? != before {
        wrong.push(format!("ESCAPED: {:?}", outside(&world)?.0.keys()));
    }
    wrong.extend(reaction(victim, trick, &ended));
    let names_matter = ["name-", "link-", "listing-", "size-", "realpath-", "directories-"];
    let plain = !names_matter.iter().any(|prefix| trick.name.starts_with(prefix));
    // Exit 0 says that everything is there, whatever was tried.
    if plain && victim != Victim::Sftp && trick.way == Way::Down && ended.well() {
        let tree = dest.join("tree");
        let right = fs::read(tree.join("big")).is_ok_and(|bytes| bytes == big())
            && fs::read(tree.join("sub/b")).is_ok_and(|bytes| bytes == b"beta");
        wrong.extend((!right).then(|| "the content is not right".to_owned()));
    }
    Ok(wrong)
}

/// Everything that the client has no business with: all beside its destination and its home.
pub fn outside(world: &World) -> Result<Snapshot> {
    let mut all = Snapshot::of(&world.path(""))?;
    let own = |name: &[u8]| name.starts_with(b"guard/dest/") || name.starts_with(b"home");
    all.0.retain(|name, _| !own(name) && name != b"");
    // Its time changes with what is made in it, which is allowed.
    if let Some(dest) = all.0.get_mut(&b"guard/dest"[..]) {
        dest.modified = (0, 0);
    }
    Ok(all)
}

fn server(world: &World, trick: &Trick) -> Result<PathBuf> {
    let home = world.path("home");
    fs::create_dir_all(&home)?;
    let words = ["evil", trick.name].map(str::to_owned);
    let chaos = [program("chaos")?.display().to_string()];
    let guard = [world.path("guard").display().to_string()];
    let door = home.join("server");
    wrapper(&door, &[&chaos[..], &words, &guard].concat())?;
    Ok(door)
}

fn command(victim: Victim, trick: &Trick, world: &World, server: PathBuf) -> Result<Command> {
    let dest = world.path("guard/dest");
    match (victim, trick.way) {
        (Victim::Copier(whose), way) => {
            let copier = Copier::with(whose, &world.path("home"), Some(server))?;
            let words: &[&str] = match whose {
                // One lane, so that lies come soon; verified where lies are about hashes.
                Whose::Ours if trick.name.starts_with("hashes-") => &["-rp", "-n", "1", "--verify"],
                Whose::Ours => &["-rp", "-n", "1"],
                Whose::Scp => &["-r", "-p"],
            };
            match way {
                Way::Up => copier.command(way, &world.from, "/up".as_ref(), words),
                Way::Down => copier.command(way, "/tree".as_ref(), &dest, words),
            }
        }
        (Victim::Sftp, _) => {
            let batch = world.path("home/batch");
            fs::write(&batch, format!("get -rp /tree {}\n", dest.display()))?;
            let mut command = Command::new(program("lhsftp")?);
            command.arg("-D").arg(server).arg("-b").arg(batch);
            command.env("HOME", world.path("home")).env("LC_ALL", "C").current_dir(dest);
            Ok(command)
        }
    }
}

/// What is wrong with how the client ended.
fn reaction(victim: Victim, trick: &Trick, ended: &Ended) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |right: bool, what: &str| {
        if !right {
            wrong.push(format!("{what}: {}", ended.words().escape_debug()));
        }
    };
    let endless = trick.expect == Expect::Endless;
    must(!ended.late || endless, "it hangs");
    must(ended.crash().is_none(), "a panic, or a signal");
    must(ended.peak_kib <= MOST_MEMORY, &format!("it took {} MiB", ended.peak_kib >> 10));
    let raw = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    must(
        !ended.stderr.replace("\r\n", "\n").contains(raw),
        "the server's text reached the terminal",
    );
    match trick.expect {
        Expect::Refused => {
            // sftp passes over what it will not have, with a word, and goes on.
            must(victim == Victim::Sftp || ended.code != Some(0), "exit 0");
            let silent = victim == Victim::Sftp && LEFT_TO_SFTP.contains(&trick.name);
            must(silent || !ended.stderr.trim().is_empty(), "not a word");
        }
        Expect::Right => must(ended.well(), "exit not 0"),
        Expect::Either | Expect::Endless => {
            let word = ended.well() || ended.late || !ended.stderr.trim().is_empty();
            must(word, "an error without a word");
        }
    }
    wrong
}

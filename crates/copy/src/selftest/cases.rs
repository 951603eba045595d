//! The cases of the self-test, one row each.

use super::bench::{Bench, wait};
use super::trees::{self, Attributes, same};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// A kind of transfer.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Bench) -> Result<()>,
}

const fn case(name: &'static str, run: fn(&Bench) -> Result<()>) -> Case {
    Case { name, run }
}

#[rustfmt::skip] // a table
pub(crate) const CASES: &[Case] = &[
    case("a file up", |bench| file(bench, Way::Up, 3 << 20)),
    case("a file down", |bench| file(bench, Way::Down, 3 << 20)),
    case("an empty file up", |bench| file(bench, Way::Up, 0)),
    case("an empty file down", |bench| file(bench, Way::Down, 0)),
    case("one byte up", |bench| file(bench, Way::Up, 1)),
    case("a large file over 4 lanes up", |bench| lanes(bench, Way::Up)),
    case("a large file over 4 lanes down", |bench| lanes(bench, Way::Down)),
    case("a tree up", |bench| tree(bench, Way::Up, trees::mixed)),
    case("a tree down", |bench| tree(bench, Way::Down, trees::mixed)),
    case("2000 small files up", |bench| tree(bench, Way::Up, |dir| trees::many(dir, 2000))),
    case("2000 small files down", |bench| tree(bench, Way::Down, |dir| trees::many(dir, 2000))),
    case("odd names one by one", odd_names),
    case("the longest name", longest_name),
    case("links up", |bench| links(bench, Way::Up)),
    case("links down", |bench| links(bench, Way::Down)),
    case("a sparse file up", |bench| sparse(bench, Way::Up)),
    case("a sparse file down", |bench| sparse(bench, Way::Down)),
    case("attributes up", |bench| attributes(bench, Way::Up)),
    case("attributes down", |bench| attributes(bench, Way::Down)),
    case("resume after kill up", |bench| resume(bench, Way::Up)),
    case("resume after kill down", |bench| resume(bench, Way::Down)),
    case("a second run sends nothing up", |bench| again(bench, Way::Up)),
    case("a second run sends nothing down", |bench| again(bench, Way::Down)),
    case("verify repairs up", |bench| repair(bench, Way::Up)),
    case("verify repairs down", |bench| repair(bench, Way::Down)),
    case("verify a tree up", |bench| verified(bench, Way::Up)),
    case("verify a tree down", |bench| verified(bench, Way::Down)),
    case("a new version replaces the old", replace),
    case("between two hosts", |bench| between(bench, "localhost")),
    case("within one host", |bench| between(bench, "127.0.0.1")),
    case("several sources into a directory", several),
    case("a URI", uri),
    case("names from standard input", listed),
    case("include and exclude", filtered),
    case("three shards", shards),
    case("in place", |bench| with_option(bench, "--inplace")),
    case("without fsync", |bench| with_option(bench, "--no-fsync")),
    case("delayed updates", |bench| with_option(bench, "--delay-updates")),
    case("a dry run does nothing", dry),
    case("a limit holds", limited),
    case("test mode up", |bench| made_up(bench, &[".", "127.0.0.1:"])),
    case("test mode down", |bench| made_up(bench, &["127.0.0.1:", "."])),
    case("a special file is told of", special),
    case("a missing source is an error", missing_source),
    case("a missing target directory is an error", missing_target),
    case("a refused login is an error", refused),
];

/// Which end is the other host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Way {
    /// Source and target as operands.
    fn ends(self, bench: &Bench, source: &str, target: &str) -> [OsString; 2] {
        match self {
            Self::Up => [bench.path(source).into(), bench.far(target)],
            Self::Down => [bench.far(source), bench.path(target).into()],
        }
    }

    /// Options, then source `a` and target `b`.
    fn args(self, bench: &Bench, options: &[&str]) -> Vec<OsString> {
        options.iter().map(OsString::from).chain(self.ends(bench, "a", "b")).collect()
    }
}

fn same_ab(bench: &Bench, attributes: Attributes) -> Result<()> {
    same(&bench.path("a"), &bench.path("b"), attributes)?;
    nothing_left(&bench.path("."))
}

/// R1: no part file stays behind.
fn nothing_left(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.as_bytes();
        let is_part = name.starts_with(b".") && name.ends_with(b".part");
        let is_ours = trees::ODD_NAMES.contains(&name);
        ensure!(!is_part || is_ours, "{} was left behind", copy::shown(name));
    }
    Ok(())
}

fn file(bench: &Bench, way: Way, len: usize) -> Result<()> {
    trees::file(&bench.path("a"), len)?;
    bench.ok(&way.args(bench, &[]))?;
    same_ab(bench, Attributes::Any)
}

fn lanes(bench: &Bench, way: Way) -> Result<()> {
    trees::file(&bench.path("a"), (48 << 20) + 12_345)?;
    let report = bench.report(&way.args(bench, &["-n", "4"]))?;
    let lanes = number(&report, "lanes")?;
    // On a busy machine the file may be there before the second connection has logged in.
    ensure!((2..=4).contains(&lanes), "{lanes} lanes of 4: {report}");
    same_ab(bench, Attributes::Any)
}

fn tree(bench: &Bench, way: Way, make: fn(&Path) -> Result<()>) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    make(&bench.path("a"))?;
    bench.ok(&way.args(bench, &["-r"]))?;
    same_ab(bench, Attributes::Any)
}

fn odd_names(bench: &Bench) -> Result<()> {
    for dir in ["here", "there", "back"] {
        fs::create_dir(bench.path(dir))?;
    }
    for (number, name) in trees::ODD_NAMES.iter().enumerate() {
        let name = OsStr::from_bytes(name);
        trees::file(&bench.path("here").join(name), number * 10)?;
        let there = bench.far(Path::new("there").join(name));
        bench.ok(&[bench.path("here").join(name).into_os_string(), there.clone()])?;
        // Patterns are the server's to expand, as in scp: such a name is escaped.
        let literal = escaped(bench, Path::new("there").join(name).as_os_str());
        bench.ok(&[literal, bench.path("back").join(name).into_os_string()])?;
    }
    same(&bench.path("here"), &bench.path("there"), Attributes::Any)?;
    same(&bench.path("here"), &bench.path("back"), Attributes::Any)
}

/// A remote path with its pattern characters escaped.
fn escaped(bench: &Bench, name: &OsStr) -> OsString {
    let path = bench.path(name);
    let mut place = b"127.0.0.1:".to_vec();
    for &byte in path.as_os_str().as_bytes() {
        if b"*?[\\".contains(&byte) {
            place.push(b'\\');
        }
        place.push(byte);
    }
    OsStr::from_bytes(&place).to_owned()
}

fn longest_name(bench: &Bench) -> Result<()> {
    let name = "n".repeat(255);
    fs::create_dir_all(bench.path("a"))?;
    trees::file(&bench.path("a").join(&name), 100_000)?;
    bench.ok(&Way::Up.args(bench, &["-r"]))?;
    same_ab(bench, Attributes::Any)?;
    bench.ok(&["-r".into(), bench.far("b"), bench.path("c").into_os_string()])?;
    same(&bench.path("a"), &bench.path("c"), Attributes::Any)
}

fn links(bench: &Bench, way: Way) -> Result<()> {
    trees::links(&bench.path("a"))?;
    bench.ok(&way.args(bench, &["-rp"]))?;
    same_ab(bench, Attributes::Any)
}

fn sparse(bench: &Bench, way: Way) -> Result<()> {
    let len = 64 << 20;
    trees::sparse(&bench.path("a"), len)?;
    bench.ok(&way.args(bench, &[]))?;
    same_ab(bench, Attributes::Any)?;
    if way == Way::Down && !bench.server_is_ours() {
        return Ok(()); // SFTP knows no holes.
    }
    let on_disk = fs::metadata(bench.path("b"))?.blocks() * 512;
    ensure!(on_disk < len / 2, "{on_disk} of {len} bytes take room on the disk");
    Ok(())
}

fn attributes(bench: &Bench, way: Way) -> Result<()> {
    let dir = bench.path("a");
    fs::create_dir(&dir)?;
    for mode in [0o600, 0o644, 0o755, 0o400] {
        let path = dir.join(format!("{mode:o}"));
        trees::file(&path, 1000)?;
        File::open(&path)?
            .set_modified(std::time::UNIX_EPOCH + Duration::from_secs(u64::from(mode) << 20))?;
        fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
    }
    fs::create_dir(dir.join("sub"))?;
    fs::set_permissions(dir.join("sub"), PermissionsExt::from_mode(0o750))?;
    File::open(&dir)?.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000))?;
    bench.ok(&way.args(bench, &["-rp"]))?;
    same_ab(bench, Attributes::Same)
}

fn resume(bench: &Bench, way: Way) -> Result<()> {
    let len: u64 = 24 << 20;
    trees::file(&bench.path("a"), usize::try_from(len)?)?;
    // With several lanes all of it would be nearly there for long, and then there at once.
    let slow = ["--json", "-n", "1", "--bwlimit", "3M"];
    let mut child = bench.start(&way.args(bench, &slow))?;
    let moved = bench.wait_for_progress(len / 3)?;
    ensure!(child.try_wait()?.is_none(), "it ended before it could be killed");
    child.kill()?;
    wait(&mut child)?;
    ensure!(!bench.path("b").exists(), "an unfinished file has its final name");
    let report = bench.report(&way.args(bench, &[]))?;
    let bytes = number(&report, "bytes")?;
    let sent = "bytes were sent, and had been sent before the kill";
    ensure!(bytes < len - moved / 2, "{bytes} of {len} {sent}: {moved}");
    same_ab(bench, Attributes::Any)
}

fn number(report: &Value, field: &str) -> Result<u64> {
    report.get(field).and_then(Value::as_u64).with_context(|| format!("no {field} in {report}"))
}

fn expect(report: &Value, field: &str, want: u64) -> Result<()> {
    let found = number(report, field)?;
    ensure!(found == want, "{field} is {found} and not {want}: {report}");
    Ok(())
}

fn again(bench: &Bench, way: Way) -> Result<()> {
    for dir in ["a", "a/x", "b"] {
        fs::create_dir(bench.path(dir))?;
    }
    trees::mixed(&bench.path("a/x"))?;
    let [source, target] = way.ends(bench, "a/x", "b");
    let args = ["-rp".into(), source, target];
    bench.ok(&args)?;
    let report = bench.report(&args)?;
    expect(&report, "bytes", 0)?;
    expect(&report, "copied", 0)?;
    same(&bench.path("a/x"), &bench.path("b/x"), Attributes::Same)
}

/// Damage that size and time do not show is found and repaired.
fn repair(bench: &Bench, way: Way) -> Result<()> {
    trees::file(&bench.path("a"), 9 << 20)?;
    bench.ok(&way.args(bench, &["-p"]))?;
    let damaged = File::options().write(true).open(bench.path("b"))?;
    let modified = damaged.metadata()?.modified()?;
    damaged.write_all_at(b"damage", 5 << 20)?;
    damaged.set_modified(modified)?;
    let report = bench.report(&way.args(bench, &["-p", "--verify"]))?;
    expect(&report, "verified", 1)?;
    same_ab(bench, Attributes::Same)
}

/// By block hashes, sums of whole files, or reading: whatever the server can. A second run compares
/// what is there and sends nothing.
fn verified(bench: &Bench, way: Way) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    trees::many(&bench.path("a"), 40)?;
    trees::file(&bench.path("a/-large $(touch x)\n"), 5 << 20)?;
    let args = way.args(bench, &["-rp", "--verify"]);
    let report = bench.report(&args)?;
    expect(&report, "verified", 41)?;
    same_ab(bench, Attributes::Same)?;
    let report = bench.report(&args)?;
    expect(&report, "verified", 41)?;
    expect(&report, "bytes", 0)?;
    same_ab(bench, Attributes::Same)
}

fn replace(bench: &Bench) -> Result<()> {
    trees::file(&bench.path("a"), 100_000)?;
    trees::file(&bench.path("b"), 200_000)?;
    bench.ok(&Way::Up.args(bench, &[]))?;
    same_ab(bench, Attributes::Any)?;
    trees::file(&bench.path("a"), 50_000)?;
    bench.ok(&["a".into(), bench.far("b")])?;
    same_ab(bench, Attributes::Any)
}

fn between(bench: &Bench, second: &str) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    trees::mixed(&bench.path("a"))?;
    bench.ok(&["-r".into(), bench.far("a"), bench.far_on(second, "b")])?;
    same_ab(bench, Attributes::Any)
}

fn several(bench: &Bench) -> Result<()> {
    for dir in ["a", "b", "a/two"] {
        fs::create_dir(bench.path(dir))?;
    }
    trees::file(&bench.path("a/one"), 1000)?;
    trees::file(&bench.path("a/two/three"), 2000)?;
    let sources = ["a/one", "a/two"].map(|name| bench.path(name).into_os_string());
    bench.ok(&[&["-r".into()], sources.as_slice(), &[bench.far("b")]].concat())?;
    same_ab(bench, Attributes::Any)?;
    let onto_a_file = [sources.as_slice(), &[bench.far("a/one")]].concat();
    bench.fails(&onto_a_file, 1, "a/one").map(|_| ())
}

fn uri(bench: &Bench) -> Result<()> {
    trees::file(&bench.path("a b%"), 1000)?;
    let path = bench.path("a b%").display().to_string();
    let uri = format!("scp://127.0.0.1/{}", path.replace('%', "%25").replace(' ', "%20"));
    bench.ok(&[OsString::from(uri), bench.path("b").into()])?;
    same(&bench.path("a b%"), &bench.path("b"), Attributes::Any)
}

fn listed(bench: &Bench) -> Result<()> {
    for dir in ["a", "b", "want"] {
        fs::create_dir(bench.path(dir))?;
    }
    trees::many(&bench.path("a"), 30)?;
    trees::file(&bench.path("a").join("new\nline"), 10)?;
    fs::create_dir(bench.path("want/d3"))?;
    for name in ["d3/f3", "d3/f10", "new\nline"] {
        fs::copy(bench.path("a").join(name), bench.path("want").join(name))?;
    }
    let args = Way::Up.args(bench, &["--files-from", "-", "-0"]);
    bench.ok_with(&args, b"d3/f3\0d3/f10\0new\nline\0")?;
    same(&bench.path("want"), &bench.path("b"), Attributes::Any)
}

fn filtered(bench: &Bench) -> Result<()> {
    for dir in ["a", "want", "a/cache", "a/sub", "want/sub"] {
        fs::create_dir(bench.path(dir))?;
    }
    for name in ["a/x.o", "a/keep.o", "a/y.c", "a/cache/z.c", "a/sub/x.o", "a/sub/y.c"] {
        trees::file(&bench.path(name), 100)?;
    }
    for name in ["keep.o", "y.c", "sub/y.c"] {
        fs::copy(bench.path("a").join(name), bench.path("want").join(name))?;
    }
    let rules = ["-r", "--include", "keep.o", "--exclude", "*.o", "--exclude", "/cache/"];
    bench.ok(&Way::Down.args(bench, &rules))?;
    same(&bench.path("want"), &bench.path("b"), Attributes::Any)
}

/// Each shard copies something, no two the same, and all of them everything.
fn shards(bench: &Bench) -> Result<()> {
    for dir in ["a", "b"] {
        fs::create_dir(bench.path(dir))?;
    }
    trees::many(&bench.path("a"), 60)?;
    let source = bench.path("a/.");
    let mut copied = 0;
    for part in ["1/3", "2/3", "3/3"] {
        let args: [OsString; 5] =
            ["-r".into(), "--shard".into(), part.into(), source.clone().into(), bench.far("b")];
        let mine = number(&bench.report(&args)?, "copied")?;
        ensure!((1..60).contains(&mine), "part {part} is {mine} of 60 files");
        copied += mine;
    }
    ensure!(copied == 60, "the parts are {copied} of 60 files");
    same_ab(bench, Attributes::Any)
}

fn with_option(bench: &Bench, option: &str) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    trees::mixed(&bench.path("a"))?;
    bench.ok(&Way::Up.args(bench, &["-r", option]))?;
    same_ab(bench, Attributes::Any)?;
    bench.ok(&["-r".into(), option.into(), bench.far("a"), bench.path("c").into_os_string()])?;
    same(&bench.path("a"), &bench.path("c"), Attributes::Any)
}

fn dry(bench: &Bench) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    trees::many(&bench.path("a"), 3)?;
    let ran = bench.ok(&Way::Up.args(bench, &["-r", "--dry-run"]))?;
    ensure!(!bench.path("b").exists(), "it made the target");
    ensure!(ran.stdout.lines().any(|line| line.starts_with("create")), "it tells nothing");
    Ok(())
}

fn limited(bench: &Bench) -> Result<()> {
    trees::file(&bench.path("a"), 4 << 20)?;
    let started = Instant::now();
    bench.ok(&Way::Up.args(bench, &["--bwlimit", "4M"]))?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(seconds > 0.9, "4 MiB at 4 MiB/s took {seconds:.1} s");
    same_ab(bench, Attributes::Any)
}

fn made_up(bench: &Bench, ends: &[&str; 2]) -> Result<()> {
    let before = fs::read_dir(bench.path("."))?.count();
    let report = bench.report(&[&["-t", "--size", "40M"], ends.as_slice()].concat())?;
    expect(&report, "bytes", 40 << 20)?;
    let made = fs::read_dir(bench.path("."))?.count().saturating_sub(before);
    ensure!(made <= 3, "it made files"); // the streams of the run
    Ok(())
}

/// Not copied, not silently dropped; the rest is copied.
fn special(bench: &Bench) -> Result<()> {
    fs::create_dir(bench.path("a"))?;
    trees::file(&bench.path("a/file"), 1000)?;
    nix::unistd::mkfifo(&bench.path("a/pipe"), nix::sys::stat::Mode::S_IRWXU)?;
    bench.fails(&Way::Up.args(bench, &["-r"]), 1, "pipe")?;
    same(&bench.path("a/file"), &bench.path("b/file"), Attributes::Any)
}

fn missing_source(bench: &Bench) -> Result<()> {
    for way in [Way::Up, Way::Down] {
        bench.fails(&way.args(bench, &[]), 1, "a: ")?;
        ensure!(!bench.path("b").exists(), "a target without a source");
    }
    Ok(())
}

fn missing_target(bench: &Bench) -> Result<()> {
    trees::file(&bench.path("a"), 1000)?;
    for way in [Way::Up, Way::Down] {
        bench.fails(&way.ends(bench, "a", "no/where/b"), 1, "No such file")?;
    }
    Ok(())
}

fn refused(bench: &Bench) -> Result<()> {
    trees::file(&bench.path("a"), 1000)?;
    let wrong = ["-o", "IdentityFile=none", "-o", "User=no-such-user-here"];
    bench.fails(&Way::Up.args(bench, &wrong), 255, "127.0.0.1").map(|_| ())
}

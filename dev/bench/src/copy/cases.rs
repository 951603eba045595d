//! The cases of `lhbench copy`: what is copied which way over which path, who contends, and which
//! bars the result is held against.

use crate::bars::Against::{Absolute, Contender};
use crate::bars::bar;
use crate::cases::Path;
use Load::{File, Tree};
use Measure::{FirstByte, Link, Memory, Rate};
use Program::{Lhscp, Rsync, Scp, Sftp, Tar};
use Server::{Ours, Stock};
use Way::{Down, Up};

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// One file; its size in bytes, unless `--size` says otherwise.
    File(u64),
    /// So many files of 4 KiB, a thousand to a directory.
    Tree(u64),
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// Which program copies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Program {
    Lhscp(&'static [&'static str]),
    Scp,
    Sftp,
    Rsync,
    /// `tar | ssh tar`
    Tar,
}

/// Whose server it talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Server {
    Ours,
    Stock,
}

/// One contender of a case.
#[derive(Debug)]
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) server: Server,
    /// The load is divided by this: who is fifty times slower need not take fifty times longer.
    pub(crate) divide: u64,
}

impl Entrant {
    const fn slow(self, divide: u64) -> Self {
        Self { divide, ..self }
    }
}

const fn entrant(name: &'static str, program: Program, server: Server) -> Entrant {
    Entrant { name, program, server, divide: 1 }
}

const LHSCP: Entrant = entrant("lhscp-sshd", Lhscp(&[]), Stock);
const LHSCP_OURS: Entrant = entrant("lhscp-lhsshd", Lhscp(&[]), Ours);
const ONE_LANE: Entrant = entrant("one-lane", Lhscp(&["-n", "1"]), Stock);
const SCP: Entrant = entrant("scp", Scp, Stock);
const SFTP: Entrant = entrant("sftp", Sftp, Stock);
const RSYNC: Entrant = entrant("rsync", Rsync, Stock);
const TAR: Entrant = entrant("tar", Tar, Stock);

/// What a bar measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measure {
    /// Bytes, or files, per second.
    Rate,
    /// The share of the link's rate.
    Link,
    /// Seconds until the first byte of content is at the other end; less is better.
    FirstByte,
    /// MiB of the largest process at either end; less is better.
    Memory,
}

impl Measure {
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Rate | Link)
    }
}

/// What a contender must reach, and what it should.
pub(crate) type Bar = crate::bars::Bar<Measure>;

const fn small(of: &'static str) -> Bar {
    bar(of, Memory, Absolute, 128.0, 64.0)
}

/// One row.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) way: Way,
    pub(crate) path: Option<Path>,
    /// Only the time to the first byte is looked at; the copy is stopped then.
    pub(crate) first_byte: bool,
    pub(crate) entrants: &'static [Entrant],
    pub(crate) bars: &'static [Bar],
}

const fn case(
    name: &'static str,
    load: Load,
    way: Way,
    entrants: &'static [Entrant],
    bars: &'static [Bar],
) -> Case {
    Case { name, load, way, path: None, first_byte: false, entrants, bars }
}

impl Case {
    const fn over(self, path: Path) -> Self {
        Self { path: Some(path), ..self }
    }
}

/// 1 Gbit/s, 100 ms, this kernel's default buffers.
const LONG: Path = Path {
    rtt_ms: 100,
    mbit: 1000,
    loss: 0.0,
    queue_mib: 32,
    raised: false,
    server_rmem_kib: None,
    congestion: "cubic",
};
const LOSSY: Path = Path { loss: 0.0001, ..LONG };
const METRO: Path = Path { rtt_ms: 50, ..LONG };

const BIG: Load = File(4 << 30);
const LOOP: &[Entrant] = &[LHSCP, LHSCP_OURS, SCP, SFTP];
const LOOP_BARS: &[Bar] = &[
    bar("lhscp-sshd", Rate, Contender("scp"), 1.4, 1.4),
    bar("lhscp-sshd", Rate, Contender("sftp"), 1.4, 1.4),
    bar("lhscp-lhsshd", Rate, Contender("scp"), 1.8, 2.2),
    small("lhscp-sshd"),
    small("lhscp-lhsshd"),
];
const FAR: &[Entrant] = &[LHSCP, LHSCP_OURS, SCP.slow(16), SFTP.slow(16)];
const FAR_BARS: &[Bar] = &[
    bar("lhscp-sshd", Link, Absolute, 0.8, 0.9),
    bar("lhscp-lhsshd", Link, Absolute, 0.8, 0.9),
    small("lhscp-sshd"),
    small("lhscp-lhsshd"),
];
const LOSSY_BARS: &[Bar] =
    &[bar("lhscp-sshd", Rate, Contender("one-lane"), 2.5, 2.5), small("lhscp-sshd")];
const FILES_FAR: &[Entrant] = &[LHSCP, LHSCP_OURS, SCP.slow(50), RSYNC];
const FILES_FAR_BARS: &[Bar] = &[
    bar("lhscp-sshd", Rate, Contender("scp"), 50.0, 50.0),
    bar("lhscp-lhsshd", Rate, Contender("scp"), 200.0, 200.0),
    small("lhscp-sshd"),
    small("lhscp-lhsshd"),
];
const FILES_LOOP: &[Entrant] = &[LHSCP, LHSCP_OURS, SCP, RSYNC, TAR];
const FILES_LOOP_BARS: &[Bar] = &[
    bar("lhscp-sshd", Rate, Contender("scp"), 2.5, 2.5),
    bar("lhscp-lhsshd", Rate, Contender("rsync"), 1.3, 1.3),
    small("lhscp-sshd"),
    small("lhscp-lhsshd"),
];
const FIRST_BARS: &[Bar] = &[
    bar("lhscp-sshd", FirstByte, Absolute, 0.5, 0.3),
    bar("lhscp-lhsshd", FirstByte, Absolute, 0.5, 0.3),
];

#[rustfmt::skip] // a table
pub(crate) const COPY: &[Case] = &[
    case("big-up", BIG, Up, LOOP, LOOP_BARS),
    case("big-down", BIG, Down, LOOP, LOOP_BARS),
    case("100ms-up", BIG, Up, FAR, FAR_BARS).over(LONG),
    case("100ms-down", BIG, Down, FAR, FAR_BARS).over(LONG),
    case("100ms-loss-up", File(1 << 30), Up, &[LHSCP, ONE_LANE.slow(4)], LOSSY_BARS).over(LOSSY),
    case("100ms-loss-down", File(1 << 30), Down, &[LHSCP, ONE_LANE.slow(4)], LOSSY_BARS).over(LOSSY),
    case("50ms-files-up", Tree(5000), Up, FILES_FAR, FILES_FAR_BARS).over(METRO),
    case("50ms-files-down", Tree(5000), Down, FILES_FAR, FILES_FAR_BARS).over(METRO),
    case("tree-up", Tree(20_000), Up, FILES_LOOP, FILES_LOOP_BARS),
    case("tree-down", Tree(20_000), Down, FILES_LOOP, FILES_LOOP_BARS),
    Case { first_byte: true, ..case("first-byte", Tree(100_000), Up, &[LHSCP, LHSCP_OURS], FIRST_BARS) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_speaks_of_contenders_of_its_case() {
        for case in COPY {
            let has = |name: &str| case.entrants.iter().any(|entrant| entrant.name == name);
            for bar in case.bars {
                for name in bar.contenders() {
                    assert!(has(name), "{}: {name}", case.name);
                }
                assert!(bar.measure != Link || case.path.is_some(), "{}", case.name);
            }
        }
    }
}

//! The cases: one row each. What moves, who contends, and which bars the result is held against.

use crate::bars::Against::{self, Absolute, Contender};
use crate::bars::{bar, goal};
use Measure::{Cpu, Memory, Rate, Share, Wall};

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// `ssh host 'cat >/dev/null' <FILE`
    PushFile,
    /// `ssh host 'cat FILE' | cat >/dev/null`
    PullFile,
    /// `dd bs=1M | ssh host 'dd bs=1M of=/dev/null'`
    PushPipe,
    /// `ssh host 'dd bs=1M' | dd bs=1M of=/dev/null`
    PullPipe,
    /// `ssh -s host discard@longhaul <FILE`
    Discard,
    /// `ssh -s host zeros@longhaul | lhbench take SIZE`
    Zeros,
    /// `ssh host 'lhbench early SIZE' <FILE`: bytes of the first second after the first of them
    EarlyPush,
    /// `ssh host 'cat FILE' | lhbench early SIZE`
    EarlyPull,
    /// A keystroke's round trip beside a push at full speed on the same connection: p99
    KeysPush,
    /// ... beside a pull
    KeysPull,
    /// Two pushes at full speed on one connection: what the slower gets of what the faster does
    FairPush,
    /// Two pulls
    FairPull,
    /// `ssh host true`, by a user with a fast login shell
    Login,
    /// `ssh host 'cat FILE' | (1 MB/s)` for ten seconds, against `ssh host sleep`
    SlowPull,
    /// `ssh host '(1 MB/s)' <FILE` for ten seconds, against `ssh host sleep`
    SlowPush,
}

impl Work {
    /// Whether bytes go to the server.
    pub(crate) fn is_push(self) -> bool {
        matches!(
            self,
            Self::PushFile | Self::PushPipe | Self::Discard | Self::SlowPush | Self::EarlyPush
        )
    }

    /// Whether somebody types beside bulk on one connection.
    pub(crate) fn is_typing(self) -> bool {
        matches!(self, Self::KeysPush | Self::KeysPull) || self.is_fair()
    }

    /// Whether the shares of the bulk channels are what counts, not the keystrokes.
    pub(crate) fn is_fair(self) -> bool {
        matches!(self, Self::FairPush | Self::FairPull)
    }

    /// Whether only the first second's bytes count.
    pub(crate) fn is_early(self) -> bool {
        matches!(self, Self::EarlyPush | Self::EarlyPull)
    }

    /// Whether the case is about the receiver's memory.
    pub(crate) fn is_slow(self) -> bool {
        matches!(self, Self::SlowPull | Self::SlowPush)
    }
}

/// Whose program is at one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    Ours,
    Stock,
}

/// How a contender moves bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tool {
    Ssh { client: Side, server: Side },
    Netcat,
    Iperf,
}

/// One program, or pair of programs, in a case.
#[derive(Debug)]
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) tool: Tool,
    /// More options for the client.
    pub(crate) args: &'static [&'static str],
    /// More options for the server, if it is ours.
    pub(crate) server_args: &'static [&'static str],
    /// Both ends run without privilege, though the bench has it.
    pub(crate) plain: bool,
    /// Bytes moved are divided by this: who is ten times slower need not take ten times longer.
    pub(crate) divide: u64,
}

const fn entrant(name: &'static str, tool: Tool) -> Entrant {
    Entrant { name, tool, args: &[], server_args: &[], plain: false, divide: 1 }
}

const BOTH_OURS: Tool = Tool::Ssh { client: Side::Ours, server: Side::Ours };
const OURS: Entrant = entrant("ours", BOTH_OURS);
const OPENSSH: Entrant = entrant("openssh", Tool::Ssh { client: Side::Stock, server: Side::Stock });
const TO_STOCK: Entrant =
    entrant("lhssh-sshd", Tool::Ssh { client: Side::Ours, server: Side::Stock });
const FROM_STOCK: Entrant =
    entrant("ssh-lhsshd", Tool::Ssh { client: Side::Stock, server: Side::Ours });
const NETCAT: Entrant = entrant("netcat", Tool::Netcat);
const IPERF: Entrant = entrant("iperf3", Tool::Iperf);
// It sends from the page cache with sendfile(2), as ours does with NONE.
const IPERF_ZEROCOPY: Entrant =
    Entrant { args: &["-Z"], ..entrant("iperf3-zerocopy", Tool::Iperf) };
// The same file that ours reads, instead of one block again and again.
const IPERF_FILE: Entrant =
    Entrant { args: &["-F", "{source}"], ..entrant("iperf3-file", Tool::Iperf) };

/// What a bar measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measure {
    /// Bytes per second; more is better.
    Rate,
    /// CPU seconds per byte, both ends together; less is better.
    Cpu,
    /// Seconds; less is better.
    Wall,
    /// MiB of the receiver over idle; less is better.
    Memory,
    /// What the slower channel gets of what the faster one does; more is better.
    Share,
}

impl Measure {
    /// Whether more is better.
    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Rate | Share)
    }
}

/// What a contender must reach, and what it should.
pub(crate) type Bar = crate::bars::Bar<Measure>;

/// One row.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) cipher: &'static str,
    pub(crate) entrants: &'static [Entrant],
    pub(crate) bars: &'static [Bar],
    /// The link, for `lhbench link`.
    pub(crate) path: Option<Path>,
}

/// An emulated path and how the kernel at its ends is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) rtt_ms: u32,
    pub(crate) mbit: u32,
    /// Segments lost, as a fraction.
    pub(crate) loss: f64,
    /// Room before the bottleneck.
    pub(crate) queue_mib: u64,
    /// Whether tcp_rmem, tcp_wmem and their kin allow 256 MiB.
    pub(crate) raised: bool,
    /// What autotuning may give the server's receive buffers, if that is less.
    pub(crate) server_rmem_kib: Option<u32>,
    pub(crate) congestion: &'static str,
}

const GCM: &str = "aes128-gcm@openssh.com";
const CHACHA: &str = "chacha20-poly1305@openssh.com";

const fn pipe(
    name: &'static str,
    work: Work,
    cipher: &'static str,
    entrants: &'static [Entrant],
    bars: &'static [Bar],
) -> Case {
    Case { name, work, cipher, entrants, bars, path: None }
}

const STOCK_TOO: &[Entrant] = &[OURS, OPENSSH, NETCAT, TO_STOCK, FROM_STOCK];
const OURS_OPENSSH: &[Entrant] = &[OURS, OPENSSH];
const VS_OPENSSH: Against = Contender("openssh");
const FILE_BARS: &[Bar] =
    &[bar("ours", Rate, VS_OPENSSH, 2.3, 2.8), bar("ours", Cpu, VS_OPENSSH, 0.40, 0.33)];
const PIPE_BARS: &[Bar] =
    &[bar("ours", Rate, VS_OPENSSH, 1.9, 2.4), goal("ours", Rate, Contender("netcat"), 1.0)];
const CHACHA_BARS: &[Bar] = &[bar("ours", Rate, VS_OPENSSH, 1.8, 2.5)];
const DISCARD_BARS: &[Bar] = &[
    bar("ours", Rate, Contender("iperf3"), 0.9, 1.0),
    goal("ours", Rate, Contender("iperf3-file"), 1.0),
];
const ZEROS_BARS: &[Bar] = &[bar("ours", Rate, Contender("iperf3"), 0.9, 1.0)];
const NONE: Entrant = Entrant {
    args: &["-oNoneEnabled=yes", "-oNoneSwitch=yes", "-oNoneMacEnabled=yes"],
    ..entrant("ours-none", BOTH_OURS)
};
const NONE_ALL: &[Entrant] = &[NONE, OURS, IPERF, IPERF_FILE, IPERF_ZEROCOPY];
const NONE_BARS: &[Bar] = &[
    bar("ours-none", Rate, Contender("iperf3"), 1.0, 1.2),
    goal("ours-none", Rate, Contender("iperf3-file"), 1.0),
    goal("ours-none", Rate, Contender("iperf3-zerocopy"), 1.0),
    bar("ours-none", Cpu, Contender("ours"), 0.75, 0.6),
];
const REKEYING: Entrant = Entrant { args: &["-oRekeyLimit=1G"], ..entrant("ours-1G", BOTH_OURS) };
const REKEY_BARS: &[Bar] = &[bar("ours-1G", Rate, Contender("ours"), 0.97, 0.97)];
const SLOW_BARS: &[Bar] = &[bar("ours", Memory, Absolute, 8.0, 8.0)];
const LOGIN_BARS: &[Bar] = &[bar("ours", Wall, VS_OPENSSH, 0.5, 0.2)];
// `taskset -c 0 lhbench pipe --case workers` is one core; as it is, all there are. On two cores
// both ends' folded threads need both: 1 and 2 workers show what `auto` avoids there.
const WORKERS: &[Entrant] = &[
    OURS,
    Entrant { args: &["-oCryptoWorkers=0"], ..entrant("ours-0", BOTH_OURS) },
    Entrant { args: &["-oCryptoWorkers=1"], ..entrant("ours-1", BOTH_OURS) },
    Entrant { args: &["-oCryptoWorkers=2"], ..entrant("ours-2", BOTH_OURS) },
];
const WORKERS_BARS: &[Bar] = &[bar("ours", Rate, Contender("ours-0"), 0.97, 1.0)];
const CTR: &str = "aes128-ctr";

/// `lhbench pipe`: over loopback.
pub(crate) const PIPE: &[Case] = &[
    pipe("redirect-push", Work::PushFile, GCM, STOCK_TOO, FILE_BARS),
    pipe("redirect-pull", Work::PullFile, GCM, STOCK_TOO, FILE_BARS),
    pipe("pipe-push", Work::PushPipe, GCM, STOCK_TOO, PIPE_BARS),
    pipe("pipe-pull", Work::PullPipe, GCM, STOCK_TOO, PIPE_BARS),
    pipe("discard", Work::Discard, GCM, &[OURS, IPERF, IPERF_FILE], DISCARD_BARS),
    pipe("none-discard", Work::Discard, GCM, NONE_ALL, NONE_BARS),
    pipe("zeros", Work::Zeros, GCM, &[OURS, IPERF], ZEROS_BARS),
    pipe("chacha-push", Work::PushFile, CHACHA, OURS_OPENSSH, CHACHA_BARS),
    pipe("chacha-pull", Work::PullFile, CHACHA, OURS_OPENSSH, CHACHA_BARS),
    pipe("aes256-push", Work::PushFile, "aes256-gcm@openssh.com", OURS_OPENSSH, &[]),
    pipe("ctr-push", Work::PushFile, CTR, OURS_OPENSSH, &[]),
    pipe("chacha-workers", Work::PushFile, CHACHA, WORKERS, WORKERS_BARS),
    pipe("ctr-workers", Work::PushFile, CTR, WORKERS, WORKERS_BARS),
    pipe("rekey-push", Work::PushFile, GCM, &[OURS, REKEYING], REKEY_BARS),
    pipe("rekey-pull", Work::PullFile, GCM, &[OURS, REKEYING], REKEY_BARS),
    pipe("slow-pull", Work::SlowPull, GCM, OURS_OPENSSH, SLOW_BARS),
    pipe("slow-push", Work::SlowPush, GCM, OURS_OPENSSH, SLOW_BARS),
    pipe("login", Work::Login, GCM, OURS_OPENSSH, LOGIN_BARS),
];

const fn link(
    name: &'static str,
    work: Work,
    path: Path,
    entrants: &'static [Entrant],
    bars: &'static [Bar],
) -> Case {
    Case { name, work, cipher: GCM, entrants, bars, path: Some(path) }
}

const LONG: Path = Path {
    rtt_ms: 100,
    mbit: 1000,
    loss: 0.0,
    queue_mib: 32,
    raised: true,
    server_rmem_kib: None,
    congestion: "cubic",
};
const UNTUNED: Path = Path { raised: false, ..LONG };
const LONGER: Path = Path { rtt_ms: 240, ..LONG };
const LOSSY: Path = Path { rtt_ms: 25, loss: 0.0001, ..LONG };
const LOSSY_BBR: Path = Path { congestion: "bbr", ..LOSSY };
const CAPPED: Path = Path { server_rmem_kib: Some(256), ..LONG };
// What autotuning gives alone: a server grows beyond it by itself, up to its MaxSockBuf.
const AUTOTUNED: Entrant = Entrant { server_args: &["-oMaxSockBuf=128K"], divide: 64, ..OURS };
const ASKING: Entrant =
    Entrant { args: &["-oRemoteRcvBuf=64M"], divide: 2, ..entrant("ours-rcvbuf", BOTH_OURS) };
const GROWING: Entrant = Entrant { divide: 2, ..entrant("ours-growing", BOTH_OURS) };
const SET: Entrant =
    Entrant { args: &["-oTcpRcvBuf=32M", "-oRemoteRcvBuf=32M"], ..entrant("ours-set", BOTH_OURS) };
const ASKED_OR_NOT: &[Entrant] = &[AUTOTUNED, ASKING, GROWING, SLOW_STOCK];
const AUTOTUNED_OR_SET: &[Entrant] = &[OURS, SET, SLOW_STOCK];
const ASKING_BARS: &[Bar] = &[bar("ours-rcvbuf", Rate, Contender("ours"), 8.0, 30.0)];
const EARLY_BARS: &[Bar] = &[bar("ours-set", Rate, Contender("ours"), 1.5, 1.5)];
// What stands in the path's own queue is TCP's matter: bbr keeps it short for all contenders.
const OFFICE: Path = Path { rtt_ms: 20, mbit: 200, queue_mib: 1, congestion: "bbr", ..LONG };
const TWO_ROUND_TRIPS: &[Bar] = &[bar("ours", Wall, Absolute, 0.040, 0.030)];
const EQUAL: &[Bar] = &[bar("ours", Share, Absolute, 0.9, 0.97)];
const SLOW_STOCK: Entrant = Entrant { divide: 8, ..OPENSSH };
const PLAIN: Entrant = Entrant { plain: true, ..entrant("ours-user", BOTH_OURS) };
const OURS_IPERF: &[Entrant] = &[OURS, SLOW_STOCK, IPERF];
const UNTUNED_ALL: &[Entrant] = &[OURS, PLAIN, SLOW_STOCK, IPERF];
const VS_IPERF: Against = Contender("iperf3");
const FULL: &[Bar] = &[bar("ours", Rate, VS_IPERF, 0.95, 0.98)];
const FORCED: &[Bar] =
    &[bar("ours", Rate, VS_IPERF, 2.5, 3.0), bar("ours-user", Rate, VS_IPERF, 0.95, 1.3)];
// 7 and 5 round trips of 100 ms.
const ROUND_TRIPS: &[Bar] =
    &[bar("ours", Wall, Absolute, 0.7, 0.5), bar("lhssh-sshd", Wall, Absolute, 0.7, 0.5)];

/// `lhbench link`: over an emulated path.
pub(crate) const LINK: &[Case] = &[
    link("100ms-push", Work::PushFile, LONG, OURS_IPERF, FULL),
    link("100ms-pull", Work::PullFile, LONG, OURS_IPERF, FULL),
    link("100ms-untuned-push", Work::PushFile, UNTUNED, UNTUNED_ALL, FORCED),
    link("100ms-untuned-pull", Work::PullFile, UNTUNED, UNTUNED_ALL, FORCED),
    link(
        "100ms-from-stock",
        Work::PullFile,
        LONG,
        &[TO_STOCK, SLOW_STOCK, IPERF],
        &[bar("lhssh-sshd", Rate, VS_IPERF, 0.9, 0.95)],
    ),
    link(
        "100ms-stock-into-ours",
        Work::PushFile,
        LONG,
        &[FROM_STOCK, SLOW_STOCK, IPERF],
        &[bar("ssh-lhsshd", Rate, VS_IPERF, 0.9, 0.95)],
    ),
    link("240ms-push", Work::PushFile, LONGER, OURS_IPERF, FULL),
    link("240ms-pull", Work::PullFile, LONGER, OURS_IPERF, FULL),
    link("rcvbuf-push", Work::PushFile, CAPPED, ASKED_OR_NOT, ASKING_BARS),
    link("first-second-push", Work::EarlyPush, UNTUNED, AUTOTUNED_OR_SET, EARLY_BARS),
    link("first-second-pull", Work::EarlyPull, UNTUNED, AUTOTUNED_OR_SET, EARLY_BARS),
    link("interactive-push", Work::KeysPush, OFFICE, OURS_OPENSSH, TWO_ROUND_TRIPS),
    link("interactive-pull", Work::KeysPull, OFFICE, OURS_OPENSSH, TWO_ROUND_TRIPS),
    link("fairness-push", Work::FairPush, OFFICE, OURS_OPENSSH, EQUAL),
    link("fairness-pull", Work::FairPull, OFFICE, OURS_OPENSSH, EQUAL),
    link("25ms-loss-cubic", Work::PushFile, LOSSY, OURS_IPERF, FULL),
    link("25ms-loss-bbr", Work::PushFile, LOSSY_BBR, OURS_IPERF, FULL),
    link("100ms-slow-pull", Work::SlowPull, LONG, OURS_OPENSSH, SLOW_BARS),
    link("100ms-slow-push", Work::SlowPush, LONG, OURS_OPENSSH, SLOW_BARS),
    link("100ms-login", Work::Login, LONG, &[OURS, OPENSSH, TO_STOCK], ROUND_TRIPS),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_speaks_of_contenders_of_its_case() {
        for case in PIPE.iter().chain(LINK) {
            let has = |name: &str| case.entrants.iter().any(|entrant| entrant.name == name);
            for bar in case.bars {
                for name in bar.contenders() {
                    assert!(has(name), "{}: {name}", case.name);
                }
            }
        }
    }

    #[test]
    fn every_goal_is_at_least_its_bar() {
        for bar in PIPE.iter().chain(LINK).flat_map(|case| case.bars) {
            let Some(limit) = bar.bar else { continue };
            let more = bar.measure.more_is_better();
            let better = if more { bar.goal >= limit } else { bar.goal <= limit };
            assert!(better, "{bar:?}");
        }
    }

    #[test]
    fn names_are_unique_and_links_have_paths() {
        let mut names: Vec<_> = PIPE.iter().chain(LINK).map(|case| case.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(LINK.iter().all(|case| case.path.is_some()));
    }
}

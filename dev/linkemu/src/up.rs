//! A link that is up: two namespaces, a device in each, and the threads between them.
//!
//! Link::up   sweep leftovers, make namespaces a and b, devices, addresses, sysctls, start pumps
//! spawn_in   a command at either end;  run_in  a closure at either end
//! stats      the counters so far
//! down       stops the threads and removes the namespaces (as dropping does)

use std::io::{self, PipeWriter};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use std::{fs, iter};

use sys::ns::{self, NetNs};
use sys::tun::{self, Tun};

use crate::link::Schedule;
use crate::machine::CpuTimes;
use crate::run::{Clock, Flow, Pump, Shared, lock, memory_for};
use crate::spec::{ADDRESSES_V6, Spec};
use crate::stats::Stats;

/// What every namespace of ours is called: `lhe-ID-a`, `lhe-ID-b`.
const PREFIX: &str = "lhe-";

/// Name of the device at either end.
pub const DEVICE: &str = "lhe0";

/// Packets a device may hold while the emulator sleeps.
const DEVICE_QUEUE: u16 = 10_000;

/// Which end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client's.
    A,
    /// The server's.
    B,
}

/// Why a link did not come up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller is neither root nor has the capabilities.
    #[error("an emulated link needs root, or CAP_NET_ADMIN and CAP_SYS_ADMIN")]
    NotPermitted,
    /// The kernel has no TUN devices, or the container hides them.
    #[error("no TUN device: is /dev/net/tun there?")]
    NoTun,
    /// Anything else.
    #[error("{what}: {source}")]
    Failed {
        /// What was being done.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// An emulated link. Dropping it removes everything.
#[derive(Debug)]
pub struct Link {
    spec: Spec,
    id: String,
    ends: [End; 2],
    threads: Vec<Thread>,
    stop: Arc<AtomicBool>,
    started: Instant,
    machine: CpuTimes,
}

/// A namespace with its device; removed when dropped.
#[derive(Debug)]
struct End {
    ns: NetNs,
    tun: Option<Arc<Tun>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.ns.delete();
    }
}

#[derive(Debug)]
struct Thread {
    handle: Option<JoinHandle<()>>,
    shared: Arc<Mutex<Shared>>,
    /// Closing it wakes the thread.
    wake: Option<PipeWriter>,
}

impl Link {
    /// Brings a link up under a name made of this process's id.
    pub fn up(spec: Spec) -> Result<Self, Error> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self::up_as(&format!("{}.{count}", std::process::id()), spec)
    }

    /// Brings a link up under a name of the caller's choice.
    pub fn up_as(id: &str, spec: Spec) -> Result<Self, Error> {
        sweep();
        if let Some(cc) = &spec.cc {
            allow(cc).map_err(failed("allow this congestion control"))?;
        }
        let ends = [End::new(id, Side::A, &spec)?, End::new(id, Side::B, &spec)?];
        let stop = Arc::new(AtomicBool::new(false));
        let mut link = Self {
            spec,
            id: id.to_owned(),
            ends,
            threads: Vec::new(),
            stop,
            started: Instant::now(),
            machine: CpuTimes::now(),
        };
        link.start().map_err(failed("start the emulator"))?;
        Ok(link)
    }

    fn start(&mut self) -> io::Result<()> {
        let [Some(a), Some(b)] = [&self.ends[0].tun, &self.ends[1].tun] else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let clock = Clock::start();
        let flow = |index: usize, from, to| {
            let path = self.spec.paths()[index].clone();
            let memory = memory_for(&path);
            let schedule = Schedule::new(path, self.spec.seed.wrapping_add(index as u64));
            Flow::new(index, [from, to], schedule, memory)
        };
        let mut flows = vec![flow(0, a, b), flow(1, b, a)];
        while !flows.is_empty() {
            let share =
                if self.spec.threads > 1 { vec![flows.remove(0)] } else { flows.split_off(0) };
            let shared = Arc::new(Mutex::new(Shared::default()));
            let (wake, writer) = io::pipe()?;
            let pump = Pump {
                flows: share,
                quantum: self.spec.quantum(),
                clock,
                shared: shared.clone(),
                stop: self.stop.clone(),
                wake,
            };
            let name = "linkemu-pump".to_owned();
            let handle = Some(thread::Builder::new().name(name).spawn(|| pump.run())?);
            self.threads.push(Thread { handle, shared, wake: Some(writer) });
        }
        Ok(())
    }

    /// What this link is like.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The name of the namespace at one end.
    pub fn namespace(&self, side: Side) -> &str {
        self.end(side).ns.name()
    }

    /// Runs a closure on a thread in the namespace of `side`; sockets it makes live there.
    pub fn run_in<T: Send>(
        &self,
        side: Side,
        f: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        self.end(side).ns.with(f)
    }

    /// Starts a command in the namespace of `side`, told of the link by its environment.
    pub fn spawn_in(&self, side: Side, command: &mut Command) -> io::Result<Child> {
        command.envs(environment(&self.id, side, &self.spec));
        self.run_in(side, || command.spawn())
    }

    /// Starts a command at the client's end.
    pub fn exec_in_a(&self, command: &mut Command) -> io::Result<Child> {
        self.spawn_in(Side::A, command)
    }

    /// Starts a command at the server's end.
    pub fn exec_in_b(&self, command: &mut Command) -> io::Result<Child> {
        self.spawn_in(Side::B, command)
    }

    /// The counters so far.
    pub fn stats(&self) -> Stats {
        let (idle, stolen) = CpuTimes::now().shares_since(self.machine);
        let seconds = self.started.elapsed().as_secs_f64();
        let mut stats = Stats { seconds, idle, stolen, ..Stats::default() };
        for thread in &self.threads {
            let shared = lock(&thread.shared);
            for (index, to) in [&mut stats.a_to_b, &mut stats.b_to_a].into_iter().enumerate() {
                if shared.directions[index].packets_in > 0 {
                    *to = shared.directions[index].clone();
                }
            }
            stats.cpu_seconds += shared.cpu.as_secs_f64();
            stats.busiest_second = stats.busiest_second.max(shared.busiest_second);
        }
        stats.a_to_b.unread_packets = self.device_drops(Side::A);
        stats.b_to_a.unread_packets = self.device_drops(Side::B);
        stats
    }

    /// Packets the device dropped because its queue to the emulator was full.
    fn device_drops(&self, side: Side) -> u64 {
        let table = self.run_in(side, || fs::read_to_string("/proc/thread-self/net/dev"));
        transmit_drops(&table.unwrap_or_default()).unwrap_or(0)
    }

    /// Takes the link down and returns the final counters.
    pub fn down(mut self) -> Stats {
        let dropped = [Side::A, Side::B].map(|side| self.device_drops(side));
        self.stop();
        let mut stats = self.stats();
        [stats.a_to_b.unread_packets, stats.b_to_a.unread_packets] = dropped;
        stats
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in &mut self.threads {
            thread.wake = None;
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }

    fn end(&self, side: Side) -> &End {
        match side {
            Side::A => &self.ends[0],
            Side::B => &self.ends[1],
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.stop();
    }
}

impl End {
    fn new(id: &str, side: Side, spec: &Spec) -> Result<Self, Error> {
        let name = namespace_name(id, side);
        let ns = NetNs::create(&name).map_err(failed(&format!("make namespace {name}")))?;
        let mut end = Self { ns, tun: None };
        let tun = end.ns.with(|| open_device(spec)).map_err(no_tun)?;
        end.ns.with(|| configure(&tun, side, spec)).map_err(failed("configure the device"))?;
        end.ns.with(|| set_sysctls(spec)).map_err(failed("set the TCP limits"))?;
        end.tun = Some(Arc::new(tun));
        Ok(end)
    }
}

fn open_device(spec: &Spec) -> io::Result<Tun> {
    Tun::open(DEVICE, spec.gso)
}

fn configure(tun: &Tun, side: Side, spec: &Spec) -> io::Result<()> {
    // Router solicitations and the like would only clutter the counters.
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/router_solicitations", "0");
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/addr_gen_mode"), "1");
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{DEVICE}/router_solicitations"), "0");
    let (local, remote) = (side.of(&spec.addresses), side.other().of(&spec.addresses));
    tun::set_up("lo")?;
    tun.set_sizes(spec.mtu, DEVICE_QUEUE)?;
    tun.set_ipv4(*local, *remote)?;
    tun.set_up()?;
    // A kernel without IPv6 is no reason to fail.
    let _ = tun.add_ipv6(*side.of(&ADDRESSES_V6), 64);
    Ok(())
}

fn set_sysctls(spec: &Spec) -> io::Result<()> {
    let ipv4 = Path::new("/proc/sys/net/ipv4");
    // One run must not teach the next its path's metrics.
    fs::write(ipv4.join("tcp_no_metrics_save"), "1")?;
    for (name, max) in [("tcp_rmem", spec.rmem), ("tcp_wmem", spec.wmem)] {
        let Some(max) = max else { continue };
        let file = ipv4.join(name);
        let old = fs::read_to_string(&file)?;
        // The initial size must not be above the largest, or it is what holds.
        let lower = |text: &str| text.parse::<u64>().map_or(max, |size| size.min(max)).to_string();
        let value: Vec<String> =
            old.split_whitespace().take(2).map(lower).chain(iter::once(max.to_string())).collect();
        fs::write(file, value.join(" "))?;
    }
    if let Some(cc) = &spec.cc {
        fs::write(ipv4.join("tcp_congestion_control"), cc)?;
    }
    Ok(())
}

/// Adds to the algorithms that a namespace may choose: a list of the whole machine, and the
/// one thing here that outlives the link.
fn allow(cc: &str) -> io::Result<()> {
    let file = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let allowed = fs::read_to_string(file)?;
    if allowed.split_whitespace().any(|name| name == cc) {
        return Ok(());
    }
    fs::write(file, format!("{} {cc}", allowed.trim()))
}

impl Side {
    /// The end opposite.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    fn of<T>(self, pair: &[T; 2]) -> &T {
        match self {
            Self::A => &pair[0],
            Self::B => &pair[1],
        }
    }
}

/// The name of a namespace of link `id`.
pub fn namespace_name(id: &str, side: Side) -> String {
    let side = side.of(&["a", "b"]);
    format!("{PREFIX}{id}-{side}")
}

/// The environment of a command run at one end.
pub fn environment(id: &str, side: Side, spec: &Spec) -> [(&'static str, String); 3] {
    [
        ("LINKEMU_PEER_NS", namespace_name(id, side.other())),
        ("LINKEMU_LOCAL", side.of(&spec.addresses).to_string()),
        ("LINKEMU_REMOTE", side.other().of(&spec.addresses).to_string()),
    ]
}

/// Removes namespaces whose process (by the id in their name) was killed before it could.
fn sweep() {
    let Ok(names) = fs::read_dir(ns::DIR) else { return };
    for name in names.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        if owner_of(&name).is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = ns::delete(&name);
        }
    }
}

/// The process id in `lhe-PID.N-a`.
fn owner_of(name: &str) -> Option<&str> {
    let id = name.strip_prefix(PREFIX)?.strip_suffix(['a', 'b'])?.strip_suffix('-')?;
    let (pid, count) = id.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(pid) && is_number(count)).then_some(pid)
}

/// The fourth transmit column of our device in `/proc/net/dev`.
fn transmit_drops(table: &str) -> Option<u64> {
    let row = table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    row.split_whitespace().nth(11)?.parse().ok()
}

fn failed(what: &str) -> impl Fn(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::NotPermitted,
        _ => Error::Failed { what: what.to_owned(), source },
    }
}

fn no_tun(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Error::NoTun,
        _ => failed("open /dev/net/tun")(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_our_own_making_are_swept() {
        assert_eq!(owner_of("lhe-123.0-a"), Some("123"));
        for name in ["lhe-demo-a", "lhe-123-a", "lhe-1.x-b", "other-123.0-a", "lhe-.0-a"] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }

    #[test]
    fn the_devices_drops_are_found_in_the_kernels_table() {
        let table = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n\
                     \x20 lhe0: 1 2 3 4 5 6 7 8 9 10 11 42 13 14 15 16\n";
        assert_eq!(transmit_drops(table), Some(42));
        assert_eq!(transmit_drops(""), None);
    }
}

//! A lease on a file, held by another process: as NFS servers and Samba do it (fcntl(2)).

use crate::{have, require};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Gives its lease back when it is asked to, and ends with its standard input.
const HOLDER: &str = "
import fcntl, os, signal, sys
fd = os.open(sys.argv[1], os.O_RDWR)
signal.signal(signal.SIGIO, lambda *_: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK))
try:
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    print('leased', flush=True)
except OSError as why:
    print(why, flush=True)
sys.stdin.read()
";

/// A process that has a lease on a file, until somebody else opens it.
pub struct Lease(Child);

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A lease on `path`, which nobody else has open; skipped where there is no such thing.
#[track_caller]
pub fn lease(path: &Path) -> Option<Lease> {
    if !require(&["python3"]) {
        return None;
    }
    let mut command = Command::new("python3");
    command.args(["-c", HOLDER]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn();
    have(child.is_ok(), "python3 does not start");
    let mut child = child.ok()?;
    let mut said = String::new();
    let heard = BufReader::new(child.stdout.take()?).read_line(&mut said);
    let lease = Lease(child);
    let leased = heard.is_ok() && said == "leased\n";
    have(leased, &format!("no lease: {}", said.trim_end())).then_some(lease)
}

//! What an interop test needs of the machine, beyond programs: root, and the Python peers.

pub use ::need::{find, have, require, say};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Whether the tests run as root; says when not.
pub fn require_root() -> bool {
    have(nix::unistd::geteuid().is_root(), "not root")
}

/// Whether mounts of its own can be made here: tried once, for root in a container may not.
pub fn require_mounts() -> bool {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "mount", "--bind", "/", "/"]).stdin(Stdio::null());
        unshare.output().is_ok_and(|tried| tried.status.success())
    });
    have(*MAY, "no mount namespace (unshare -m)")
}

/// The Python environment that scripts/venv makes.
pub fn python() -> PathBuf {
    root().join("target/interop-venv/bin/python")
}

/// The workspace's root.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

//! What an interop test needs of the machine, beyond programs: root, and the Python peers.

pub use ::need::{find, have, require, say};
use std::path::{Path, PathBuf};

/// Whether the tests run as root; says when not.
pub fn require_root() -> bool {
    have(nix::unistd::geteuid().is_root(), "not root")
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

//! Layers: a crate depends only on crates of a lower floor (ARCHITECTURE.md, "Floors").

use crate::Report;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The floors, lowest first. Crates of one floor do not know each other: `proto` knows no `packet`.
const FLOORS: &[&[&str]] = &[
    &["wire", "sys"],
    &["crypt"],
    &["keys", "conf"],
    &["packet", "proto", "sftp"],
    &["engine"],
    &["login"],
    &["remote"],
    &["client", "server", "copy", "sftp-server", "sftp-client"],
];

/// Tools for working on the project: they may use any floor and each other, no floor may use them.
const DEV: &[&str] = &["lhbench", "linkemu", "interop", "chaos", "need", "stand-ins", "xtask"];

/// Crates without I/O: bytes come in as arguments, so no crate that talks to the system may be
/// linked, however convenient.
const PURE: &[&str] = &["wire", "crypt", "packet", "proto"];
const SYSTEM: &[&str] = &["libc", "mio", "nix", "rustix", "signal-hook", "socket2"];

/// An async runtime is allowed in no shipped crate.
const NOWHERE: &[&str] = &["async-std", "smol", "tokio"];

/// Cryptography is linked where algorithms and keys are, and nowhere else (invariant B10).
const CRYPTOGRAPHY: &[&str] =
    &["aws-lc-rs", "ring", "crypto-bigint", "sntrup761", "bcrypt-pbkdf", "subtle"];
const CRYPTOGRAPHERS: &[&str] = &["crypt", "keys"];

/// One dependency as a manifest states it.
struct Edge {
    from: String,
    to: String,
    dev: bool,
}

pub(crate) fn check(root: &Path) -> Result<Report> {
    let metadata = metadata(root)?;
    let edges = edges(&metadata);
    let names = packages(&metadata).map(name).collect::<Vec<_>>();
    let homeless =
        names.iter().filter(|name| floor(name).is_none() && !DEV.contains(&name.as_str()));
    let mut errors: Vec<String> =
        homeless.map(|name| format!("{name}: on no floor (dev/xtask/src/layers.rs)")).collect();
    errors.extend(edges.iter().filter_map(fault));
    let summary = format!("{} crates, {} dependencies", names.len(), edges.len());
    Ok(Report { errors, warnings: Vec::new(), summary })
}

/// Why an edge may not be, or nothing.
fn fault(edge: &Edge) -> Option<String> {
    let Edge { from, to, dev } = edge;
    let from_floor = floor(from)?;
    let why = match floor(to) {
        Some(to_floor) if to_floor >= from_floor => "is not on a lower floor",
        Some(_) => return None,
        None if *dev => return None,
        None if DEV.contains(&to.as_str()) => "is a development tool",
        None if NOWHERE.contains(&to.as_str()) => "is an async runtime",
        None if CRYPTOGRAPHY.contains(&to.as_str()) && !CRYPTOGRAPHERS.contains(&from.as_str()) => {
            "is cryptography, which belongs into crypt"
        }
        None if PURE.contains(&from.as_str()) && SYSTEM.contains(&to.as_str()) => {
            "talks to the system, and this crate is without I/O"
        }
        None => return None,
    };
    Some(format!("{from}: depends on {to}, which {why}"))
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|crates| crates.contains(&name))
}

fn metadata(root: &Path) -> Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    serde_json::from_slice(&out.stdout)
        .with_context(|| format!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr)))
}

/// The manifest of every crate.
pub(crate) fn manifests(root: &Path) -> Result<Vec<PathBuf>> {
    let metadata = metadata(root)?;
    let paths = packages(&metadata).filter_map(|package| package.get("manifest_path")?.as_str());
    Ok(paths.map(PathBuf::from).collect())
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata.get("packages").and_then(Value::as_array).into_iter().flatten()
}

fn name(package: &Value) -> String {
    package.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn edges(metadata: &Value) -> Vec<Edge> {
    packages(metadata).flat_map(edges_of).collect()
}

fn edges_of(package: &Value) -> Vec<Edge> {
    let from = name(package);
    let dependencies = package.get("dependencies").and_then(Value::as_array);
    let edge = |to: &Value| Edge {
        from: from.clone(),
        to: name(to),
        dev: to.get("kind").and_then(Value::as_str) == Some("dev"),
    };
    dependencies.into_iter().flatten().map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, dev: bool) -> Option<String> {
        fault(&Edge { from: from.into(), to: to.into(), dev })
    }

    #[test]
    fn a_crate_may_use_a_lower_floor() {
        assert_eq!(edge("engine", "wire", false), None);
        assert_eq!(edge("client", "login", false), None);
    }

    #[test]
    fn a_crate_may_not_reach_up_or_sideways_even_in_its_tests() {
        assert!(edge("wire", "crypt", false).is_some());
        assert!(edge("proto", "packet", false).is_some());
        assert!(edge("packet", "proto", true).is_some());
    }

    #[test]
    fn a_shipped_crate_may_not_use_a_tool_but_its_tests_may() {
        assert!(edge("server", "linkemu", false).is_some());
        assert_eq!(edge("server", "interop", true), None);
        assert_eq!(edge("lhbench", "server", false), None);
    }

    #[test]
    fn a_crate_without_io_may_not_link_system_crates() {
        assert!(edge("proto", "socket2", false).is_some());
        assert_eq!(edge("engine", "socket2", false), None);
        assert!(edge("engine", "tokio", false).is_some());
    }

    #[test]
    fn b10_cryptography_is_linked_by_crypt_and_keys_alone() {
        assert_eq!(edge("crypt", "aws-lc-rs", false), None);
        assert_eq!(edge("keys", "bcrypt-pbkdf", false), None);
        for from in ["packet", "proto", "engine", "login", "client", "server"] {
            assert!(CRYPTOGRAPHY.iter().all(|to| edge(from, to, false).is_some()), "{from}");
        }
    }

    #[test]
    fn this_workspace_keeps_its_layers() {
        let report = check(&crate::tree::root().unwrap()).unwrap();
        assert_eq!(report.errors, Vec::<String>::new());
    }
}

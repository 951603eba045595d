//! House rules on source files that neither the compiler nor clippy holds.

use crate::tree::{self, Source};
use crate::{Report, layers};
use anyhow::Result;
use std::path::Path;

/// Files are around 350 lines; tests at the end of a file count too, hence the room.
const LONG: usize = 600;

/// Stands in the root of every crate but `sys`: no index expression outside tests.
const NO_INDEX: &str = "deny(clippy::indexing_slicing)";

/// Words that mean unfinished work. Split, so that this file passes its own check.
const UNFINISHED: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];

pub(crate) fn check(root: &Path) -> Result<Report> {
    let sources = tree::sources(root)?;
    let mut report = Report::default();
    for source in &sources {
        report.errors.extend(faults(source));
        report.warnings.extend(long(source));
    }
    report.errors.extend(manifests(root)?);
    report.summary = format!("{} files", sources.len());
    Ok(report)
}

fn faults(source: &Source) -> Vec<String> {
    let Source { path, text } = source;
    let mut found = Vec::new();
    if !text.starts_with("//!") && !path.ends_with("/build.rs") {
        found.push(format!("{path}: the first line does not say what the file is for"));
    }
    if lacks_index_lint(path, text) {
        found.push(format!("{path}: without {NO_INDEX}"));
    }
    for (number, line) in code_lines(text) {
        found.extend(line_faults(path, number, line));
    }
    found
}

fn line_faults(path: &str, number: usize, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !path.starts_with("crates/sys/") && opens_unsafe(line) {
        found.push(format!("{path}:{number}: unsafe code outside crates/sys"));
    }
    for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
        found.push(format!("{path}:{number}: {word}..)"));
    }
    found
}

/// Lines that are not wholly comment, numbered from 1.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    numbered.filter(|(_, line)| !line.starts_with("//"))
}

fn opens_unsafe(line: &str) -> bool {
    ["{", "fn ", "impl ", "extern "]
        .iter()
        .any(|next| line.contains(&format!("{} {next}", "unsafe")))
}

fn lacks_index_lint(path: &str, text: &str) -> bool {
    let shipped = path.starts_with("crates/") && !path.starts_with("crates/sys/");
    let root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    shipped && root && !text.contains(NO_INDEX)
}

fn long(source: &Source) -> Option<String> {
    let lines = source.text.lines().count();
    (lines > LONG).then(|| format!("{}: {lines} lines; split it", source.path))
}

/// Every crate but `sys` takes the workspace's lints, which forbid unsafe code.
fn manifests(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in layers::manifests(root)? {
        let text = std::fs::read_to_string(&path)?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        if !shown.to_string().starts_with("crates/sys/")
            && !text.contains("[lints]\nworkspace = true")
        {
            found.push(format!("{shown}: does not take the workspace's lints"));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        faults(&Source { path: path.into(), text: text.into() })
    }

    #[test]
    fn a_clean_file_passes() {
        assert_eq!(
            found("crates/wire/src/read.rs", "//! Reads.\nfn a() {}\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn unsafe_code_is_found_outside_sys_only() {
        let text = format!("//! X.\nfn a() {{ {} {{ b() }} }}\n", "unsafe");
        assert_eq!(found("crates/engine/src/a.rs", &text).len(), 1);
        assert_eq!(found("crates/sys/src/a.rs", &text).len(), 0);
    }

    #[test]
    fn unfinished_work_and_a_missing_head_line_are_found() {
        let text = format!("fn a() {{ {}) }}\n", UNFINISHED[0]);
        assert_eq!(found("crates/engine/src/a.rs", &text).len(), 2);
    }

    #[test]
    fn every_crate_but_sys_must_deny_index_expressions() {
        let text = "//! Keys.\nmod a;\n";
        assert_eq!(found("crates/keys/src/lib.rs", text).len(), 1);
        assert_eq!(found("crates/client/src/main.rs", text).len(), 1);
        for path in ["crates/sys/src/lib.rs", "crates/keys/src/a.rs", "dev/bench/src/main.rs"] {
            assert_eq!(found(path, text), Vec::<String>::new());
        }
    }
}

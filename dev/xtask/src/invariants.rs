//! Invariants: every row of docs/invariants.md names tests, and the tests exist.
//!
//! A row is `| B3 | what holds | crate: `a_test`, `another_test` |`. Its last cell names at least
//! one test in backquotes. Rows of parts that are not built yet are not in the table.

use crate::{Report, tree};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;

const TABLE: &str = "docs/invariants.md";

/// One row: its id and the tests it names.
#[derive(Debug, PartialEq)]
struct Row {
    id: String,
    tests: Vec<String>,
}

pub(crate) fn check(root: &Path) -> Result<Report> {
    let mut report = Report::default();
    let Ok(text) = std::fs::read_to_string(root.join(TABLE)) else {
        report.errors.push(format!("{TABLE}: missing"));
        return Ok(report);
    };
    let tests: HashSet<String> =
        tree::sources(root)?.iter().flat_map(|source| tests_of(&source.text)).collect();
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    report.errors = all_faults(&rows, &tests);
    report.summary = format!("{} rows, {} tests in the tree", rows.len(), tests.len());
    Ok(report)
}

fn all_faults(rows: &[Row], tests: &HashSet<String>) -> Vec<String> {
    let mut found: Vec<String> = rows.iter().flat_map(|row| faults(row, tests)).collect();
    found.extend(doubles(rows));
    // Also when the table's form has changed, and no line passes for a row any more.
    found.extend(rows.is_empty().then(|| format!("{TABLE}: no row that can be read")));
    found
}

fn faults(row: &Row, tests: &HashSet<String>) -> Vec<String> {
    if row.tests.is_empty() {
        return vec![format!("{TABLE}: {} names no test", row.id)];
    }
    let missing = row.tests.iter().filter(|name| !tests.contains(*name));
    missing.map(|name| format!("{TABLE}: {}: there is no test `{name}`", row.id)).collect()
}

fn doubles(rows: &[Row]) -> Vec<String> {
    let mut seen = HashSet::new();
    let again = rows.iter().filter(|row| !seen.insert(&row.id));
    again.map(|row| format!("{TABLE}: {} stands twice", row.id)).collect()
}

/// A table line whose first cell is an id: one capital letter, then digits.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> =
        line.trim().strip_prefix('|')?.trim_end_matches('|').split('|').collect();
    let id = cells.first()?.trim();
    let number = id.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(Row { id: id.to_owned(), tests: quoted(cells.last()?) })
}

/// The names in backquotes, without their module path.
fn quoted(cell: &str) -> Vec<String> {
    let names = cell.split('`').skip(1).step_by(2);
    names.filter_map(|name| name.rsplit("::").next()).map(str::to_owned).collect()
}

/// Names of the functions that carry `#[test]`, also inside `proptest!`.
fn tests_of(text: &str) -> Vec<String> {
    let mut marked = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line == "#[test]" {
            marked = true;
        } else if let Some(name) = line.strip_prefix("fn ").filter(|_| marked) {
            found.extend(name.split('(').next().map(str::to_owned));
            marked = false;
        } else if line.starts_with('}') {
            marked = false;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_gives_its_id_and_its_tests() {
        let found = row("| B3 | host key is pinned | proto: `kex::a_b`, `c_d` |").unwrap();
        assert_eq!(found, Row { id: "B3".into(), tests: vec!["a_b".into(), "c_d".into()] });
        assert_eq!(row("| id | invariant | test |"), None);
        assert_eq!(row("|---|---|---|"), None);
    }

    #[test]
    fn only_functions_marked_as_tests_count() {
        let text = "fn helper() {}\n#[test]\n#[should_panic]\nfn a_b() {\n}\nfn c() {}";
        assert_eq!(tests_of(text), vec!["a_b".to_owned()]);
    }

    #[test]
    fn a_row_with_an_unknown_test_or_none_is_a_fault() {
        let tests = HashSet::from(["here".to_owned()]);
        let row = |names: &[&str]| Row {
            id: "A1".into(),
            tests: names.iter().map(|name| name.to_string()).collect(),
        };
        assert_eq!(faults(&row(&["here"]), &tests).len(), 0);
        assert_eq!(faults(&row(&["here", "gone"]), &tests).len(), 1);
        assert_eq!(faults(&row(&[]), &tests).len(), 1);
    }

    #[test]
    fn a_table_without_rows_and_a_row_that_stands_twice_are_faults() {
        let tests = HashSet::from(["here".to_owned()]);
        let row = || Row { id: "A1".into(), tests: vec!["here".into()] };
        assert_eq!(all_faults(&[row()], &tests).len(), 0);
        assert_eq!(all_faults(&[row(), row()], &tests).len(), 1);
        assert_eq!(all_faults(&[], &tests).len(), 1);
    }
}

//! The manual of keywords, made from the tables: docs/options.md, and the list that lets a check
//! require an effect test per keyword (docs/invariants.md, D6).

use crate::algorithms::Supported;
use crate::expand::Local;
use crate::row::{Fate, Merge, Missing, Row, Table};
use crate::{client, server};
use std::fmt::Write;
use std::path::PathBuf;

/// Keywords of the client that have an effect.
pub fn client_keywords() -> impl Iterator<Item = &'static str> {
    client::TABLE.rows.iter().map(|row| row.name)
}

/// Keywords of the server that have an effect.
pub fn server_keywords() -> impl Iterator<Item = &'static str> {
    server::TABLE.rows.iter().map(|row| row.name)
}

/// The text of docs/options.md.
#[must_use]
pub fn options_md() -> String {
    let local =
        Local { home: PathBuf::from("~"), user: "the local user's name".to_owned(), uid: 0 };
    let supported = Supported::default();
    let mut out = String::from(HEAD);
    out.push_str("\n## lhssh\n\n");
    section(&mut out, &client::TABLE, client::Client::new("host", &supported, &local));
    out.push_str("\n## lhsshd\n\n");
    section(&mut out, &server::TABLE, server::Server::new(&supported));
    in_match(&mut out, &server::TABLE);
    out
}

const HEAD: &str = "\
# Options

Made from the tables of `crates/conf`; a test compares it. To renew it: \
`UPDATE_DOCS=1 cargo test -p conf options_md`.

`lhssh` takes a keyword from `-o`, `~/.ssh/config`, then `/etc/ssh/ssh_config`; `lhsshd` from `-o`, \
then `/etc/longhaul/lhsshd_config` or what `-f` names. The first value counts, except where it says \
*adds*. Keywords and values are those of ssh_config(5) and sshd_config(5); `Host` and `Match` blocks, \
`Include` and `IgnoreUnknown` are as there. Sizes take K, M, G; times take s, m, h, d, w.

In ssh_config, a `Match` line has the criteria all, canonical, final, host, originalhost, user and \
localuser. One with exec, localnetwork, tagged, version, sessiontype or command is an error where \
everything before that holds.

In a list of algorithms, names that OpenSSH has and this suite has not are passed over; a list \
of which nothing is left is an error, and so is a name nobody has.

A keyword that stands in neither table is an error.
";

fn section<T: Clone>(out: &mut String, table: &Table<T>, mut default: T) {
    out.push_str("| keyword | value | default | |\n|---|---|---|---|\n");
    for row in table.rows {
        supported_row(out, row, &mut default);
    }
    out.push_str("\nOf OpenSSH, without an effect here:\n\n");
    out.push_str("| keyword | what happens with it | because |\n|---|---|---|\n");
    for missing in table.missing {
        missing_row(out, missing);
    }
}

/// Which keywords a Match block may have.
fn in_match<T: Clone>(out: &mut String, table: &Table<T>) {
    let rows = table.rows.iter().filter(|row| table.is_for_match(row.name));
    let names: Vec<&str> = rows.map(|row| row.name).collect();
    _ = writeln!(
        out,
        "\nA `Match` line has the criteria User, Group, Host, Address, LocalAddress and LocalPort, or \
         All. The keywords under it that have an effect are {}.",
        names.join(", ")
    );
}

fn supported_row<T>(out: &mut String, row: &Row<T>, default: &mut T) {
    let field = (row.field)(default);
    let syntax = field.syntax().replace('|', "\\|");
    let values = field.show().join(", ");
    let values = match (values.as_str(), syntax.starts_with('[')) {
        ("", true) => "all, in their order",
        ("", false) => "not set",
        (values, _) => values,
    };
    let adds = match (row.merge, row.only_given) {
        (Merge::First, false) => "",
        (Merge::First, true) => "*command line only* ",
        (Merge::Add | Merge::AddOrOverride, _) => "*adds* ",
    };
    let (name, help) = (row.name, row.help);
    _ = writeln!(out, "| {name} | {adds}{syntax} | {values} | {help} |");
}

fn missing_row(out: &mut String, missing: &Missing) {
    let fate = match missing.fate {
        Fate::PassOver | Fate::Clears => "passed over".to_owned(),
        Fate::UnlessCleared => "an error, unless ClearAllForwardings stands before it".to_owned(),
        Fate::WarnUnless(words) => {
            format!("passed over with a warning, unless {}", words.join(", "))
        }
        Fate::Only(words) => format!("an error, unless {}", words.join(", ")),
        Fate::If(_, what) => format!("an error, unless {what}"),
        Fate::Refuse => "an error".to_owned(),
    };
    _ = writeln!(out, "| {} | {fate} | {} |", missing.name, missing.why);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_md_says_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, options_md()).unwrap();
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text == options_md(), "run UPDATE_DOCS=1 cargo test -p conf options_md");
    }

    #[test]
    fn no_keyword_stands_twice() {
        fn check<T>(table: &Table<T>) {
            let rows = table.rows.iter().map(|row| row.name);
            let all = rows.chain(table.missing.iter().map(|missing| missing.name));
            let mut names: Vec<String> = all.map(str::to_ascii_lowercase).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        check(&client::TABLE);
        check(&server::TABLE);
    }
}

//! Names and texts of other hosts on their way to a terminal (invariant E2): never lossy inside,
//! here made harmless and readable.

use std::fmt::Write;
use wire::text::is_invisible;

/// A path or text with control characters and bytes that are no UTF-8 written as `\n`, `\x1b`,
/// `\xff`; a backslash stays one, since this is for reading.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(&mut out, c));
        chunk.invalid().iter().for_each(|byte| _ = write!(out, "\\x{byte:02x}"));
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' => out.extend(c.escape_default()),
        c if c.is_ascii_control() => _ = write!(out, "\\x{:02x}", u32::from(c)),
        c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2_a_name_cannot_drive_the_terminal() {
        let cases: [(&[u8], &str); 6] = [
            (b"a b", "a b"),
            ("größe".as_bytes(), "größe"),
            (b"a\nb\t\r", "a\\nb\\t\\r"),
            (b"\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f"),
            (b"\xff\xc3", "\\xff\\xc3"),
            ("\u{9b}2J\u{202e}gpj".as_bytes(), "\\u{9b}2J\\u{202e}gpj"),
        ];
        for (bytes, want) in cases {
            assert_eq!(shown(bytes), want);
        }
    }
}

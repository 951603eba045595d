//! Names and texts of the other side, made fit for a terminal (docs/invariants.md, E2).
//!
//! As sftp(1) does it: what is not printable appears as `\ooo`, octal, byte by byte, and so does
//! whatever is not UTF-8 (or not ASCII, in a locale without UTF-8). Unlike sftp(1), line ends inside a
//! name are escaped too: a name must not be able to look like two.

use std::fmt::Write;
use std::sync::OnceLock;
use wire::text::is_invisible;

/// `bytes` as they may be shown.
pub(crate) fn shown(bytes: &[u8]) -> String {
    escape(bytes, locale_is_utf8())
}

fn escape(bytes: &[u8], utf8: bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if is_plain(char, utf8) {
                out.push(char);
            } else {
                octal(char.encode_utf8(&mut [0; 4]).as_bytes(), &mut out);
            }
        }
        octal(chunk.invalid(), &mut out);
    }
    out
}

/// Printable, and unable to reorder or hide its neighbours.
pub(crate) fn is_plain(char: char, utf8: bool) -> bool {
    (char.is_ascii() || utf8) && (!char.is_control() || char == '\t') && !is_invisible(char)
}

fn octal(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        _ = write!(out, "\\{byte:03o}");
    }
}

/// What the environment says about characters: the first of the three that is set counts.
fn locale_is_utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
        let locale = set.into_iter().find(|value| !value.is_empty());
        locale.is_some_and(|name| {
            let name = name.to_string_lossy().to_ascii_lowercase();
            name.ends_with("utf-8") || name.ends_with("utf8")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2_names_cannot_drive_the_terminal() {
        let cases: [(&[u8], &str, &str); 8] = [
            (b"plain name", "plain name", "plain name"),
            (b"esc\x1b[1m", "esc\\033[1m", "esc\\033[1m"),
            (b"two\nlines\r\t", "two\\012lines\\015\t", "two\\012lines\\015\t"),
            ("é".as_bytes(), "é", "\\303\\251"),
            (b"bad\xff", "bad\\377", "bad\\377"),
            (b"\xc2\x9b1m", "\\302\\2331m", "\\302\\2331m"),
            ("\u{202e}gpj".as_bytes(), "\\342\\200\\256gpj", "\\342\\200\\256gpj"),
            (b"\x7f", "\\177", "\\177"),
        ];
        for (name, utf8, ascii) in cases {
            assert_eq!(escape(name, true), utf8);
            assert_eq!(escape(name, false), ascii);
        }
    }
}

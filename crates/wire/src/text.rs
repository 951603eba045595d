//! Text of a peer on its way to people: to a log, to a terminal.

/// What stands for the rest of a text that was cut.
const CUT: &str = "...";

/// `text` as one line of printable characters; all others, and those that hide or reorder their
/// neighbours, are escaped as in Rust (invariant E2). Spaces stay, other white space does not.
pub fn visible(text: &str) -> String {
    visible_within(text, usize::MAX)
}

/// The first `most` bytes of that at the most, then `...` if there is more.
pub fn visible_within(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    for c in text.chars() {
        let before = out.len();
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
        if out.len() > most {
            out.truncate(before);
            out.push_str(CUT);
            break;
        }
    }
    out
}

/// An error as the C library says it, without what Rust adds.
#[must_use]
pub fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_owned()
}

fn is_plain(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_invisible(c))
}

/// Characters that hide or reorder the text around them (Unicode's category Cf, as far as it
/// does): a name must not look like another.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e2_text_of_a_peer_stays_one_line_that_reads_as_it_is() {
        for (text, want) in [
            ("Grüße, 世界 \\n", "Grüße, 世界 \\n"),
            ("a\nAccepted\u{1b}[1m\r\t", "a\\nAccepted\\u{1b}[1m\\r\\t"),
            ("\u{7f}\u{9b}2J", "\\u{7f}\\u{9b}2J"),
            ("\u{202e}gpj\u{2066}", "\\u{202e}gpj\\u{2066}"),
            ("a\u{2028}b\u{2029}\u{85}", "a\\u{2028}b\\u{2029}\\u{85}"),
            ("ro\u{200b}ot\u{feff}\u{a0}", "ro\\u{200b}ot\\u{feff}\\u{a0}"),
        ] {
            assert_eq!(visible(text), want);
            assert_eq!(visible(want), want, "nothing is escaped twice");
        }
    }

    #[test]
    fn what_is_cut_is_cut_between_characters() {
        assert_eq!(visible_within("abc", 3), "abc");
        assert_eq!(visible_within("abcd", 3), "abc...");
        assert_eq!(visible_within("aüü", 4), "aü...");
        assert_eq!(visible_within("a\u{200b}", 8), "a...");
        assert_eq!(visible_within("\n", 0), "...");
    }
}

//! Words of a command line, by the quoting rules of sftp(1).
//!
//! A word is kept as a glob pattern: a backslash protects the byte after it. Commands that take a
//! plain path ask for [`Word::literal`], those that take a pattern for [`Word::pattern`].

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word(Vec<u8>);

/// A quote was opened and not closed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unterminated;

/// Bytes that mean something in a pattern.
const fn is_wild(byte: u8) -> bool {
    matches!(byte, b'?' | b'[' | b'*')
}

impl Word {
    /// A word that is a pattern already.
    pub(crate) fn of_pattern(pattern: Vec<u8>) -> Self {
        Self(pattern)
    }

    /// The word as a glob pattern.
    pub(crate) fn pattern(&self) -> &[u8] {
        &self.0
    }

    /// The word as a path: wildcards and backslashes are given their plain meaning back, and
    /// a backslash before anything else stands for itself.
    pub(crate) fn literal(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len());
        let mut bytes = self.0.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            let protected =
                bytes.next_if(|&next| byte == b'\\' && (is_wild(next) || next == b'\\'));
            out.push(protected.unwrap_or(byte));
        }
        out
    }
}

/// What surrounds the byte at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Word,
    Quote(u8),
}

/// Splits a line at blanks; a `#` outside quotes ends it.
pub(crate) fn split(line: &[u8]) -> Result<Vec<Word>, Unterminated> {
    let mut words: Vec<Word> = Vec::new();
    let mut word = Vec::new();
    let mut inside = Inside::Nothing;
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (inside, byte) {
            (Inside::Nothing | Inside::Word, b'#') => break,
            (Inside::Nothing, b) if b.is_ascii_whitespace() => {}
            (Inside::Word, b) if b.is_ascii_whitespace() => {
                words.push(Word(std::mem::take(&mut word)));
                inside = Inside::Nothing;
            }
            (Inside::Nothing | Inside::Word, b'"' | b'\'') => inside = Inside::Quote(byte),
            (Inside::Nothing | Inside::Word, b'\\') => {
                protect(bytes.next(), &mut word);
                inside = Inside::Word;
            }
            (Inside::Nothing | Inside::Word, b) => {
                word.push(b);
                inside = Inside::Word;
            }
            (Inside::Quote(quote), b) if b == quote => inside = Inside::Word,
            (Inside::Quote(quote), b'\\') => quoted_backslash(quote, bytes.next(), &mut word)?,
            (Inside::Quote(_), b) if is_wild(b) => word.extend([b'\\', b]),
            (Inside::Quote(_), b) => word.push(b),
        }
    }
    match inside {
        Inside::Quote(_) => return Err(Unterminated),
        Inside::Word => words.push(Word(word)),
        Inside::Nothing => {}
    }
    Ok(words)
}

/// Outside quotes a backslash gives any byte its plain meaning; at the end of a line, none.
fn protect(next: Option<u8>, word: &mut Vec<u8>) {
    match next {
        Some(byte) if is_wild(byte) || byte == b'\\' => word.extend([b'\\', byte]),
        Some(byte) => word.push(byte),
        None => {}
    }
}

/// Inside quotes it does so for the quote and itself only; wildcards are plain there anyway, so
/// before one of them the backslash stands for itself.
fn quoted_backslash(quote: u8, next: Option<u8>, word: &mut Vec<u8>) -> Result<(), Unterminated> {
    match next.ok_or(Unterminated)? {
        byte if byte == quote => word.push(byte),
        byte if is_wild(byte) => word.extend([b'\\', b'\\', b'\\', byte]),
        byte => word.extend([b'\\', byte]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(line: &str) -> Vec<String> {
        let words = split(line.as_bytes()).unwrap();
        words.iter().map(|word| String::from_utf8(word.literal()).unwrap()).collect()
    }

    fn patterns(line: &str) -> Vec<String> {
        let words = split(line.as_bytes()).unwrap();
        words.iter().map(|word| String::from_utf8(word.pattern().to_vec()).unwrap()).collect()
    }

    #[test]
    fn blanks_part_words_and_quotes_keep_them() {
        let cases: [(&str, &[&str]); 10] = [
            ("  get a\tb  ", &["get", "a", "b"]),
            ("get \"a b\" 'c d'", &["get", "a b", "c d"]),
            ("get a\\ b", &["get", "a b"]),
            ("a\"b c\"'d'e", &["ab cde"]),
            ("\"it's\" '\"'", &["it's", "\""]),
            ("\"a\\\"b\"", &["a\"b"]),
            ("'a\\'b'", &["a'b"]),
            ("ls # all", &["ls"]),
            ("ls \"#1\" x#y", &["ls", "#1", "x"]),
            ("\"\" x", &["", "x"]),
        ];
        for (line, want) in cases {
            assert_eq!(literals(line), want, "{line}");
        }
    }

    #[test]
    fn quoted_and_escaped_wildcards_are_plain() {
        let cases = [
            ("a*", "a*", "a*"),
            ("a\\*", "a\\*", "a*"),
            ("'a*'", "a\\*", "a*"),
            ("a\"*\"*", "a\\**", "a**"),
            ("'a\\*'", "a\\\\\\*", "a\\*"),
            ("a\\\\b", "a\\\\b", "a\\b"),
            ("'a\\\\b'", "a\\\\b", "a\\b"),
            ("'a\\xb'", "a\\xb", "a\\xb"),
            ("a\\xb", "axb", "axb"),
        ];
        for (line, pattern, literal) in cases {
            assert_eq!(patterns(line), [pattern], "{line}");
            assert_eq!(literals(line), [literal], "{line}");
        }
    }

    #[test]
    fn an_open_quote_is_an_error() {
        for line in ["get \"x", "get 'x", "'x\\", "\"a\\\""] {
            assert_eq!(split(line.as_bytes()), Err(Unterminated), "{line}");
        }
    }

    #[test]
    fn any_bytes_pass() {
        let words = split(b"\xff\x80 \x01").unwrap();
        assert_eq!(
            words.iter().map(Word::literal).collect::<Vec<_>>(),
            [&b"\xff\x80"[..], b"\x01"]
        );
    }
}

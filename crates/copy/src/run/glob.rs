//! Glob: sources on another host with `*`, `?` and `[...]`, as scp(1) takes them. Names are bytes.

use super::names;

/// Whether a path has anything to be expanded.
pub(super) fn is_pattern(path: &[u8]) -> bool {
    let mut escaped = false;
    path.iter().any(|byte| {
        let special = !escaped && matches!(byte, b'*' | b'?' | b'[');
        escaped = !escaped && *byte == b'\\';
        special
    })
}

/// Without the backslashes that take special characters' meaning away.
pub(super) fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        match (byte, bytes.as_slice().first()) {
            (b'\\', Some(_)) => plain.extend(bytes.next()),
            _ => plain.push(byte),
        }
    }
    plain
}

/// Whether a name of a directory matches one component of a pattern. A name that starts with a dot
/// is matched only by one that does.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.first() == Some(&b'.') && pattern.first() != Some(&b'.') {
        return false;
    }
    run(pattern, name)
}

/// After a failure behind a `*`, that star takes one byte more: no recursion, no blow-up.
fn run(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (pattern, name);
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = p {
            star = Some((rest, n));
            p = rest;
            continue;
        }
        if p.is_empty() && n.is_empty() {
            return true;
        }
        if let (Some(rest), [_, left @ ..]) = (one(p, n.first().copied()), n) {
            (p, n) = (rest, left);
            continue;
        }
        match star {
            Some((after, [_, left @ ..])) => {
                star = Some((after, left));
                (p, n) = (after, left);
            }
            _ => return false,
        }
    }
}

/// What is left of the pattern if it begins with something that matches the byte.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<&[u8]> {
    let byte = byte?;
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => set(rest, byte).or_else(|| (byte == b'[').then_some(rest)),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

/// A set after its `[`: what follows it, if the byte is in it.
fn set(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (not, mut rest) = match pattern {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (mut found, mut first) = (false, true);
    loop {
        rest = match rest {
            [b']', after @ ..] if !first => return (found != not).then_some(after),
            [low, b'-', high, after @ ..] if *high != b']' => {
                found |= (*low..=*high).contains(&byte);
                after
            }
            [same, after @ ..] => {
                found |= *same == byte;
                after
            }
            [] => return None,
        };
        first = false;
    }
}

/// A pattern's components: those before the first that has anything to be expanded, and the others.
pub(super) fn split(pattern: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut base = if pattern.starts_with(b"/") { b"/".to_vec() } else { Vec::new() };
    let mut rest: Vec<Vec<u8>> = Vec::new();
    for part in pattern.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
        match rest.is_empty() && !is_pattern(part) {
            true => base = names::join(&base, &unescaped(part)),
            false => rest.push(part.to_vec()),
        }
    }
    (base, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            (&b"*"[..], &b"abc"[..], true),
            (b"*", b".abc", false),
            (b".*", b".abc", true),
            (b"a*c", b"abbbc", true),
            (b"a*c", b"abbbd", false),
            (b"*.t?t", b"x.y.txt", true),
            (b"[a-c]x", b"bx", true),
            (b"[!a-c]x", b"bx", false),
            (b"[]x]", b"]", true),
            (b"[x", b"[x", true),
            (b"\\*", b"*", true),
            (b"\\*", b"a", false),
            (b"*\xff", b"a\xff", true),
            (b"", b"", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_long_time() {
        let pattern = b"*a".repeat(40);
        assert!(!matches(&pattern, &b"a".repeat(39)));
        assert!(!run(&[b"*a".repeat(30), b"b".to_vec()].concat(), &b"a".repeat(2000)));
    }

    #[test]
    fn patterns_are_taken_apart() {
        assert_eq!(split(b"/a/b*/c"), (b"/a".to_vec(), vec![b"b*".to_vec(), b"c".to_vec()]));
        assert_eq!(split(b"x\\*/y?"), (b"x*".to_vec(), vec![b"y?".to_vec()]));
        assert!(!is_pattern(b"a\\*b"));
        assert!(is_pattern(b"a[b"));
        assert_eq!(unescaped(b"a\\*b\\\\"), b"a*b\\");
    }
}

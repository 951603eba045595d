//! Patterns of file names, glob(7): `?`, `*`, `[a-z]`, `[!a]`, `[[:digit:]]`; a backslash protects.

/// What one step of a pattern stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Byte(u8),
    AnyByte,
    AnyBytes,
    OneOf { not: bool, ranges: Vec<(u8, u8)> },
}

/// A pattern for one component of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Step>);

impl Pattern {
    /// Reads a pattern; there is no wrong one, an open `[` stands for itself.
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let step = match byte {
                b'\\' => protected(&mut rest),
                b'?' => Step::AnyByte,
                b'*' if steps.last() == Some(&Step::AnyBytes) => continue,
                b'*' => Step::AnyBytes,
                b'[' => one_of(&mut rest).unwrap_or(Step::Byte(b'[')),
                byte => Step::Byte(byte),
            };
            steps.push(step);
        }
        Self(steps)
    }

    /// The one name it stands for, if it has no wildcards.
    pub(crate) fn literal(&self) -> Option<Vec<u8>> {
        let byte = |step: &Step| match step {
            Step::Byte(byte) => Some(*byte),
            _ => None,
        };
        self.0.iter().map(byte).collect()
    }

    /// Whether `name` fits. A leading dot has to be there as such.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && self.0.first() != Some(&Step::Byte(b'.')) {
            return false;
        }
        fits(&self.0, name)
    }
}

/// At each byte that does not fit, the last `*` takes one more: no recursion, at worst
/// steps x bytes.
fn fits(mut steps: &[Step], mut name: &[u8]) -> bool {
    let mut retry: Option<(&[Step], &[u8])> = None;
    loop {
        match (steps.split_first(), name.split_first()) {
            (Some((Step::AnyBytes, after)), _) => {
                retry = Some((after, name));
                steps = after;
            }
            (Some((step, after)), Some((&byte, rest))) if step.takes(byte) => {
                (steps, name) = (after, rest);
            }
            (None, None) => return true,
            _ => {
                let Some((after, from)) = retry else { return false };
                let Some((_, from)) = from.split_first() else { return false };
                retry = Some((after, from));
                (steps, name) = (after, from);
            }
        }
    }
}

impl Step {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::AnyByte => true,
            Self::AnyBytes => false,
            Self::OneOf { not, ranges } => {
                ranges.iter().any(|&(low, high)| (low..=high).contains(&byte)) != *not
            }
        }
    }
}

fn protected(rest: &mut &[u8]) -> Step {
    let Some((&byte, after)) = rest.split_first() else { return Step::Byte(b'\\') };
    *rest = after;
    Step::Byte(byte)
}

/// A set after its `[`; `None` if it is never closed, and then nothing was taken.
fn one_of(rest: &mut &[u8]) -> Option<Step> {
    let (not, mut set) = match rest.split_first() {
        Some((b'!' | b'^', after)) => (true, after),
        _ => (false, *rest),
    };
    let mut ranges = Vec::new();
    loop {
        if let Some((b']', after)) = set.split_first()
            && !ranges.is_empty()
        {
            *rest = after;
            return Some(Step::OneOf { not, ranges });
        }
        if let Some((class, after)) = class(set) {
            ranges.extend(class);
            set = after;
            continue;
        }
        let low = member(&mut set)?;
        let mut high = low;
        if let [b'-', end, ..] = set
            && *end != b']'
        {
            set = set.get(1..)?;
            high = member(&mut set)?;
        }
        ranges.push((low, high));
    }
}

fn member(set: &mut &[u8]) -> Option<u8> {
    let (&byte, after) = set.split_first()?;
    *set = after;
    if byte != b'\\' {
        return Some(byte);
    }
    let (&byte, after) = set.split_first()?;
    *set = after;
    Some(byte)
}

type Ranges = &'static [(u8, u8)];

const CLASSES: [(&[u8], Ranges); 11] = [
    (b"[:alnum:]", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
    (b"[:alpha:]", &[(b'A', b'Z'), (b'a', b'z')]),
    (b"[:blank:]", &[(b' ', b' '), (b'\t', b'\t')]),
    (b"[:cntrl:]", &[(0, 31), (127, 127)]),
    (b"[:digit:]", &[(b'0', b'9')]),
    (b"[:graph:]", &[(33, 126)]),
    (b"[:lower:]", &[(b'a', b'z')]),
    (b"[:print:]", &[(32, 126)]),
    (b"[:punct:]", &[(33, 47), (58, 64), (91, 96), (123, 126)]),
    (b"[:space:]", &[(b' ', b' '), (9, 13)]),
    (b"[:upper:]", &[(b'A', b'Z')]),
];

fn class(set: &[u8]) -> Option<(Ranges, &[u8])> {
    CLASSES.iter().find_map(|(name, ranges)| Some((*ranges, set.strip_prefix(*name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        let cases = [
            ("*", "abc", true),
            ("*", ".abc", false),
            (".*", ".abc", true),
            ("?bc", "abc", true),
            ("[.]abc", ".abc", false),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("*a*b", "xaxbxab", true),
            ("a**b", "ab", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]x]", "]", true),
            ("[a-]", "-", true),
            ("[ab", "[ab", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[\\]a]", "]", true),
            ("[[:digit:]]?", "7x", true),
            ("[[:digit:]]?", "xx", false),
            ("", "", true),
            ("a", "", false),
            ("é*", "éa", true),
        ];
        for (pattern, name, want) in cases {
            assert_eq!(
                Pattern::new(pattern.as_bytes()).matches(name.as_bytes()),
                want,
                "{pattern}"
            );
        }
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        let pattern = Pattern::new("a*".repeat(60).as_bytes());
        let name = "a".repeat(250) + "b";
        assert!(pattern.matches(name.as_bytes()));
        let pattern = Pattern::new(("a*".repeat(60) + "c").as_bytes());
        assert!(!pattern.matches(name.as_bytes()));
    }

    #[test]
    fn literal_patterns_are_known() {
        assert_eq!(Pattern::new(b"a\\*b").literal(), Some(b"a*b".to_vec()));
        assert_eq!(Pattern::new(b"a*b").literal(), None);
        assert_eq!(Pattern::new(b"[x").literal(), Some(b"[x".to_vec()));
    }
}

//! Patterns of ssh_config(5): `*`, `?`, comma lists, `!` in front of what must not match.

/// What a pattern list says about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// A pattern matches and no negated one does.
    Yes,
    /// Nothing matches.
    No,
    /// A negated pattern matches: the whole list is off, whatever else is in it.
    Negated,
}

/// Whether `name` matches one pattern, in which `*` is any run of bytes and `?` any one.
///
/// Takes at most `pattern x name` steps: only the last `*` is ever taken back.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go on when a byte does not fit: after the last `*`, one byte further in the name.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), name.split_first()) {
            (Some((b'*', rest)), _) => {
                retry = Some((rest, name));
                pattern = rest;
            }
            (Some((p, pattern_rest)), Some((n, name_rest))) if p == n || *p == b'?' => {
                (pattern, name) = (pattern_rest, name_rest);
            }
            (None, None) => return true,
            _ => match retry.and_then(|(after, at)| Some((after, at.get(1..)?))) {
                Some(next) => {
                    (pattern, name) = next;
                    retry = Some(next);
                }
                None => return false,
            },
        }
    }
}

/// Whether a comma-separated list matches, by `matches` for each pattern without its `!`.
pub fn list_matches(list: &str, mut matches: impl FnMut(&str) -> bool) -> Match {
    let mut found = Match::No;
    for pattern in list.split(',') {
        match pattern.strip_prefix('!') {
            Some(negated) if matches(negated) => return Match::Negated,
            None if matches(pattern) => found = Match::Yes,
            _ => {}
        }
    }
    found
}

/// Whether a comma-separated list matches a host name; case does not count.
pub fn host_list_matches(list: &str, host: &str) -> Match {
    let host = host.to_ascii_lowercase();
    list_matches(&list.to_ascii_lowercase(), |pattern| matches(pattern, &host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("?", "", false),
            ("?", "x", true),
            ("", "", true),
            ("", "x", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "example.org", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("192.168.?.1?", "192.168.7.12", true),
            ("**a", "a", true),
            ("a", "ab", false),
            ("*a", "aab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_negated_pattern_turns_the_list_off() {
        for (list, expected) in [
            ("*.org,!b.org", Match::Yes),
            ("*.org,!a.org", Match::Negated),
            ("!a.org,*.org", Match::Negated),
            ("!b.org", Match::No),
            ("A.ORG", Match::Yes),
        ] {
            assert_eq!(host_list_matches(list, "a.Org"), expected, "{list}");
        }
    }

    #[test]
    fn many_stars_do_not_take_long() {
        assert!(!matches(&"*a".repeat(2_000), &"a".repeat(1_999)));
        assert!(!matches(&format!("{}b", "a*".repeat(5_000)), &"a".repeat(20_000)));
    }

    /// The definition, exponential and obvious.
    fn reference(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|n| reference(rest, &name[n..])),
            ([p, ps @ ..], [n, ns @ ..]) => (p == n || *p == b'?') && reference(ps, ns),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(
                matches(&pattern, &name),
                reference(pattern.as_bytes(), name.as_bytes())
            );
        }
    }
}

//! Patterns of ssh_config(5): `*`, `?`, and comma-separated lists in which `!` negates.
//! Used for Host blocks, IgnoreUnknown, environment names and algorithm lists.

/// Whether `text` matches `pattern`, where `*` is any run of characters and `?` any one.
///
/// Runs in time proportional to the product of the lengths, whatever the pattern.
#[must_use]
pub fn matches_pattern(text: &str, pattern: &str) -> bool {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let mut retry = None;
    loop {
        let before = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                retry = Some((before.clone(), pattern.clone()));
                text = before;
            }
            (Some('?'), Some(_)) => {}
            (Some(p), Some(t)) if p == t => {}
            _ => {
                // The last star takes one character more.
                let Some((mut rest, after_star)) = retry.take() else { return false };
                if rest.next().is_none() {
                    return false;
                }
                retry = Some((rest.clone(), after_star.clone()));
                (text, pattern) = (rest, after_star);
            }
        }
    }
}

/// What a list of patterns says of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// A pattern matches and no negated one does.
    Yes,
    /// No pattern matches.
    No,
    /// A negated pattern matches, which decides.
    Negated,
}

/// Matches `text` against patterns, each perhaps with `!` before it.
pub(crate) fn match_all<'a>(text: &str, patterns: impl IntoIterator<Item = &'a str>) -> Match {
    let mut result = Match::No;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(negated) if matches_pattern(text, negated) => return Match::Negated,
            None if matches_pattern(text, pattern) => result = Match::Yes,
            _ => {}
        }
    }
    result
}

/// Whether `text` matches the comma-separated `list`.
#[must_use]
pub fn matches_list(text: &str, list: &str) -> bool {
    match_all(text, list.split(',').map(str::trim)) == Match::Yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_and_question_marks_match_as_in_ssh_config() {
        let yes = [
            ("abc", "abc"),
            ("abc", "a*"),
            ("abc", "*c"),
            ("abc", "a?c"),
            ("", "*"),
            ("abc", "**"),
            ("a.b.c", "*.c"),
            ("aab", "*ab"),
            ("abc", "*"),
        ];
        let no = [("abc", "ab"), ("abc", "?"), ("", "?"), ("abc", "*d"), ("Abc", "abc"), ("a", "")];
        yes.iter().for_each(|(t, p)| assert!(matches_pattern(t, p), "{t} {p}"));
        no.iter().for_each(|(t, p)| assert!(!matches_pattern(t, p), "{t} {p}"));
    }

    #[test]
    fn a_negated_match_decides_whatever_its_place() {
        assert!(matches_list("a.x", "*.x,!b.x"));
        assert!(!matches_list("b.x", "*.x,!b.x"));
        assert!(!matches_list("b.x", "!b.x,*.x"));
        assert!(!matches_list("c", "!b.x"));
    }

    proptest! {
        #[test]
        fn a_text_matches_itself_and_the_star(text in "[a-z.]{0,12}") {
            prop_assert!(matches_pattern(&text, &text));
            prop_assert!(matches_pattern(&text, "*"));
        }

        #[test]
        fn many_stars_end_in_time(text in "a{0,200}", stars in 0usize..60) {
            let pattern = "a*".repeat(stars) + "b";
            prop_assert!(!matches_pattern(&text, &pattern));
        }
    }
}

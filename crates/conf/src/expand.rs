//! Names a user gives, checked before anything is expanded (docs/invariants.md, E1;
//! CVE-2023-51385), and the expansion of `~`, `%` tokens and `${VARIABLE}` in values
//! (ssh_config(5), TOKENS).

use crate::error::Error;
use std::path::{Path, PathBuf};

/// Who runs the program, for `~`, `%u`, `%d`, `%i` and the checks of file ownership.
#[derive(Debug, Clone)]
pub struct Local {
    /// Home directory.
    pub home: PathBuf,
    /// User name.
    pub user: String,
    /// User id.
    pub uid: u32,
}

/// Characters that mean something to a shell.
const SHELL: &[char] =
    &['\'', '"', '`', '$', '\\', ';', '&', '<', '>', '|', '(', ')', '{', '}', '*', '?', '!', '#'];

/// Checks a host name, from the command line or a file, before it is used or expanded.
///
/// # Errors
/// A leading `-`, blanks, control characters, `/`, or characters that mean something to a shell.
pub fn check_host(host: &str) -> Result<(), Error> {
    let refuse = |why| Err(Error::Name("host", host.to_owned(), why));
    match host {
        "" => refuse("it is empty"),
        _ if host.starts_with('-') => refuse("it starts with '-'"),
        _ if host.len() > 1025 => refuse("it is too long"),
        _ if host.contains(char::is_control) => refuse("it has control characters"),
        _ if host.contains(|c: char| c.is_whitespace() || c == '/') => {
            refuse("it has blanks or '/'")
        }
        _ if host.contains(SHELL) => refuse("it has characters that a shell interprets"),
        _ => Ok(()),
    }
}

/// Checks a user name, from the command line or a file, before it is used or expanded.
///
/// A backslash may stand inside (`DOMAIN\user`), not at the end.
///
/// # Errors
/// A leading `-`, blanks, control characters, or characters that mean something to a shell.
pub fn check_user(user: &str) -> Result<(), Error> {
    let refuse = |why| Err(Error::Name("user", user.to_owned(), why));
    let is_shell = |c: char| c != '\\' && SHELL.contains(&c);
    match user {
        "" => refuse("it is empty"),
        _ if user.starts_with('-') => refuse("it starts with '-'"),
        _ if user.len() > 256 => refuse("it is too long"),
        _ if user.contains(char::is_control) => refuse("it has control characters"),
        _ if user.contains(char::is_whitespace) => refuse("it has blanks"),
        _ if user.contains(is_shell) => refuse("it has characters that a shell interprets"),
        _ if user.ends_with('\\') => refuse("it ends with a backslash"),
        _ => Ok(()),
    }
}

/// `%` tokens with what each stands for.
pub(crate) type Tokens<'a> = &'a [(char, &'a str)];

/// Replaces `%x` by its token and `%%` by `%`; an unknown token is an error.
pub(crate) fn percent(text: &str, tokens: Tokens<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('%') => out.push('%'),
            Some(key) => match tokens.iter().find(|(token, _)| *token == key) {
                Some((_, value)) => out.push_str(value),
                None => return Err(format!("unknown token %{key} in '{text}'")),
            },
            None => return Err(format!("'{text}' ends with '%'")),
        }
    }
    Ok(out)
}

/// Replaces a leading `~/` by the home directory; `~user` is refused.
pub(crate) fn tilde(text: &str, home: &Path) -> Result<PathBuf, String> {
    match text.strip_prefix('~') {
        None => Ok(PathBuf::from(text)),
        Some(tail) if tail.is_empty() || tail.starts_with('/') => {
            Ok(home.join(tail.trim_start_matches('/')))
        }
        Some(_) => Err(format!("'{text}': another user's home is not supported yet")),
    }
}

/// A file name with everything expanded; what is put in is not expanded again.
pub(crate) fn path(text: &str, tokens: Tokens<'_>, home: &Path) -> Result<PathBuf, String> {
    let expanded = variables(text, tokens)?;
    match text.starts_with('~') {
        true => tilde(&expanded, home),
        false => Ok(PathBuf::from(expanded)),
    }
}

/// Replaces `${NAME}` by the environment's value, and tokens in what stands between.
fn variables(text: &str, tokens: Tokens<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("${") {
        let (name, after) = tail.split_once('}').ok_or_else(|| format!("'{text}' lacks a '}}'"))?;
        out.push_str(&percent(before, tokens)?);
        out.push_str(&std::env::var(name).map_err(|_| format!("${{{name}}} is not set"))?);
        rest = after;
    }
    out.push_str(&percent(rest, tokens)?);
    Ok(out)
}

/// `host:port`, an IPv6 address in brackets.
pub(crate) fn with_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_a_shell_or_a_program_could_misread_are_refused() {
        for bad in [
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "`x`",
            "a\nb",
            "a\0",
            "",
            "../x",
            "a|b",
            "a'b",
            "a\"b",
            "a\\b",
            "a&b",
            "a>b",
            "a\u{7f}",
        ] {
            assert!(check_host(bad).is_err(), "{bad:?}");
        }
        for bad in ["-l", "a b", "a;b", "$HOME", "`x`", "a\tb", "", "a\\", "a|b", "(a)"] {
            assert!(check_user(bad).is_err(), "{bad:?}");
        }
        for good in ["host", "10.0.0.1", "::1", "fe80::1%eth0", "a_b-c.d", "bücher.example"] {
            assert!(check_host(good).is_ok(), "{good}");
        }
        for good in ["root", "DOMAIN\\user", "a.b@c", "user+tag"] {
            assert!(check_user(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn tokens_expand_once() {
        let tokens: Tokens<'_> = &[('h', "%r"), ('r', "me")];
        assert_eq!(percent("%h-%r-%%h", tokens).unwrap(), "%r-me-%h");
        assert!(percent("%x", tokens).is_err());
        assert!(percent("%", tokens).is_err());
    }

    #[test]
    fn a_tilde_is_the_home_only_at_the_start() {
        let home = Path::new("/home/me");
        assert_eq!(path("~/.ssh/%h", &[('h', "~")], home).unwrap(), Path::new("/home/me/.ssh/~"));
        assert_eq!(path("~", &[], home).unwrap(), Path::new("/home/me/"));
        assert_eq!(path("/a/~", &[], home).unwrap(), Path::new("/a/~"));
        assert_eq!(path("%h/x", &[('h', "~")], home).unwrap(), Path::new("~/x"));
        assert!(path("~other/x", &[], home).is_err());
        assert!(path("~é/x", &[], home).is_err());
        assert!(path("${NO_SUCH_VARIABLE_HERE}", &[], home).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = path(&text, &[('h', "host")], Path::new("/home/me"));
            let _ = (check_host(&text), check_user(&text));
        }
    }
}

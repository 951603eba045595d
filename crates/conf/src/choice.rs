//! Values that are one word out of a few. The first word of a variant is the one a dump shows.

use crate::field::Scalar;

/// Declares an enumeration by the words that stand for its variants.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $syntax:literal,
     $($(#[$item_doc:meta])* $item:ident = $($word:literal)|+),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$item_doc])* $item),+ }

        impl $name {
            const WORDS: &[(&str, Self)] = &[$($(($word, Self::$item)),+),+];
        }

        impl Scalar for $name {
            const SYNTAX: &'static str = $syntax;

            fn read(text: &str) -> Result<Self, String> {
                let found = Self::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
                found.map(|&(_, item)| item).ok_or_else(|| format!("'{text}' is not one of {}", $syntax))
            }

            fn text(&self) -> String {
                let found = Self::WORDS.iter().find(|(_, item)| item == self);
                found.map_or("", |(word, _)| word).to_owned()
            }
        }
    };
}

choice!(
    /// Which family of addresses connections use.
    AddressFamily, "any|inet|inet6",
    /// Both.
    Any = "any",
    /// IPv4 only.
    Inet = "inet",
    /// IPv6 only.
    Inet6 = "inet6",
);

choice!(
    /// How much is said; each level says what those before it do.
    LogLevel, "QUIET|FATAL|ERROR|INFO|VERBOSE|DEBUG|DEBUG1|DEBUG2|DEBUG3",
    /// Nothing at all.
    Quiet = "QUIET",
    /// Why the program ends.
    Fatal = "FATAL",
    /// Errors.
    Error = "ERROR",
    /// What a user wants to know; the default.
    Info = "INFO",
    /// More of it.
    Verbose = "VERBOSE",
    /// What a developer wants to know.
    Debug1 = "DEBUG" | "DEBUG1",
    /// Packets and messages.
    Debug2 = "DEBUG2",
    /// Everything.
    Debug3 = "DEBUG3",
);

choice!(
    /// Whether a server compresses what clients want compressed, once they are logged in.
    Compression, "yes|delayed|no",
    /// After login; the default.
    Delayed = "yes" | "delayed",
    /// Never.
    No = "no",
);

choice!(
    /// What happens with a host whose key is not known. A changed key is refused in every case.
    StrictHostKeyChecking, "yes|accept-new|ask|no|off",
    /// Refuse it.
    Yes = "true" | "yes",
    /// Note it down and go on.
    AcceptNew = "accept-new",
    /// Ask on the terminal; the default.
    Ask = "ask",
    /// Note it down and go on.
    No = "false" | "no" | "off",
);

/// Whether to ask for a terminal at the other end: never yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTty {
    /// No terminal, for want of a better word from the user.
    Auto,
    /// No terminal.
    No,
    /// A terminal, which no configuration that counts can have.
    Yes,
}

impl Scalar for RequestTty {
    const SYNTAX: &'static str = "auto|no";

    fn read(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "no" | "false" => Ok(Self::No),
            "yes" | "true" | "force" => Ok(Self::Yes),
            _ => Err(format!("'{text}' is not one of {}", Self::SYNTAX)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Auto => "auto",
            Self::No => "false",
            Self::Yes => "true",
        }
        .to_owned()
    }

    fn refusal(&self) -> Option<String> {
        let why = "a terminal at the other end is not supported yet";
        (*self == Self::Yes).then(|| why.to_owned())
    }
}

/// Which of the variables in `~/.ssh/environment` and `environment=` options are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEnvironment {
    /// None; the default.
    No,
    /// All.
    Yes,
    /// Those whose name matches this list of patterns.
    Matching(String),
}

impl UserEnvironment {
    /// Whether the variable of this name is used.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::Matching(list) => crate::pattern::matches_list(name, list),
        }
    }
}

impl Scalar for UserEnvironment {
    const SYNTAX: &'static str = "yes|no|pattern,...";

    fn read(text: &str) -> Result<Self, String> {
        Ok(match bool::read(text) {
            Ok(true) => Self::Yes,
            Ok(false) => Self::No,
            Err(_) => Self::Matching(text.to_owned()),
        })
    }

    fn text(&self) -> String {
        match self {
            Self::No => "no".to_owned(),
            Self::Yes => "yes".to_owned(),
            Self::Matching(list) => list.clone(),
        }
    }
}

//! Reading the client's configuration: command line, then the user's file, then the system's. Called
//! once by the client, before it connects.
//!
//! A `Match final` anywhere asks for a second pass over the files, in which Host and Match lines see
//! the resolved HostName; values of the first pass stay.

use super::criteria::{Target, Verdict};
use super::{Client, TABLE};
use crate::algorithms::Supported;
use crate::error::Error;
use crate::expand::{Local, check_host};
use crate::file::{self, Item, Rules};
use crate::line::Setting;
use crate::pattern::{Match, match_all};
use crate::row::{Loaded, Resolver};
use std::io;
use std::path::{Path, PathBuf};

/// Which files are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Files {
    /// `~/.ssh/config`, then `/etc/ssh/ssh_config`.
    #[default]
    Standard,
    /// `-F file`: this one, which must exist.
    Only(PathBuf),
    /// `-F none`.
    None,
}

impl Files {
    /// What `-F` with this argument asks for.
    #[must_use]
    pub fn from_option(value: &Path) -> Self {
        match value.to_str() {
            Some("none") => Self::None,
            _ => Self::Only(value.to_owned()),
        }
    }
}

/// Reads the configuration for `host`; `given` are the settings of the command line, in order.
///
/// # Errors
/// A file that cannot be read, a line that is wrong or not supported, a name that is refused.
pub fn load(
    host: &str,
    given: &[Setting],
    files: &Files,
    supported: &Supported,
    local: &Local,
) -> Result<Loaded<Client>, Error> {
    check_host(host)?;
    let default = Client { files: files.clone(), ..Client::new(host, supported, local) };
    let mut resolver = Resolver::new(&TABLE, supported, default);
    for setting in given {
        resolver.apply(setting, true)?;
    }
    let files = read_files(files, local)?;
    let mut pass = Pass { host: host.to_owned(), is_final: false, wants_final: false };
    files.iter().try_for_each(|items| walk(&mut resolver, items, &mut pass, true))?;
    if pass.wants_final {
        let host = resolver.config.resolved_host_name()?;
        // No line of this pass may change it any more.
        resolver.apply(&Setting::given("HostName", "%h"), true)?;
        pass = Pass { host, is_final: true, wants_final: true };
        files.iter().try_for_each(|items| walk(&mut resolver, items, &mut pass, true))?;
    }
    let Resolver { config, notices, .. } = resolver;
    Ok(Loaded { config: config.finish()?, notices })
}

fn read_files(files: &Files, local: &Local) -> Result<Vec<Vec<Item>>, Error> {
    let ssh = local.home.join(".ssh");
    let user = Rules { base: &ssh, home: Some(&local.home), owner: None };
    let checked = Rules { owner: Some(local.uid), ..user };
    let system = Rules { base: Path::new("/etc/ssh"), home: None, owner: None };
    let found = match files {
        Files::None => Vec::new(),
        Files::Only(path) => {
            let absent = || io::Error::other("no such file");
            let items = file::read(path, user)?;
            vec![items.ok_or_else(|| Error::File(path.display().to_string(), absent()))?]
        }
        Files::Standard => {
            let mine = file::read(&ssh.join("config"), checked)?;
            let theirs = file::read(Path::new("/etc/ssh/ssh_config"), system)?;
            mine.into_iter().chain(theirs).collect()
        }
    };
    Ok(found)
}

/// One walk over the files.
struct Pass {
    /// What Host lines name: the host as typed, in the final pass the resolved HostName.
    host: String,
    is_final: bool,
    /// A line has `Match final`.
    wants_final: bool,
}

/// Applies the settings of one file; blocks of an included file end with it.
fn walk(
    resolver: &mut Resolver<'_, Client>,
    items: &[Item],
    pass: &mut Pass,
    outer: bool,
) -> Result<(), Error> {
    let mut active = outer;
    for item in items {
        match item {
            Item::Included(items) => walk(resolver, items, pass, active)?,
            Item::Setting(line) if line.is("Host") => active = outer && names(line, &pass.host)?,
            Item::Setting(line) if line.is("Match") => {
                active = matches(line, &resolver.config, pass, outer)?;
            }
            Item::Setting(setting) => resolver.apply(setting, active)?,
        }
    }
    Ok(())
}

/// Whether the conditions of a Match line hold, by what the lines before it have said.
fn matches(line: &Setting, so_far: &Client, pass: &mut Pass, outer: bool) -> Result<bool, Error> {
    let host = if pass.is_final { pass.host.clone() } else { so_far.resolved_host_name()? };
    let target = Target {
        host: &host,
        original_host: &so_far.host,
        user: &so_far.user,
        local_user: &so_far.local.user,
        is_final: pass.is_final,
    };
    let Verdict { holds, wants_final } = target.judge(line, outer)?;
    pass.wants_final |= wants_final;
    Ok(holds)
}

/// Whether a Host line names this host.
fn names(setting: &Setting, host: &str) -> Result<bool, Error> {
    let wrong = |why: &str| Error::Line(setting.origin.clone(), format!("Host: {why}"));
    match setting.args.as_slice() {
        [] => Err(wrong("missing value")),
        args if args.iter().any(String::is_empty) => Err(wrong("empty value")),
        args => Ok(match_all(host, args.iter().map(String::as_str)) == Match::Yes),
    }
}

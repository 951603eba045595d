//! The one account that is served: that of the effective user id.

use anyhow::{Context, Result, bail};
use conf::server::Visitor;
use nix::unistd::{Group, Uid, User, getgrouplist};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// What passwd(5) says of a user.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// Login name.
    pub(crate) name: String,
    /// User id.
    pub(crate) uid: u32,
    /// Home directory.
    pub(crate) home: PathBuf,
    /// Login shell; `/bin/sh` where passwd has none.
    pub(crate) shell: PathBuf,
}

impl Account {
    /// The account this process runs as.
    pub(crate) fn current() -> Result<Self> {
        let uid = Uid::effective();
        let Some(user) = User::from_uid(uid).context("look up the user")? else {
            bail!("user id {uid} has no account");
        };
        let shell = if user.shell == Path::new("") { "/bin/sh".into() } else { user.shell };
        Ok(Self { name: user.name, uid: uid.as_raw(), home: user.dir, shell })
    }

    /// Whether this is root.
    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// A connection with the groups of its user, by name; a user that there is not is in none.
pub(crate) fn in_groups(mut visitor: Visitor) -> Visitor {
    let groups = visitor.user.as_deref().and_then(|user| {
        let user = User::from_name(user).ok().flatten()?;
        getgrouplist(&CString::new(user.name).ok()?, user.gid).ok()
    });
    let named = |gid: nix::unistd::Gid| Group::from_gid(gid).ok().flatten();
    let groups = groups.unwrap_or_default().into_iter();
    visitor.groups = groups.filter_map(|gid| named(gid).map(|group| group.name)).collect();
    visitor
}

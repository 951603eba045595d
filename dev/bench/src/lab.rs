//! Lab: a throw-away directory with keys, configurations and copies of our programs, the source
//! file, and the user that logs in. Everything goes away when the bench ends, or else when the next
//! one starts.

use crate::room::{self, Room};
use crate::{leftovers, stream};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of the login case, when the bench may make one: a login shell without start-up files.
const DASH_USER: &str = "lhbench";

/// Everything on disk that runs need.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
    data: tempfile::TempDir,
    room: Room,
    /// This program.
    pub(crate) lhbench: PathBuf,
    /// Our client, if it was found.
    pub(crate) lhssh: Option<PathBuf>,
    /// Our server, if it was found.
    pub(crate) lhsshd: Option<PathBuf>,
    /// Who the bench is, and logs in as.
    pub(crate) user: String,
    /// Whether a second user may be made and served.
    pub(crate) root: bool,
    made_user: bool,
    /// Whether the login user, made or found, has its keys.
    made_keys: bool,
}

impl Lab {
    /// Makes the directory, its keys and its copies.
    pub(crate) fn new(data: &Path, lhssh: Option<&Path>, lhsshd: Option<&Path>) -> Result<Self> {
        leftovers::sweep(&std::env::temp_dir());
        leftovers::sweep(data);
        leftovers::sweep_user(DASH_USER);
        let room = Room::of(data)?;
        let prefix = leftovers::prefix();
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir()?;
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755))?;
        let data = tempfile::Builder::new().prefix(&prefix).tempdir_in(data)?;
        fs::set_permissions(data.path(), Permissions::from_mode(0o755))?;
        let lhbench = copy(&std::env::current_exe()?, dir.path())?;
        let (lhssh, lhsshd) =
            (program(lhssh, "lhssh", dir.path())?, program(lhsshd, "lhsshd", dir.path())?);
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid())?.context("who am I")?;
        let root = user.uid.is_root();
        let user = user.name;
        let (made_user, made_keys) = (false, false);
        let lab =
            Self { dir, data, room, lhbench, lhssh, lhsshd, user, root, made_user, made_keys };
        lab.keys_for(&lab.user)?;
        Ok(lab)
    }

    /// The path of `name` in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The path of `name` where sources and targets are.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    /// Where the keys and configurations of sessions as `user` are.
    pub(crate) fn user_dir(&self, user: &str) -> PathBuf {
        self.path(&format!("as-{user}"))
    }

    /// The source file, of exactly `size` bytes: written once, in the page cache afterwards.
    pub(crate) fn source(&self, size: u64) -> Result<PathBuf> {
        let path = self.data(&format!("source-{size}"));
        if !path.exists() {
            let free = room::free(self.data.path())?;
            let mib = |bytes: u64| bytes >> 20;
            ensure!(size <= free, "a source of {} MiB, and room for {}", mib(size), mib(free));
            // Under its name only when it is whole.
            let part = self.data("part");
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
            stream::write(&mut out, size)?;
            out.flush()?;
            fs::rename(&part, &path)?;
        }
        Ok(path)
    }

    /// `wanted` bytes, or as many as there is room for.
    pub(crate) fn fitting(&self, wanted: u64) -> Result<u64> {
        self.room.fitting(wanted)
    }

    /// The user of the login case: ours alone when possible, else whoever runs the bench.
    pub(crate) fn login_user(&mut self) -> Result<String> {
        if !self.root {
            return Ok(self.user.clone());
        }
        if !self.made_keys {
            self.made_user |= make_user()?;
            self.keys_for(DASH_USER)?;
            self.made_keys = true;
        }
        Ok(DASH_USER.to_owned())
    }

    /// The private directory of `user`: host key, login key, authorized_keys. Both servers get
    /// the same keys and a configuration that reads them from here.
    fn keys_for(&self, user: &str) -> Result<()> {
        let dir = self.user_dir(user);
        _ = fs::remove_dir_all(&dir); // what an attempt that failed left
        fs::create_dir_all(&dir)?;
        for name in ["host", "login"] {
            let out = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(dir.join(name))
                .output()
                .context("ssh-keygen")?;
            ensure!(out.status.success(), "ssh-keygen: {}", String::from_utf8_lossy(&out.stderr));
        }
        fs::copy(dir.join("login.pub"), dir.join("authorized_keys"))?;
        let host = fs::read_to_string(dir.join("host.pub"))?;
        fs::write(dir.join("known_hosts"), format!("* {host}"))?;
        self.config(user, "stock", "UsePAM no\nPidFile none\n")?;
        self.config(
            user,
            "ours",
            "PidFile none\nTestSubsystems yes\nNoneEnabled yes\nNoneMacEnabled yes\n",
        )?;
        give(&dir, user)
    }

    fn config(&self, user: &str, whose: &str, more: &str) -> Result<()> {
        let dir = self.user_dir(user);
        let text = format!(
            "HostKey {dir}/host\nAuthorizedKeysFile {dir}/authorized_keys\nStrictModes no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nLogLevel ERROR\n{more}",
            dir = dir.display()
        );
        Ok(fs::write(dir.join(format!("{whose}.conf")), text)?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.made_user {
            leftovers::remove_user(DASH_USER);
        }
    }
}

/// Ours at `given`, or beside this program; nothing when it is not there.
pub(crate) fn program(given: Option<&Path>, name: &str, dir: &Path) -> Result<Option<PathBuf>> {
    let beside = std::env::current_exe()?.with_file_name(name);
    let path = given.unwrap_or(&beside);
    ensure!(given.is_none() || path.exists(), "{}: not there", path.display());
    if path.exists() { copy(path, dir).map(Some) } else { Ok(None) }
}

/// A copy, so that another user can run it and a rebuild does not change it half-way.
fn copy(from: &Path, dir: &Path) -> Result<PathBuf> {
    let to = dir.join(from.file_name().context("no file name")?);
    fs::copy(from, &to).with_context(|| from.display().to_string())?;
    Ok(to)
}

/// True when the user was made, false when it was there.
fn make_user() -> Result<bool> {
    if nix::unistd::User::from_name(DASH_USER)?.is_some() {
        return Ok(false);
    }
    // A password of `*` never matches, but the account is not locked, as `!` would be.
    let args = ["--system", "--create-home", "--shell", "/bin/dash", "--password", "*"];
    let whose = leftovers::prefix();
    let named = ["--comment", &whose, DASH_USER];
    let out = Command::new("useradd").args(args).args(named).output().context("useradd")?;
    ensure!(out.status.success(), "useradd: {}", String::from_utf8_lossy(&out.stderr));
    Ok(true)
}

fn give(dir: &Path, user: &str) -> Result<()> {
    let owner = nix::unistd::User::from_name(user)?.context("the user is gone")?;
    for entry in fs::read_dir(dir)? {
        std::os::unix::fs::chown(
            entry?.path(),
            Some(owner.uid.as_raw()),
            Some(owner.gid.as_raw()),
        )?;
    }
    std::os::unix::fs::chown(dir, Some(owner.uid.as_raw()), Some(owner.gid.as_raw()))?;
    Ok(())
}

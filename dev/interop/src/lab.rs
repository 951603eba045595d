//! Lab: what a test has on disk. Keys of every type, made once per target directory because RSA
//! keys are slow to make; a directory of its own per test, which goes away with it.

use crate::need;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A key type, as `ssh-keygen -t X -b Y` makes it and as it is called on the wire.
pub struct KeyType {
    /// The file's name.
    pub name: &'static str,
    /// The type's name on the wire.
    pub wire: &'static str,
    make: [&'static str; 2],
}

/// Every type that we offer.
pub const KEY_TYPES: &[KeyType] = &[
    KeyType { name: "ed25519", wire: "ssh-ed25519", make: ["ed25519", "256"] },
    KeyType { name: "ecdsa256", wire: "ecdsa-sha2-nistp256", make: ["ecdsa", "256"] },
    KeyType { name: "ecdsa384", wire: "ecdsa-sha2-nistp384", make: ["ecdsa", "384"] },
    KeyType { name: "ecdsa521", wire: "ecdsa-sha2-nistp521", make: ["ecdsa", "521"] },
    KeyType { name: "rsa", wire: "ssh-rsa", make: ["rsa", "3072"] },
];

/// The directory of one test, and the keys.
pub struct Lab {
    dir: tempfile::TempDir,
    keys: PathBuf,
}

impl Lab {
    /// A fresh directory with an authorized_keys that admits every user key.
    pub fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("longhaul-").tempdir()?;
        let lab = Self { dir, keys: keys()? };
        let mut all = String::new();
        for kind in KEY_TYPES {
            all += &lab.public(&format!("user_{}", kind.name))?;
        }
        fs::write(lab.path("authorized_keys"), all)?;
        Ok(lab)
    }

    /// `name` in the test's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The private key file `host_TYPE` or `user_TYPE`; also `.dropbear` and `.ppk` of ed25519.
    pub fn key(&self, name: &str) -> PathBuf {
        self.keys.join(name)
    }

    /// The line of a public key.
    pub fn public(&self, name: &str) -> Result<String> {
        let path = self.keys.join(format!("{name}.pub"));
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// Writes the known_hosts of a server that has all our host keys at `port`.
    pub fn know_host(&self, port: u16) -> Result<PathBuf> {
        let mut text = String::new();
        for kind in KEY_TYPES {
            text += &format!("[127.0.0.1]:{port} {}", self.public(&format!("host_{}", kind.name))?);
        }
        let path = self.path(&format!("known_hosts.{port}"));
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Fingerprint of a public key, as PuTTY wants it.
    pub fn fingerprint(&self, name: &str) -> Result<String> {
        let line = output(Command::new("ssh-keygen").arg("-lf").arg(self.key(name)))?;
        let print = line.split_whitespace().find(|word| word.starts_with("SHA256:"));
        Ok(print.context("no fingerprint")?.to_owned())
    }
}

/// The directory of keys.
fn keys() -> Result<PathBuf> {
    static KEYS: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = KEYS.get() {
        return Ok(path.clone());
    }
    let path = need::root().join("target/interop-keys");
    if !path.exists() {
        let fresh = tempfile::tempdir_in(need::root().join("target"))?;
        make_keys(fresh.path())?;
        // Whoever comes first wins; the others' copies are dropped.
        let _ = fs::rename(fresh.path(), &path);
    }
    ensure!(path.join("host_rsa.pub").exists(), "{}: incomplete, remove it", path.display());
    Ok(KEYS.get_or_init(|| path).clone())
}

fn make_keys(dir: &Path) -> Result<()> {
    for kind in KEY_TYPES {
        for role in ["host", "user"] {
            let file = dir.join(format!("{role}_{}", kind.name));
            let [kind, bits] = kind.make;
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", kind, "-b", bits, "-N", "", "-C", "longhaul test", "-f"]);
            output(keygen.arg(file))?;
        }
    }
    foreign_formats(dir)
}

/// The same ed25519 keys in the formats of Dropbear and PuTTY, where those are installed.
fn foreign_formats(dir: &Path) -> Result<()> {
    let (host, user) = (dir.join("host_ed25519"), dir.join("user_ed25519"));
    if let Some(convert) = need::find("dropbearconvert") {
        for key in [&host, &user] {
            let to = key.with_extension("dropbear");
            output(Command::new(&convert).args(["openssh", "dropbear"]).arg(key).arg(to))?;
        }
    }
    if let Some(puttygen) = need::find("puttygen") {
        let to = user.with_extension("ppk");
        output(Command::new(puttygen).arg(&user).args(["-O", "private", "-o"]).arg(to))?;
    }
    Ok(())
}

/// What a helper program printed; an error with its complaint when it failed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let out = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?)
}

/// Our programs and `lhgen`: in `$LONGHAUL_BIN_DIR`, or built here first, in the tests' profile.
pub fn program(name: &str) -> Result<PathBuf> {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    let dir = match (DIR.get(), std::env::var_os("LONGHAUL_BIN_DIR")) {
        (Some(dir), _) => dir.clone(),
        (None, Some(dir)) => need::root().join(dir),
        (None, None) => build()?,
    };
    let dir = DIR.get_or_init(|| dir);
    let path = dir.join(name);
    ensure!(path.exists(), "{}: not there", path.display());
    Ok(path)
}

fn build() -> Result<PathBuf> {
    let test = std::env::current_exe()?;
    let dir = test.ancestors().nth(2).context("where is this test?")?.to_path_buf();
    let profile = dir.file_name().and_then(|name| name.to_str()).context("no profile")?;
    let profile = if profile == "debug" { "dev" } else { profile };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--workspace", "--bins", "--profile", profile]);
    output(build.current_dir(need::root()))?;
    Ok(dir)
}

//! An identity file: a private key, open or locked, or no more than the public half of a key that
//! an agent may hold.

use crate::credentials::Keyring;
use crate::prompt;
use keys::{PrivateKey, PrivateKeyError, PublicKey, SigAlg};
use proto::auth::Signer;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// How often a wrong passphrase may be typed.
const TRIES: usize = 3;

enum Private {
    Open(Arc<PrivateKey>),
    /// Opened only when the server would take the key.
    Locked,
    /// There is none to sign with, and why.
    Unusable(String),
}

/// A key by its file.
pub(crate) struct KeyFile {
    path: PathBuf,
    public: PublicKey,
    private: Private,
    batch: bool,
    ring: Keyring,
}

impl KeyFile {
    /// Reads a file that an IdentityFile names. Where that gives no private key, the public half
    /// is enough to know the key in an agent by: the file itself, or the `.pub` beside it.
    pub(crate) fn read(path: &Path, batch: bool, ring: &Keyring) -> Result<Self, String> {
        let (public, private) = match private(path) {
            Ok(found) => found,
            Err(why) => match public(path) {
                Some(public) => (public, Private::Unusable(why)),
                None => return Err(why),
            },
        };
        Ok(Self { path: path.to_owned(), public, private, batch, ring: ring.clone() })
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The public half.
    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Why only an agent could sign with this key; `None` where the file is enough.
    pub(crate) fn unusable(&self) -> Option<&str> {
        match &self.private {
            Private::Unusable(why) => Some(why),
            Private::Open(_) | Private::Locked => None,
        }
    }

    fn unlock(&mut self) -> Result<Arc<PrivateKey>, String> {
        match &self.private {
            Private::Open(key) => Ok(Arc::clone(key)),
            Private::Unusable(why) => Err(why.clone()),
            Private::Locked if self.batch => {
                Err("needs a passphrase, and BatchMode forbids to ask".to_owned())
            }
            Private::Locked => {
                let key = self.ring.unlock(&self.path, || self.ask())?;
                self.private = Private::Open(Arc::clone(&key));
                Ok(key)
            }
        }
    }

    fn ask(&self) -> Result<PrivateKey, String> {
        let (content, _) = content(&self.path)?;
        let question = format!("Enter passphrase for key '{}': ", self.path.display());
        for _ in 0..TRIES {
            let passphrase = prompt::passphrase(&question).map_err(|e| e.to_string())?;
            match PrivateKey::from_bytes(&content, Some(&passphrase)) {
                Err(PrivateKeyError::WrongPassphrase) => {}
                done => return done.map_err(|e| e.to_string()),
            }
        }
        Err("wrong passphrase".to_owned())
    }
}

impl Signer for KeyFile {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn is_costly(&self) -> bool {
        matches!(self.private, Private::Locked)
    }

    fn sign(&mut self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        let path = self.path.display().to_string();
        let key = self.unlock().map_err(|why| format!("{path}: {why}"))?;
        key.sign(alg, data).map_err(|e| format!("{path}: {e}"))
    }
}

/// What is in a file, and whose it is.
fn content(path: &Path) -> Result<(Zeroizing<Vec<u8>>, Metadata), String> {
    let read = || {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        // At its size from the start: a vector that grows leaves copies behind.
        let room = usize::try_from(meta.len()).unwrap_or(0).saturating_add(1);
        let mut content = Zeroizing::new(Vec::with_capacity(room));
        file.read_to_end(&mut content)?;
        Ok((content, meta))
    };
    read().map_err(|e: std::io::Error| e.to_string())
}

fn private(path: &Path) -> Result<(PublicKey, Private), String> {
    let (content, meta) = content(path)?;
    let (public, private) = match PrivateKey::from_bytes(&content, None) {
        Ok(key) => (key.public().clone(), Private::Open(Arc::new(key))),
        Err(PrivateKeyError::NeedsPassphrase) => {
            (PrivateKey::public_of_file(&content).map_err(|e| e.to_string())?, Private::Locked)
        }
        Err(e) => return Err(e.to_string()),
    };
    Ok((public, exposed(&meta).map_or(private, Private::Unusable)))
}

/// As in ssh, only for files of the user's own: what others gave is theirs to guard, as root may
/// have done for a group.
fn exposed(meta: &Metadata) -> Option<String> {
    let mode = meta.mode() & 0o7777;
    let ours = meta.uid() == rustix::process::getuid().as_raw();
    (ours && mode & 0o077 != 0).then(|| {
        format!("permissions {mode:04o} are too open; others can read this private key: chmod 600")
    })
}

fn public(path: &Path) -> Option<PublicKey> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    [path, Path::new(&beside)].into_iter().find_map(|path| {
        let (content, _) = content(path).ok()?;
        PublicKey::from_openssh(std::str::from_utf8(&content).ok()?.lines().next()?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    /// As in ssh: `sshkey_perm_ok` looks at files of the user's own.
    #[test]
    fn permissions_matter_where_the_file_is_ours() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "").unwrap();
        let exposed = |mode| {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            exposed(&path.metadata().unwrap())
        };
        assert_eq!(exposed(0o600), None);
        assert_eq!(exposed(0o400), None);
        for mode in [0o640, 0o604, 0o610] {
            assert!(exposed(mode).unwrap().contains("too open"), "{mode:o}");
        }
        if rustix::process::getuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            assert_eq!(exposed(0o644), None);
        } else {
            assert_eq!(super::exposed(&Path::new("/etc/passwd").metadata().unwrap()), None);
        }
    }
}

//! The host's keys. A listener loads them whole and hands on those that can be used. A session
//! reads the public halves at once and the private one when it must sign.

use crate::modes;
use anyhow::{Context, Result, bail};
use keys::{PrivateKey, PublicKey, SigAlg};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Most of a key file that is read: RSA keys of 16384 bits stay below 16 KiB.
const MAX_FILE: usize = 64 * 1024;

struct HostKey {
    path: PathBuf,
    public: PublicKey,
    private: OnceLock<Result<PrivateKey, String>>,
}

/// The keys of one host.
pub(crate) struct HostKeys(Vec<HostKey>);

impl HostKeys {
    /// Looks at the files; those that cannot be used are told to `skipped` and passed over.
    pub(crate) fn find(paths: &[PathBuf], mut skipped: impl FnMut(String)) -> Self {
        let mut found = Vec::new();
        for path in paths {
            match public(path) {
                Ok(public) => {
                    found.push(HostKey { path: path.clone(), public, private: OnceLock::new() });
                }
                Err(error) => skipped(format!("host key {}: {error:#}", path.display())),
            }
        }
        Self(found)
    }

    /// The files of the keys whose private halves load too; an error when there are none.
    pub(crate) fn usable(&self, mut skipped: impl FnMut(String)) -> Result<Vec<&Path>> {
        let usable = self.0.iter().filter(|key| match key.private() {
            Ok(_) => true,
            Err(why) => {
                skipped(format!("host key {}: {why}", key.path.display()));
                false
            }
        });
        let paths: Vec<&Path> = usable.map(|key| key.path.as_path()).collect();
        if paths.is_empty() {
            bail!("no host keys available");
        }
        Ok(paths)
    }

    fn of(&self, alg: SigAlg) -> Result<&HostKey, String> {
        let found = self.0.iter().find(|key| key.public.sig_algs().contains(&alg));
        found.ok_or_else(|| format!("no host key for {}", alg.name()))
    }
}

impl HostKey {
    fn private(&self) -> Result<&PrivateKey, String> {
        let load = || private(&self.path).map_err(|error| format!("{error:#}"));
        self.private.get_or_init(load).as_ref().map_err(Clone::clone)
    }
}

impl proto::HostKeys for HostKeys {
    fn algorithms(&self) -> Vec<SigAlg> {
        self.0.iter().flat_map(|key| key.public.sig_algs()).copied().collect()
    }

    fn public(&self, alg: SigAlg) -> Result<Vec<u8>, String> {
        Ok(self.of(alg)?.public.blob().to_vec())
    }

    fn sign(&self, alg: SigAlg, data: &[u8]) -> Result<Vec<u8>, String> {
        self.of(alg)?.private()?.sign(alg, data).map_err(|error| error.to_string())
    }
}

fn public(path: &Path) -> Result<PublicKey> {
    Ok(PrivateKey::public_of_file(&read(path)?)?)
}

fn private(path: &Path) -> Result<PrivateKey> {
    Ok(PrivateKey::from_bytes(&read(path)?, None)?)
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let file = modes::open(path)?;
    let uid = rustix::process::getuid().as_raw();
    if let Some(why) = modes::exposed(&file.metadata()?, uid) {
        bail!(why);
    }
    // At its largest from the start: a vector that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE));
    let most = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).context("read")?;
    Ok(bytes)
}

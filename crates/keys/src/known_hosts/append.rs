//! Adding a key to a known_hosts file.

use super::HostName;
use super::hash::HashedName;
use crate::PublicKey;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The line that says `key` belongs to `host`, without newline; with `hashed` as
/// `HashKnownHosts yes` writes it. `None` when the name would mean something else in a line.
pub fn line(host: &HostName, key: &PublicKey, hashed: bool) -> Option<String> {
    let name = host.is_plain().then(|| host.name())?;
    let name = if hashed { HashedName::new(&name).to_text() } else { name };
    Some(format!("{name} {}", key.to_openssh()))
}

/// Appends a line for `host`; the file (0600) and its directory (0700) are made when missing.
///
/// One write under a lock: a concurrent writer of ours neither tears nor joins lines, and a file
/// whose last line has no newline gets one first.
pub fn append(path: &Path, host: &HostName, key: &PublicKey, hashed: bool) -> io::Result<()> {
    let line = line(host, key, hashed)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a host name"))?;
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    // Some network file systems have no locks; a single write has to do there.
    let _ = file.lock();
    let newline = if ends_a_line(&mut file)? { "" } else { "\n" };
    file.write_all(format!("{newline}{line}\n").as_bytes())
}

/// Whether the file is empty or ends with a newline.
fn ends_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

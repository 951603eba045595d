//! Words to a client for which nothing is run, as sshd has them.

use crate::account::Account;
use crate::channels::finish;
use engine::{Port, Producer, Source};
use proto::channel::LocalId;
use std::io::{self, Cursor, IoSliceMut, Read};
use std::path::Path;

/// nologin(5).
pub(crate) const NOLOGIN: &str = "/etc/nologin";

/// What a channel is told instead of what it asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    text: Vec<u8>,
    /// Extended data of this code; plain data without.
    code: Option<u32>,
    /// Exit status.
    status: u32,
}

impl Refusal {
    /// The key is for `internal-sftp`, and the client wants something else.
    pub(crate) fn sftp_only() -> Self {
        let text = b"This service allows sftp connections only.\n".to_vec();
        Self { text, code: None, status: 1 }
    }

    /// While `file` exists, nobody but root is served; its content says why.
    pub(crate) fn nologin(account: &Account, file: &Path) -> Option<Self> {
        if account.is_root() || !file.exists() {
            return None;
        }
        let text = std::fs::read(file).unwrap_or_default();
        Some(Self { text, code: Some(proto::data::STDERR), status: 254 })
    }

    /// Tells channel `id`, and ends it.
    pub(crate) fn tell(self, id: LocalId, port: &mut Port<'_>) -> Result<(), engine::Error> {
        let Self { text, code, status } = self;
        let source = Source::Producer(Box::new(Text(Cursor::new(text))));
        port.session().start_source(id, source, code, move |connection, _| {
            let _ = connection.call(|c, out| finish(c, id, status, out));
        })
    }
}

/// A text, once.
struct Text(Cursor<Vec<u8>>);

impl Producer for Text {
    fn wait(&mut self) -> bool {
        let length = u64::try_from(self.0.get_ref().len()).unwrap_or(u64::MAX);
        self.0.position() < length
    }

    fn fill(&mut self, areas: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read_vectored(areas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_root_is_served_while_the_file_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nologin");
        let account =
            |uid| Account { name: "u".into(), uid, home: "/".into(), shell: "/bin/sh".into() };
        assert_eq!(Refusal::nologin(&account(7), &file), None);
        std::fs::write(&file, "back at noon\n").unwrap();
        assert_eq!(Refusal::nologin(&account(0), &file), None);
        let refusal = Refusal::nologin(&account(7), &file).unwrap();
        assert_eq!((&*refusal.text, refusal.status), (&b"back at noon\n"[..], 254));
    }
}

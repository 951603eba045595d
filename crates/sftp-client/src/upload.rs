//! A small file of a tree on its way to the server, in company: open; data; attributes and close.

use crate::command::{Manner, Path};
use crate::convoy::Journey;
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::put::{Source, unchanged};
use crate::session::Session;
use crate::transfer::{Mover, Wrong};
use sftp::client::{Answer, Data, Error};
use sftp::codec::{Attrs, Extended, Handle, OpenFlags, Reply, Request};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

/// Bytes read at once beyond the size that the file had.
const BEYOND: usize = 32 * 1024;

/// What an answer is to.
enum Asked {
    Open,
    /// Bytes from here on.
    Data(u64),
    Attributes,
    Sync,
    /// The part that is whole is all that is to stay.
    Cut,
    Close,
}

pub(crate) struct Upload {
    source: Source,
    to: Path,
    manner: Manner,
    /// The server can wait for its disk.
    can_sync: bool,
    began: Instant,
    asked: HashMap<u64, Asked>,
    remote: Option<Handle>,
    /// The next byte to send.
    next: u64,
    /// How far the file surely goes.
    sure: u64,
    /// All of it was sent.
    over: bool,
    /// The first byte that is missing, and why.
    gap: Option<(u64, Failure)>,
}

impl Upload {
    /// Asks for the file to be made; the token of that.
    pub(crate) fn begin(
        mover: &mut Mover,
        source: Source,
        to: &[u8],
        manner: Manner,
        can_sync: bool,
    ) -> (Self, u64) {
        let token = mover.request(&Request::Open {
            path: to.to_vec(),
            flags: OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE,
            attrs: source.attrs.clone(),
        });
        let upload = Self {
            sure: source.stat.len(),
            source,
            to: to.to_vec(),
            manner,
            can_sync,
            began: Instant::now(),
            asked: HashMap::from([(token, Asked::Open)]),
            remote: None,
            next: 0,
            over: false,
            gap: None,
        };
        (upload, token)
    }

    fn fail(&mut self, at: u64, why: Failure) {
        self.over = true;
        if self.gap.as_ref().is_none_or(|(gap, _)| at < *gap) {
            self.gap = Some((at, why));
        }
    }

    /// Says what is no reason to fail; the loss of the server is.
    fn tell(&mut self, failure: Failure) {
        if let Err(lost) = failure.tell() {
            self.fail(u64::MAX, lost);
        }
    }

    fn is_unchanged(&self) -> bool {
        unchanged(&self.source.file, &self.source.stat, &self.source.path).is_ok()
    }

    fn ask(&mut self, mover: &mut Mover, what: Asked, request: &Request) -> u64 {
        let token = mover.request(request);
        self.asked.insert(token, what);
        token
    }

    /// The next piece of the source: all that it had, then what it has got since.
    fn send(&mut self, mover: &mut Mover, remote: &Handle) -> Option<u64> {
        let file = Arc::clone(&self.source.file);
        let data = match self.sure.saturating_sub(self.next) {
            0 => self.beyond()?,
            len => Data::File { file, offset: self.next, len },
        };
        let (at, len) = (self.next, data.len());
        let token = mover.write(remote, at, data);
        self.asked.insert(token, Asked::Data(at));
        self.next += len;
        Some(token)
    }

    /// What lies beyond the size the file had, if anything (/proc has sizes of 0).
    fn beyond(&mut self) -> Option<Data> {
        let mut bytes = vec![0; BEYOND];
        match self.source.file.read_at(&mut bytes, self.next) {
            Ok(0) => self.over = true,
            Ok(count) => {
                bytes.truncate(count);
                return Some(Data::Bytes(bytes.into()));
            }
            Err(error) => {
                let wrong = Wrong::Unreadable(error);
                let to = shown(&self.to);
                self.fail(self.next, wrong.failure(|| format!("write remote \"{to}\"")));
            }
        }
        None
    }

    /// When all is answered that was asked for: what comes next.
    fn go_on(&mut self, mover: &mut Mover) -> Vec<u64> {
        if !self.asked.is_empty() {
            return Vec::new();
        }
        let Some(remote) = self.remote.clone() else { return Vec::new() };
        if !self.over
            && let Some(token) = self.send(mover, &remote)
        {
            return vec![token];
        }
        self.remote = None;
        let mut tokens = self.last_words(mover, &remote);
        tokens.push(self.ask(mover, Asked::Close, &Request::Close(remote)));
        tokens
    }

    fn last_words(&mut self, mover: &mut Mover, remote: &Handle) -> Vec<u64> {
        let set = |attrs| Request::Fsetstat(remote.clone(), attrs);
        if let Some((at, failure)) = &self.gap {
            // Past a gap there is nothing that `reput` could use.
            let attrs = Attrs { size: Some(*at), ..Attrs::default() };
            let lost = matches!(failure, Failure::Lost(_));
            return (!lost).then(|| self.ask(mover, Asked::Cut, &set(attrs))).into_iter().collect();
        }
        let mut tokens = Vec::new();
        if self.manner.preserve {
            let attrs = set(self.source.attrs.clone());
            tokens.push(self.ask(mover, Asked::Attributes, &attrs));
        }
        if self.manner.sync && self.can_sync {
            let sync = Request::Extended(Extended::Fsync(remote.clone()));
            tokens.push(self.ask(mover, Asked::Sync, &sync));
        }
        tokens
    }

    fn refused(&mut self, asked: &Asked, error: Error) {
        let to = shown(&self.to);
        if let (Asked::Data(at), Error::Shrunk { .. }) = (asked, &error)
            && self.is_unchanged()
        {
            // It never had that size (/sys has sizes of a page): what there is of it.
            (self.next, self.sure) = (*at, *at);
            return;
        }
        let (at, what) = match asked {
            Asked::Open => (0, format!("dest open \"{to}\"")),
            Asked::Data(at) => (*at, format!("write remote \"{to}\"")),
            // As sftp(1): the content is there.
            Asked::Attributes => return self.tell(Failure::asked("remote fsetstat", &error)),
            Asked::Sync => (u64::MAX, "remote fsync".to_owned()),
            Asked::Close => (u64::MAX, "close remote".to_owned()),
            // What failed has been said; a server that does not allow this leaves what there is.
            Asked::Cut => return,
        };
        self.fail(at, Failure::asked(what, &error));
    }
}

impl Journey for Upload {
    fn answered(
        &mut self,
        mover: &mut Mover,
        token: u64,
        answer: std::result::Result<Answer, Error>,
    ) -> Vec<u64> {
        let Some(asked) = self.asked.remove(&token) else { return Vec::new() };
        match (&asked, answer) {
            (Asked::Open, Ok(Answer::Reply(Reply::Handle(remote)))) => self.remote = Some(remote),
            (_, Ok(_)) => {}
            (_, Err(error)) => self.refused(&asked, error),
        }
        self.go_on(mover)
    }

    fn has_ended(&self) -> bool {
        self.asked.is_empty()
    }

    fn size(&self) -> u64 {
        self.source.stat.len()
    }

    fn finish(self: Box<Self>, session: &Session) -> Result<()> {
        let whole = self.gap.as_ref().map_or(self.next, |(at, _)| (*at).min(self.next));
        session.show_done(&self.source.path, self.size(), whole, self.began);
        match self.gap {
            Some((_, failure)) => Err(failure),
            None => unchanged(&self.source.file, &self.source.stat, &self.source.path),
        }
    }
}

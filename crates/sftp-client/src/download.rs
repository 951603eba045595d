//! A small file of a tree on its way here, in company: open; look, data and its end; look and close.

use crate::command::{Manner, Path};
use crate::convoy::Journey;
use crate::escape::shown;
use crate::failure::{Failure, Result};
use crate::get::{Place, changed, cut, failed, finish, moving, opened};
use crate::session::Session;
use crate::transfer::{Mover, Wrong};
use sftp::client::{Answer, Error};
use sftp::codec::{Attrs, Handle, OpenFlags, Reply, Request};
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

/// What an answer is to.
enum Asked {
    Open,
    /// A look before anything was read.
    Before,
    /// Bytes from here on.
    Data(u64),
    /// A look after everything was read.
    After,
    Close,
}

pub(crate) struct Download {
    from: Path,
    /// As the listing had it.
    attrs: Attrs,
    to: Place,
    manner: Manner,
    began: Instant,
    asked: HashMap<u64, Asked>,
    remote: Option<Handle>,
    local: Option<Arc<File>>,
    /// Before and after.
    looks: [Option<Attrs>; 2],
    /// The next byte to ask for.
    next: u64,
    /// Where the file ended.
    end: Option<u64>,
    /// The first byte that is missing, and why.
    gap: Option<(u64, Failure)>,
}

impl Download {
    /// Asks for the file to be opened; the token of that.
    pub(crate) fn begin(
        mover: &mut Mover,
        from: &[u8],
        attrs: &Attrs,
        to: Place,
        manner: Manner,
    ) -> (Self, u64) {
        let path = from.to_vec();
        let open = Request::Open { path, flags: OpenFlags::READ, attrs: Attrs::default() };
        let token = mover.request(&open);
        let download = Self {
            from: from.to_vec(),
            attrs: attrs.clone(),
            to,
            manner,
            began: Instant::now(),
            asked: HashMap::from([(token, Asked::Open)]),
            remote: None,
            local: None,
            looks: [None, None],
            next: 0,
            end: None,
            gap: None,
        };
        (download, token)
    }

    fn fail(&mut self, at: u64, why: Failure) {
        if self.gap.as_ref().is_none_or(|(gap, _)| at < *gap) {
            self.gap = Some((at, why));
        }
    }

    fn opened(&mut self, mover: &mut Mover, remote: Handle) -> Vec<u64> {
        self.remote = Some(remote.clone());
        match self.to.open(self.attrs.mode.unwrap_or(0o666), false) {
            Err(failure) => {
                self.fail(0, failure);
                Vec::new()
            }
            Ok(local) => {
                self.local = Some(Arc::new(local));
                let mut tokens = vec![self.ask(mover, Asked::Before, &Request::Fstat(remote))];
                let size = self.size();
                while self.next < size {
                    let left = size - self.next;
                    tokens.extend(self.read(mover, left));
                }
                // The one beyond, which finds the end.
                tokens.extend(self.read(mover, u64::MAX));
                tokens
            }
        }
    }

    fn ask(&mut self, mover: &mut Mover, what: Asked, request: &Request) -> u64 {
        let token = mover.request(request);
        self.asked.insert(token, what);
        token
    }

    fn read(&mut self, mover: &mut Mover, most: u64) -> Option<u64> {
        let (remote, local) = (self.remote.as_ref()?, self.local.as_ref()?);
        let (token, len) = mover.read(remote, local, self.next, most);
        self.asked.insert(token, Asked::Data(self.next));
        self.next += u64::from(len);
        Some(token)
    }

    /// When all is answered that was asked for: what comes next.
    fn go_on(&mut self, mover: &mut Mover) -> Vec<u64> {
        if !self.asked.is_empty() {
            return Vec::new();
        }
        if self.gap.is_none() && self.end.is_none() && self.local.is_some() {
            return self.read(mover, u64::MAX).into_iter().collect();
        }
        let Some(remote) = self.remote.take() else { return Vec::new() };
        let look = self.ask(mover, Asked::After, &Request::Fstat(remote.clone()));
        vec![look, self.ask(mover, Asked::Close, &Request::Close(remote))]
    }

    fn note(&mut self, mover: &mut Mover, asked: Asked, answer: Answer) -> Vec<u64> {
        match (asked, answer) {
            (Asked::Open, Answer::Reply(Reply::Handle(remote))) => {
                return self.opened(mover, remote);
            }
            (Asked::Before, Answer::Reply(Reply::Attrs(attrs))) => self.looks[0] = Some(attrs),
            (Asked::After, Answer::Reply(Reply::Attrs(attrs))) => self.looks[1] = Some(attrs),
            (Asked::Data(offset), Answer::Got(got)) if got.eof => {
                let end = offset + u64::from(got.len);
                self.end = Some(self.end.map_or(end, |known| known.min(end)));
            }
            _ => {}
        }
        Vec::new()
    }

    fn refused(&mut self, asked: &Asked, error: Error) {
        let from = shown(&self.from);
        match asked {
            Asked::Open => self.fail(0, Failure::asked(format!("remote open \"{from}\""), &error)),
            Asked::Data(offset) => {
                let wrong = Wrong::Failed(error);
                let here = wrong.is_here();
                self.fail(*offset, wrong.failure(|| moving(here, &self.from, &self.to)));
            }
            Asked::Close => self.fail(u64::MAX, Failure::asked("close remote", &error)),
            // A server that does not tell leaves it at that.
            Asked::Before | Asked::After => {}
        }
    }
}

impl Journey for Download {
    fn answered(
        &mut self,
        mover: &mut Mover,
        token: u64,
        answer: std::result::Result<Answer, Error>,
    ) -> Vec<u64> {
        let Some(asked) = self.asked.remove(&token) else { return Vec::new() };
        let mut next = match answer {
            Ok(answer) => self.note(mover, asked, answer),
            Err(error) => {
                self.refused(&asked, error);
                Vec::new()
            }
        };
        next.extend(self.go_on(mover));
        next
    }

    fn has_ended(&self) -> bool {
        self.asked.is_empty()
    }

    fn size(&self) -> u64 {
        self.attrs.size.unwrap_or(0)
    }

    fn finish(self: Box<Self>, session: &Session) -> Result<()> {
        let Some(local) = &self.local else {
            return self.gap.map_or(Ok(()), |(_, failure)| Err(failure));
        };
        let gap = self.gap.as_ref().map_or(u64::MAX, |(at, _)| *at);
        let end = self.end.unwrap_or(self.next).min(gap);
        session.show_done(&self.from, self.size(), end, self.began);
        let cut = cut(local, end);
        if let Some((_, failure)) = self.gap {
            return Err(failure);
        }
        cut.map_err(|error| failed("local ftruncate", &self.to, &error))?;
        let [before, after] = &self.looks;
        changed(before.as_ref(), after.as_ref(), &self.from)?;
        finish(local, opened(before.as_ref(), &self.attrs), &self.to, self.manner)
    }
}

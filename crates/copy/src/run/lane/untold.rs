//! Untold: a source that says it is empty, and may not be: files that the kernel makes while they
//! are read (`/proc`) have no size. It is read to its end, a block at a time.

use super::super::meta::Kind;
use super::super::side::{Answered, Fault, Open, Side, Told};
use super::{At, FileId, Lane, What};
use sftp::client::{Check, Data, Target};
use std::fs::File as Disk;
use std::os::unix::fs::FileExt;
use std::thread::sleep;

impl Lane<'_> {
    /// Both ends are open: whether the source is read before anything is believed of its size.
    pub(super) fn reads_untold(&mut self, id: FileId) -> bool {
        let is_empty = self.files.get(&id).is_some_and(|file| {
            let meta = &file.entry().meta;
            meta.kind == Kind::File && meta.size == 0
        });
        let reads = is_empty && !self.is_test();
        if reads {
            self.read_untold(id);
        }
        reads
    }

    fn read_untold(&mut self, id: FileId) {
        let token = self.token(id, What::UntoldRead);
        let len = u32::try_from(self.block).unwrap_or(u32::MAX);
        let Some(file) = self.files.get_mut(&id) else { return };
        file.waits += 1;
        match (&self.ends.source, &file.source) {
            (Side::There(there), Some(Open::Remote(from))) => {
                there.client.get(from, file.untold, len, Target::Bytes, Check::None, token);
            }
            (_, Some(Open::Local(from))) => {
                let block = block_of(from, file.untold, len);
                self.answers.push_back((token, block.map_err(|fault| fault.at(At::Source))));
            }
            _ => self.answers.push_back((token, Err(Fault::internal("a file is not open")))),
        }
    }

    /// A block of it came: none is the end.
    pub(super) fn untold_read(&mut self, id: FileId, answer: Answered) {
        let bytes = match answer {
            Ok(Told::Moved { bytes, .. }) => bytes,
            Ok(_) => return self.fail(id, Fault::unfit()),
            Err(fault) => return self.fail(id, fault),
        };
        match self.files.get(&id) {
            Some(_) if bytes.is_empty() => self.share(id),
            // What is there has nothing in it (`--verify`).
            Some(file) if file.compare => self.fail(id, Fault::Differs),
            _ => self.write_untold(id, bytes),
        }
    }

    fn write_untold(&mut self, id: FileId, bytes: Vec<u8>) {
        if let Some(limiter) = &self.copying.limiter {
            sleep(limiter.take(bytes.len()));
        }
        let token = self.token(id, What::UntoldWritten);
        let Some(file) = self.files.get_mut(&id) else { return };
        file.waits += 1;
        let at = file.untold;
        file.untold += bytes.len() as u64;
        match (self.ends.side(At::Target), &file.target) {
            (Side::There(there), Some(Open::Remote(to))) => {
                there.client.put(to, at, Data::Bytes(bytes.into()), Check::None, token);
            }
            (_, Some(Open::Local(to))) => {
                let written = to.write_all_at(&bytes, at).map_err(Fault::from);
                let len = bytes.len() as u64;
                let told = Told::Moved { len, hash: None, bytes: Vec::new() };
                self.answers.push_back((token, written.map(|()| told)));
            }
            _ => self.answers.push_back((token, Err(Fault::internal("a file is not open")))),
        }
    }

    pub(super) fn untold_written(&mut self, id: FileId, answer: Answered) {
        match answer {
            Ok(Told::Moved { len, .. }) => {
                self.worked = true;
                self.copying.moved(self.id, len);
                self.read_untold(id);
            }
            Ok(_) => self.fail(id, Fault::unfit()),
            Err(fault) => self.fail(id, fault),
        }
    }
}

fn block_of(file: &Disk, at: u64, len: u32) -> Answered {
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(&mut bytes, at)?;
    bytes.truncate(read);
    Ok(Told::Moved { len: read as u64, hash: None, bytes })
}

//! Long work on open files: hashes of blocks, maps of holes, copies inside the server.
//!
//! All of it looks between steps whether the client is still there.

use super::change::shown;
use super::fault::Fault;
use super::handles::Open;
use super::log::Level;
use super::queue::Shared;
use crate::codec::{BlockHashes, Handle, Reply, SparseMap, Status};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Smallest block: a hash every 64 KiB is 0.05 % of the data.
const SMALLEST: u64 = 64 * 1024;
/// Most bytes that one request hashes, so that the answer comes within a second.
const MOST_HASHED: u64 = 1 << 30;
/// Bytes read at once: they stay in the cache until they are hashed.
const STEP: usize = 256 * 1024;
/// Bytes copied by one system call.
const COPY_STEP: u64 = 64 << 20;

impl Shared {
    /// An open file that is read from.
    fn readable(&self, handle: &Handle) -> Result<Arc<Open>, Fault> {
        let open = self.handles.get(handle)?;
        if !open.file()?.reads() {
            return Err(Fault::handle());
        }
        Ok(open)
    }

    pub(super) fn block_hashes(
        &self,
        handle: &Handle,
        offset: u64,
        len: u64,
        block: u32,
    ) -> Result<Reply, Fault> {
        let open = self.readable(handle)?;
        let block = u64::from(block);
        if !(SMALLEST..=MOST_HASHED).contains(&block) {
            return Err(Fault::new(Status::BadMessage, "Blocks are of 64 KiB to 1 GiB"));
        }
        // Whole blocks: then what was hashed ends at a block or at the end.
        let most = (MOST_HASHED / block).min(BlockHashes::MOST as u64) * block;
        let wanted = if len == 0 { most } else { len.min(most) };
        let mut buffer = vec![0; STEP];
        let mut reply = BlockHashes::default();
        while reply.hashed < wanted {
            let len = block.min(wanted - reply.hashed);
            let at = offset.saturating_add(reply.hashed);
            let (hash, bytes) = self.hash(&open, at, len, &mut buffer)?;
            if bytes > 0 {
                reply.hashes.push(hash);
                reply.hashed += bytes;
            }
            // A file that grows meanwhile does not go on in the middle of a block.
            if bytes < len {
                break;
            }
        }
        Ok(Reply::Extended(reply.encode()))
    }

    /// The hash of one block, and how much of it there was.
    fn hash(
        &self,
        open: &Open,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<([u8; 32], u64), Fault> {
        let mut hasher = blake3::Hasher::new();
        let mut done = 0;
        while done < len {
            let step = usize::try_from(len - done).unwrap_or(STEP).min(buffer.len());
            let part = buffer.get_mut(..step).unwrap_or_default();
            let read = self.read_at(open, part, offset.saturating_add(done))?;
            if read == 0 {
                break;
            }
            hasher.update(buffer.get(..read).unwrap_or_default());
            done += read as u64;
        }
        Ok((*hasher.finalize().as_bytes(), done))
    }

    fn read_at(&self, open: &Open, buffer: &mut [u8], offset: u64) -> Result<usize, Fault> {
        self.check()?;
        loop {
            match rustix::io::pread(open, &mut *buffer, offset) {
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }

    fn check(&self) -> Result<(), Fault> {
        if self.is_closed() { Err(Status::ConnectionLost.into()) } else { Ok(()) }
    }

    pub(super) fn sparse_map(&self, handle: &Handle, offset: u64) -> Result<Reply, Fault> {
        let open = self.readable(handle)?;
        let size = rustix::fs::fstat(open.as_ref())?.st_size;
        let size = u64::try_from(size).unwrap_or(0);
        let mut map = SparseMap { size, data: Vec::new() };
        let mut at = offset;
        while map.data.len() < SparseMap::MOST && at < size {
            self.check()?;
            let Some((start, end)) = extent(&open, at, size)? else { break };
            map.data.push((start, end - start));
            at = end;
        }
        Ok(Reply::Extended(map.encode()))
    }

    /// `copy-data` (OpenSSH's PROTOCOL, section 4.10), by the file system itself where it can.
    pub(super) fn copy_data(
        &self,
        (from, from_offset): (&Handle, u64),
        len: u64,
        (to, to_offset): (&Handle, u64),
    ) -> Result<(), Fault> {
        let (source, target) = (self.handles.get(from)?, self.handles.get(to)?);
        source.file()?;
        target.file()?;
        let (old, new) = (shown(&source.path), shown(&target.path));
        let line = format_args!(
            "copy-data from \"{old}\" off {from_offset} len {len} to \"{new}\" off {to_offset}"
        );
        self.log(Level::Info, line);
        if from == to || source.path == target.path {
            return Err(Fault::new(Status::Failure, "Cannot copy a file to itself"));
        }
        let mut left =
            copy_length((source.as_ref(), from_offset), len, (target.as_ref(), to_offset))?;
        let mut copy = Copy { shared: self, source, target, from_offset, to_offset, by_hand: None };
        while left > 0 {
            self.check()?;
            match copy.step(left)? {
                0 if len == 0 => break,
                0 => return Err(Fault::eof()),
                copied => left -= copied.min(left),
            }
        }
        Ok(())
    }
}

/// The bytes to copy; 0 asks for all to the end. Ranges of one file must not overlap
/// (copy_file_range(2)), and a copy to its end stops at the end it has now: it would go on to copy
/// what it has just written.
fn copy_length(
    (source, from_offset): (&Open, u64),
    len: u64,
    (target, to_offset): (&Open, u64),
) -> Result<u64, Fault> {
    let (from, to) = (rustix::fs::fstat(source)?, rustix::fs::fstat(target)?);
    if (from.st_dev, from.st_ino) != (to.st_dev, to.st_ino) {
        return Ok(if len == 0 { u64::MAX } else { len });
    }
    let rest = u64::try_from(from.st_size).unwrap_or(0).saturating_sub(from_offset);
    let len = if len == 0 { rest } else { len };
    if from_offset.abs_diff(to_offset) < len {
        return Err(Fault::new(Status::Failure, "Cannot copy a file onto itself"));
    }
    Ok(len)
}

/// The data from `at` on, before the next hole; `None` where only a hole is left. What the file
/// system does not know about holes is data.
fn extent(open: &Open, at: u64, size: u64) -> Result<Option<(u64, u64)>, Fault> {
    let start = match rustix::fs::seek(open, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some((at, size))),
        Err(errno) => return Err(errno.into()),
    };
    let end = rustix::fs::seek(open, SeekFrom::Hole(start))?;
    Ok((end > start).then_some((start, end)))
}

/// A copy on its way.
struct Copy<'a> {
    shared: &'a Shared,
    source: Arc<Open>,
    target: Arc<Open>,
    from_offset: u64,
    to_offset: u64,
    /// Memory to copy through, once the kernel has said that it cannot.
    by_hand: Option<Vec<u8>>,
}

impl Copy<'_> {
    /// Copies some; how much.
    fn step(&mut self, left: u64) -> Result<u64, Fault> {
        let copied = match self.by_hand.take() {
            Some(buffer) => self.through(buffer, left)?,
            None => {
                let step = usize::try_from(left.min(COPY_STEP)).unwrap_or(STEP);
                let (mut from, mut to) = (self.from_offset, self.to_offset);
                let done = rustix::fs::copy_file_range(
                    self.source.as_fd(),
                    Some(&mut from),
                    self.target.as_fd(),
                    Some(&mut to),
                    step,
                );
                match done {
                    // Files of the kernel's own making say nothing to it, but have content.
                    Ok(0) | Err(_) => self.through(vec![0; STEP], left)?,
                    Ok(copied) => copied as u64,
                }
            }
        };
        self.from_offset = self.from_offset.saturating_add(copied);
        self.to_offset = self.to_offset.saturating_add(copied);
        self.source.count_read(copied);
        self.target.count_written(copied);
        Ok(copied)
    }

    fn through(&mut self, mut buffer: Vec<u8>, left: u64) -> Result<u64, Fault> {
        let most = usize::try_from(left).unwrap_or(STEP).min(buffer.len());
        let part = buffer.get_mut(..most).unwrap_or_default();
        let read = self.shared.read_at(&self.source, part, self.from_offset)?;
        let mut data = buffer.get(..read).unwrap_or_default();
        let mut at = self.to_offset;
        while !data.is_empty() {
            match rustix::io::pwrite(self.target.as_fd(), data, at) {
                Err(Errno::INTR) => {}
                Ok(0) => return Err(Errno::IO.into()),
                written => {
                    let written = written?;
                    data = data.get(written..).unwrap_or_default();
                    at = at.saturating_add(written as u64);
                }
            }
        }
        self.by_hand = Some(buffer);
        Ok(read as u64)
    }
}

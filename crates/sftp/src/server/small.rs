//! Small files, several in one request each way: `put-files@longhaul`, `get-files@longhaul`.
//!
//! A file that is put is written under another name in its directory, given its attributes by
//! descriptor, and renamed: a reader sees nothing, the old file or the whole new one (R1).

use super::attributes::{self, permissions};
use super::change::{open_place, shown};
use super::fault::Fault;
use super::log::Level;
use super::noreplace;
use super::paths;
use super::queue::Shared;
use super::xattrs;
use crate::codec::{
    Attrs, FileContent, FileStatus, GetFile, MAX_PACKET, PutFile, PutFlags, Reply, Status,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Directories kept open within a request.
const DIRECTORIES: usize = 32;
/// Files in a request: so many answers fit into a packet, whatever they say.
const FILES: usize = 2_000;
/// Bytes of a reply that are not contents: the packet's head, and per file status, attributes and
/// lengths.
const HEAD: usize = 64;
const PER_FILE: usize = 176;
/// Permissions without those that lend somebody's rights.
const PLAIN: u32 = 0o777;

/// Makes names of part files differ, together with the process's number.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A file's content, as far as it is told.
enum Content {
    Whole(Vec<u8>),
    /// Larger than asked for.
    TooLarge,
    /// Perhaps in a reply with more room.
    NoRoom,
}

/// Whether both owner and group are to be somebody's.
fn names_owner(attrs: &Attrs) -> bool {
    matches!(attrs.owner.map(attributes::owner), Some((Some(_), Some(_))))
}

/// A directory that files are put into.
struct Directory {
    path: Vec<u8>,
    fd: OwnedFd,
    /// Places in the request of those that are in place.
    done: Vec<usize>,
}

impl Directory {
    /// A rename is on disk when its directory is, which nobody can see to who may not read it.
    fn sync(&self, outcomes: &mut [Result<(), Fault>]) {
        if let Err(errno) = rustix::fs::fsync(&self.fd)
            && errno != Errno::BADF
        {
            for number in &self.done {
                if let Some(outcome) = outcomes.get_mut(*number) {
                    *outcome = Err(errno.into());
                }
            }
        }
    }
}

impl Shared {
    pub(super) fn put_files(&self, flags: PutFlags, files: &[PutFile]) -> Reply {
        if files.len() > FILES {
            return Fault::new(Status::Failure, "Too many files").reply();
        }
        let mut outcomes = Vec::with_capacity(files.len());
        let mut directories = Vec::new();
        for (number, file) in files.iter().enumerate() {
            if directories.len() == DIRECTORIES {
                sync(flags, &mut directories, &mut outcomes);
            }
            outcomes.push(self.put(flags, file, number, &mut directories));
        }
        sync(flags, &mut directories, &mut outcomes);
        let statuses: Vec<_> = outcomes.into_iter().map(status).collect();
        Reply::Extended(FileStatus::encode_list(&statuses))
    }

    fn put(
        &self,
        flags: PutFlags,
        file: &PutFile,
        number: usize,
        directories: &mut Vec<Directory>,
    ) -> Result<(), Fault> {
        let (path, len) = (shown(&file.path), file.content.len());
        self.log(Level::Info, format_args!("put \"{path}\" bytes {len}"));
        let (directory, name) = paths::split(&file.path)?;
        let place = match directories.iter().position(|known| known.path == directory) {
            Some(place) => place,
            None => {
                let fd = open_place(&self.start, directory)?;
                directories.push(Directory { path: directory.to_vec(), fd, done: Vec::new() });
                directories.len() - 1
            }
        };
        let Some(directory) = directories.get_mut(place) else { return Err(Fault::handle()) };
        self.put_into(directory.fd.as_fd(), name, flags, file)?;
        directory.done.push(number);
        Ok(())
    }

    fn put_into(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        flags: PutFlags,
        file: &PutFile,
    ) -> Result<(), Fault> {
        let part = part_name(name);
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(directory, &part, create, Mode::RUSR | Mode::WUSR)?;
        let outcome = self
            .write_part(&fd, flags, file)
            // Whatever the file system reports only now, before it replaces anything.
            .and(crate::close(fd))
            .and_then(|()| put_in_place(directory, &part, name, flags));
        if outcome.is_err() {
            let _ = rustix::fs::unlinkat(directory, &part, AtFlags::empty());
        }
        Ok(outcome?)
    }

    /// Content, then attributes, all by descriptor, then the disk.
    fn write_part(&self, fd: &OwnedFd, flags: PutFlags, file: &PutFile) -> Result<(), Errno> {
        write_all(fd, &file.content)?;
        if let Some((user, group)) = file.attrs.owner.map(attributes::owner) {
            rustix::fs::fchown(fd, user, group)?;
        }
        rustix::fs::fchmod(fd, permissions(self.mode_of(flags, &file.attrs)))?;
        if let Some(times) = attributes::times(&file.attrs) {
            rustix::fs::futimens(fd, &times)?;
        }
        if flags.has(PutFlags::FSYNC) { rustix::fs::fsync(fd) } else { Ok(()) }
    }

    /// Set-id bits lend the owner's rights: they are for those who asked and name him (F3).
    fn mode_of(&self, flags: PutFlags, attrs: &Attrs) -> u32 {
        match (attrs.mode, flags.has(PutFlags::EXACT)) {
            (Some(mode), true) if names_owner(attrs) => mode,
            (Some(mode), true) => mode & PLAIN,
            (mode, _) => mode.unwrap_or(0o666) & PLAIN & !self.umask,
        }
    }

    pub(super) fn get_files(&self, files: &[GetFile]) -> Reply {
        let mut contents = Vec::new();
        let mut room = MAX_PACKET - HEAD;
        for file in files {
            let left = room.saturating_sub(PER_FILE);
            let (content, fits) = self.get(file, left);
            // The first is answered in any case; others may be asked for again.
            if !fits && !contents.is_empty() {
                break;
            }
            let pairs = content.attrs.xattrs().map_or(0, |pairs| xattrs::bytes(&pairs));
            room = left.saturating_sub(content.content.len() + pairs);
            contents.push(content);
            if room < PER_FILE {
                break;
            }
        }
        Reply::Extended(FileContent::encode_list(&contents))
    }

    /// A file's content, and whether it fits into `room`, or would not be sent anyway.
    fn get(&self, file: &GetFile, room: usize) -> (FileContent, bool) {
        self.log(Level::Info, format_args!("get \"{}\"", shown(&file.path)));
        let mut attrs = Attrs::default();
        let (code, content, fits) = match self.content(file, room, &mut attrs) {
            Ok(Content::Whole(content)) => (Status::Ok, content, true),
            Ok(Content::TooLarge) => (Status::Failure, Vec::new(), true),
            Ok(Content::NoRoom) => (Status::Failure, Vec::new(), false),
            Err(fault) => (fault.code, Vec::new(), true),
        };
        (FileContent { code, attrs, content }, fits)
    }

    /// The file, and whether a symbolic link led to it.
    fn open_to_get(&self, path: &[u8]) -> Result<(OwnedFd, bool), Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = |flags| crate::open_regular(&self.start, path, flags, Mode::empty());
        match open(flags | OFlags::NOFOLLOW) {
            Err(Errno::LOOP) => Ok((open(flags)?, true)),
            opened => Ok((opened?, false)),
        }
    }

    /// All of a regular file, unless it is larger than asked for or than `room`.
    fn content(&self, file: &GetFile, room: usize, attrs: &mut Attrs) -> Result<Content, Fault> {
        let (fd, followed) = self.open_to_get(&file.path)?;
        let stat = rustix::fs::fstat(&fd)?;
        *attrs = attributes::of(&stat, self.wanted());
        if followed {
            attrs.set_followed();
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Fault::new(Status::Failure, "Not a regular file"));
        }
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        let is_sent = size <= usize::try_from(file.most).unwrap_or(usize::MAX);
        let pairs = if self.wanted().xattrs { xattrs::of(fd.as_fd())? } else { Vec::new() };
        let told = xattrs::bytes(&pairs).saturating_add(if is_sent { size } else { 0 });
        if told > room {
            return Ok(Content::NoRoom);
        }
        if !pairs.is_empty() {
            attrs.set_xattrs(&pairs);
        }
        if !is_sent {
            return Ok(Content::TooLarge);
        }
        match unchanged(&fd, &stat, size)? {
            Some(content) => Ok(Content::Whole(content)),
            None => Err(Fault::new(Status::Failure, "The file changed while it was read")),
        }
    }
}

/// The content of a file of `size` bytes, unless it changed since `before` was taken (F9). A file
/// rewritten in place keeps its size, so what counts is what the file system says afterwards.
fn unchanged(fd: &OwnedFd, before: &Stat, size: usize) -> Result<Option<Vec<u8>>, Errno> {
    // One byte more than it should have: a file that grows meanwhile is not whole.
    let mut content = vec![0; size + 1];
    let read = read_all(fd, &mut content)?;
    content.truncate(read);
    let times =
        |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    let same = read == size && times(&rustix::fs::fstat(fd)?) == times(before);
    Ok(same.then_some(content))
}

fn sync(flags: PutFlags, directories: &mut Vec<Directory>, outcomes: &mut [Result<(), Fault>]) {
    for directory in directories.drain(..) {
        if flags.has(PutFlags::FSYNC) && !directory.done.is_empty() {
            directory.sync(outcomes);
        }
    }
}

fn status(outcome: Result<(), Fault>) -> FileStatus {
    match outcome {
        Ok(()) => FileStatus { code: Status::Ok, text: Vec::new() },
        Err(fault) => FileStatus { code: fault.code, text: fault.text.as_bytes().to_vec() },
    }
}

/// Another one each time.
fn part_name(name: &[u8]) -> Vec<u8> {
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    crate::part_name(name, &format!("{:x}-{count:x}", std::process::id()))
}

fn put_in_place(
    directory: BorrowedFd<'_>,
    part: &[u8],
    name: &[u8],
    flags: PutFlags,
) -> Result<(), Errno> {
    if !flags.has(PutFlags::NO_REPLACE) {
        return rustix::fs::renameat(directory, part, directory, name);
    }
    noreplace::rename(directory, part, name)
}

fn write_all(fd: &OwnedFd, mut content: &[u8]) -> Result<(), Errno> {
    while !content.is_empty() {
        match rustix::io::write(fd, content) {
            Err(Errno::INTR) => {}
            Ok(0) => return Err(Errno::IO),
            written => content = content.get(written?..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Fills `content` as far as the file goes.
fn read_all(fd: &OwnedFd, content: &mut [u8]) -> Result<usize, Errno> {
    let mut read = 0;
    while let Some(left) = content.get_mut(read..).filter(|left| !left.is_empty()) {
        match rustix::io::read(fd, left) {
            Err(Errno::INTR) => {}
            Ok(0) => break,
            more => read += more?,
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_long_names_that_begin_alike_have_parts_of_their_own() {
        let front = |last: u8| {
            let part = part_name(&[[b'n'; 254].as_slice(), &[last]].concat());
            assert!(part.len() <= 255);
            let id = part.iter().rposition(|byte| *byte == b'-').unwrap();
            part[..id].to_vec()
        };
        assert_ne!(front(b'a'), front(b'b'));
        assert_eq!(front(b'a'), front(b'a'));
    }

    #[test]
    fn f9_a_file_rewritten_in_place_while_it_is_read_is_not_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "old content").unwrap();
        let fd = OwnedFd::from(std::fs::File::open(file.path()).unwrap());
        let before = rustix::fs::fstat(&fd).unwrap();
        assert_eq!(unchanged(&fd, &before, 11).unwrap().as_deref(), Some(&b"old content"[..]));
        rustix::fs::seek(&fd, rustix::fs::SeekFrom::Start(0)).unwrap();
        std::fs::write(file.path(), "new content").unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::options()
            .write(true)
            .open(file.path())
            .and_then(|file| file.set_modified(later))
            .unwrap();
        assert_eq!(unchanged(&fd, &before, 11).unwrap(), None);
    }

    #[test]
    fn f6_everything_told_of_a_file_fits_what_is_set_aside_for_it() {
        let mut attrs = Attrs {
            size: Some(0),
            owner: Some((0, 0)),
            mode: Some(0),
            times: Some((0, 0)),
            extended: Vec::new(),
        };
        attrs.set_nanoseconds(0, 0);
        attrs.set_linked(0, 0);
        attrs.set_followed();
        attrs.set_xattrs(&[]);
        let file = FileContent { code: Status::Ok, attrs, content: Vec::new() };
        let bytes = |count| FileContent::encode_list(&vec![file.clone(); count]).len();
        let each = bytes(2) - bytes(1);
        assert!(each <= PER_FILE, "{each} bytes");
    }
}

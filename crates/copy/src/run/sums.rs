//! Sums: whole files are compared by the server's sha256sum(1) (`--verify`), where it has no hashes
//! of ours and allows commands. Reading back is what is left where that does not work.
//!
//! ```text
//! asking   lanes put questions; this thread connects at the first and writes names
//! telling  reads the server's sums, makes ours of the file here, tells the lane which it is
//! ```
//! F4: there is one command, always the same. Names go to its standard input, each ended by a NUL,
//! none beginning with a dash, each followed by /dev/null, whose sum says that the answer is whole.

use super::job::Job;
use crypt::Sha256;
use remote::{Connection, Host};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sftp::client::{Answer, Event};
use sftp::codec::{Reply, Status};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

const COMMAND: &[u8] = b"exec xargs -0 -n 2 sha256sum -z --";
const MARK: &[u8] = b"/dev/null";
/// Longest line, in bytes: a path, its sum, and what a shell's start-up file may say before.
const LONGEST: u64 = 1 << 16;
/// How long a server may take to sum nothing: some have no such program, or one that waits.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// What became of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    Differs,
    /// The server cannot say.
    Unknown,
}

/// A file whose content at both ends is to be compared.
pub(super) struct Question {
    /// At the server, as sftp takes it.
    pub(super) path: Vec<u8>,
    /// On this host.
    pub(super) file: Arc<File>,
    /// Where the verdict goes.
    pub(super) job: Arc<Job>,
    /// Who waits for it, and what for.
    pub(super) tell: Sender<Event>,
    pub(super) token: u64,
}

impl Question {
    fn answer(&self, verdict: Verdict) {
        let _ = self.job.sum.set(verdict);
        let answer = Ok(Answer::Reply(Reply::status(Status::Ok)));
        let _ = self.tell.send(Event::Answer { token: self.token, answer });
    }
}

/// Asks one server. Its threads and its connection end when it is dropped.
pub(super) struct Sums {
    asked: Sender<Question>,
    /// Where the server's relative paths begin.
    start: OnceLock<Vec<u8>>,
}

impl Sums {
    /// Nothing is connected before the first question.
    pub(super) fn new(host: Host) -> io::Result<Self> {
        let (asked, questions) = channel();
        let asking = move || ask(&questions, || Summer::start(&host));
        thread::Builder::new().name("sums".to_owned()).spawn(asking)?;
        Ok(Self { asked, start: OnceLock::new() })
    }

    /// The server's sftp and its commands may begin in different directories.
    pub(super) fn starts_in(&self, directory: Vec<u8>) {
        let _ = self.start.set(directory);
    }

    pub(super) fn ask(&self, mut question: Question) {
        if !question.path.starts_with(b"/") {
            let Some(start) = self.start.get().filter(|start| start.starts_with(b"/")) else {
                return question.answer(Verdict::Unknown);
            };
            question.path = [start.as_slice(), b"/", &question.path].concat();
        }
        if let Err(lost) = self.asked.send(question) {
            lost.0.answer(Verdict::Unknown);
        }
    }
}

/// The running command.
struct Summer {
    names: File,
    sums: BufReader<File>,
    /// What carries it.
    _connection: Option<Connection>,
}

impl Summer {
    fn start(host: &Host) -> io::Result<Self> {
        let lost = |error: remote::Error| io::Error::other(error.to_string());
        let connection = host.connect().map_err(lost)?;
        let (names, sums) = connection.pipe(COMMAND.to_vec()).map_err(lost)?;
        Self::tried(names.into(), sums.into(), Some(connection))
    }

    /// Only one that sums nothing in time is believed to sum anything.
    fn tried(mut names: File, sums: File, connection: Option<Connection>) -> io::Result<Self> {
        names.write_all(&[MARK, b"\0", MARK, b"\0"].concat())?;
        if poll(&mut [PollFd::from_borrowed_fd(sums.as_fd(), PollFlags::IN)], Some(&PATIENCE))? == 0
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut summer = Self { names, sums: BufReader::new(sums), _connection: connection };
        for _ in 0..2 {
            if summing(&line(&mut summer.sums)?, MARK).is_none() {
                return Err(io::Error::other("no sum"));
            }
        }
        Ok(summer)
    }
}

/// The asking thread: names leave while sums of earlier ones are awaited.
fn ask(questions: &Receiver<Question>, start: impl FnOnce() -> io::Result<Summer>) {
    let Ok(first) = questions.recv() else { return };
    let Ok(Summer { mut names, sums, _connection }) = start() else {
        first.answer(Verdict::Unknown);
        return questions.iter().for_each(|question| question.answer(Verdict::Unknown));
    };
    let (pass, passed) = channel();
    let telling = thread::Builder::new().name("sums read".to_owned()).spawn(|| tell(passed, sums));
    for question in std::iter::once(first).chain(questions.iter()) {
        let both = [question.path.as_slice(), b"\0", MARK, b"\0"].concat();
        // A command that has ended: its sums end, too.
        let _ = names.write_all(&both);
        if let Err(lost) = pass.send(question) {
            lost.0.answer(Verdict::Unknown);
        }
    }
    drop((names, pass));
    let _ = telling.map(thread::JoinHandle::join);
}

/// The telling thread. After an answer that is none, nothing is believed any more.
fn tell(passed: Receiver<Question>, mut sums: BufReader<File>) {
    let mut good = true;
    for question in passed {
        let theirs = if good { theirs(&mut sums, &question.path) } else { Ok(None) };
        good &= theirs.is_ok();
        question.answer(match (theirs, sum_of(&question.file)) {
            (Ok(Some(theirs)), Ok(ours)) if theirs == ours => Verdict::Same,
            (Ok(Some(_)), Ok(_)) => Verdict::Differs,
            _ => Verdict::Unknown,
        });
    }
}

/// The server's sum of a file, in hexadecimal digits; none if it could not read it.
fn theirs(sums: &mut BufReader<File>, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let first = line(sums)?;
    if summing(&first, MARK).is_some() {
        return Ok(None);
    }
    let sum = summing(&first, path).ok_or_else(|| io::Error::other("a sum of something else"))?;
    match summing(&line(sums)?, MARK) {
        Some(_) => Ok(Some(sum.to_vec())),
        None => Err(io::Error::other("no end of an answer")),
    }
}

/// Up to the next NUL.
fn line(sums: &mut BufReader<File>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    sums.take(LONGEST).read_until(0, &mut line)?;
    match line.pop() {
        Some(0) => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The digits of `<sum>  <name>`, if it ends in that.
fn summing<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let line = line.strip_suffix(name)?.strip_suffix(b"  ")?;
    let digits = line.get(line.len().checked_sub(64)?..)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)
}

/// Of a file of this host, in the same digits.
fn sum_of(file: &File) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let (mut sum, mut buffer, mut at) = (Sha256::new(), vec![0; 1 << 18], 0);
    loop {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            let digits = sum.finish().as_slice().iter().flat_map(|byte| hex(*byte)).collect();
            return Ok(digits);
        }
        sum.update(buffer.get(..read).unwrap_or_default());
        at += read as u64;
    }
}

fn hex(byte: u8) -> [u8; 2] {
    let digit = |four: u8| if four < 10 { b'0' + four } else { b'a' + four - 10 };
    [digit(byte >> 4), digit(byte & 15)]
}

#[cfg(test)]
mod tests {
    use super::super::job::Rest;
    use super::super::queue::tests::entry;
    use super::super::ranges::Ranges;
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// A shell in place of a server.
    fn shell(command: &str) -> io::Result<Summer> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (names, sums) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Summer::tried(OwnedFd::from(names).into(), OwnedFd::from(sums).into(), None)
    }

    fn verdicts(command: &'static str, questions: &[(&Path, &Path)]) -> Vec<Verdict> {
        let (asked, waiting) = channel();
        let asking = thread::spawn(move || ask(&waiting, || shell(command)));
        let (tell, told) = channel();
        let all = Ranges::of(0..1);
        let ask = |(there, here): &(&Path, &Path)| {
            let job = Arc::new(Job::new(
                entry(b"x", 1),
                1,
                Rest { unmoved: all.clone(), ..Rest::default() },
            ));
            let path = there.as_os_str().as_bytes().to_vec();
            let file = Arc::new(File::open(here).unwrap());
            let (tell, token) = (tell.clone(), 1);
            asked.send(Question { path, file, job: Arc::clone(&job), tell, token }).unwrap();
            job
        };
        let jobs: Vec<_> = questions.iter().map(ask).collect();
        jobs.iter().for_each(|_| drop(told.recv().unwrap()));
        drop(asked);
        asking.join().unwrap();
        jobs.iter().map(|job| *job.sum.get().unwrap()).collect()
    }

    fn good() -> &'static str {
        std::str::from_utf8(COMMAND).unwrap()
    }

    #[test]
    fn f4_names_of_any_bytes_are_summed_and_none_is_run() {
        let lab = tempfile::tempdir().unwrap();
        let names: [&[u8]; 7] =
            [b"plain", b"-rf", b"new\nline", b"$(touch x)", b"'; touch x", b"\\\\\\", b"\xff \t"];
        let paths = names.map(|name| lab.path().join(std::ffi::OsStr::from_bytes(name)));
        for (number, path) in paths.iter().enumerate() {
            std::fs::write(path, vec![7; number * 200_000]).unwrap();
        }
        let missing = lab.path().join("missing");
        let mut questions: Vec<_> = paths.iter().map(|p| (p.as_path(), p.as_path())).collect();
        questions.push((&missing, &paths[0]));
        questions.push((&paths[1], &paths[2]));
        questions.push((&paths[2], &paths[2]));
        let mut want = vec![Verdict::Same; 7];
        want.extend([Verdict::Unknown, Verdict::Differs, Verdict::Same]);
        assert_eq!(verdicts(good(), &questions), want);
        assert_eq!(std::fs::read_dir(lab.path()).unwrap().count(), 7);
    }

    #[test]
    fn servers_that_cannot_or_will_not_sum_are_not_believed() {
        let lab = tempfile::tempdir().unwrap();
        let file = lab.path().join("file");
        std::fs::write(&file, "content").unwrap();
        let questions = [(file.as_path(), file.as_path()), (file.as_path(), file.as_path())];
        for command in [
            "exit 127",
            "echo This service allows sftp connections only.",
            // Sums nothing, then ends.
            "head -c 20 | xargs -0 sha256sum -z --",
            // Sums something else.
            "xargs -0 -n 2 sh -c 'sha256sum -z /dev/null /dev/null'",
            "yes",
        ] {
            let told = verdicts(command, &questions);
            assert!(told.iter().all(|told| *told == Verdict::Unknown), "{command}: {told:?}");
        }
        // What a shell's start-up file says does not matter.
        let noisy = "echo Welcome; exec xargs -0 -n 2 sha256sum -z --";
        assert_eq!(verdicts(noisy, &questions), [Verdict::Same; 2]);
    }
}

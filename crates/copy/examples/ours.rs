//! Our SFTP server on standard input and output, for the copy's tests: lhsftp-server without its
//! log, which cargo does not build for another crate's tests. With a file named by
//! `LHSCP_TEST_FUSE` it dies when it is asked for files, and takes a byte off that file, until the
//! file is empty. With a word in `LHSCP_TEST_WORD` it dies when it is asked for that, but does it
//! first, and answers nothing any more; `\0` in it is a NUL.

use sftp::server::{Account, Action, Level, Log, Options, Output, Setup};
use std::fmt::Arguments;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// No answer is sent any more.
static MUTE: AtomicBool = AtomicBool::new(false);
/// Longer than a request takes.
const SOON: Duration = Duration::from_millis(500);

struct Nowhere;

impl Log for Nowhere {
    fn line(&self, _: Level, _: Arguments<'_>) {}
}

fn main() -> io::Result<()> {
    let Ok(Action::Serve(options)) = Options::parse(std::env::args_os().skip(1)) else {
        return Err(io::Error::other("options are those of sftp-server(8)"));
    };
    let start = std::env::current_dir()?;
    let home = std::env::var_os("HOME").map_or_else(|| start.clone(), Into::into);
    let account = Account { name: b"tester".to_vec(), home };
    let (peer, log) = (String::new(), Arc::new(Nowhere));
    let links = Default::default();
    let setup = Setup { options: *options, account, start, peer, links, log };
    let (mut input, output, _) = sftp::server::start(setup)?;
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 19];
        let mut fuse = std::env::var_os("LHSCP_TEST_FUSE").map(|path| Fuse::new(path.into()));
        while let Ok(read @ 1..) = io::stdin().read(&mut buffer) {
            let bytes = buffer.get(..read).unwrap_or_default();
            let blown = fuse.as_mut().is_some_and(|fuse| fuse.is_blown(bytes));
            if take(&mut input, bytes).is_err() {
                break;
            }
            if blown {
                std::thread::sleep(SOON);
                std::process::exit(1);
            }
        }
        input.end();
    });
    send(output)
}

/// What ends the server when it is asked for something.
struct Fuse {
    path: PathBuf,
    word: Vec<u8>,
    /// What is asked for is done.
    late: bool,
    /// The end of what was heard, in which a word may have begun.
    heard: Vec<u8>,
}

impl Fuse {
    fn new(path: PathBuf) -> Self {
        let word = std::env::var("LHSCP_TEST_WORD").map(|word| word.replace("\\0", "\0"));
        let late = word.is_ok();
        let word = word.unwrap_or_else(|_| "get-files@longhaul".to_owned()).into_bytes();
        Self { path, word, late, heard: Vec::new() }
    }

    /// Whether the server is to die when it has done what `bytes` ask for.
    fn is_blown(&mut self, bytes: &[u8]) -> bool {
        self.heard.extend_from_slice(bytes);
        let left = std::fs::metadata(&self.path).map_or(0, |meta| meta.len());
        if left > 0 && self.heard.windows(self.word.len()).any(|part| part == self.word) {
            let _ = std::fs::write(&self.path, vec![b'x'; left as usize - 1]);
            if !self.late {
                std::process::exit(1);
            }
            MUTE.store(true, Ordering::SeqCst);
            return true;
        }
        let done = self.heard.len().saturating_sub(self.word.len() - 1);
        self.heard.drain(..done);
        false
    }
}

fn take(input: &mut sftp::server::Input, mut bytes: &[u8]) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    while !bytes.is_empty() {
        let taken = input.take(&[IoSlice::new(bytes)])?;
        bytes = bytes.get(taken..).unwrap_or_default();
        if !bytes.is_empty() {
            poll(&mut [PollFd::from_borrowed_fd(input.room(), PollFlags::IN)], None)?;
        }
    }
    Ok(())
}

fn send(mut output: Output) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 19];
    let mut stdout = io::stdout().lock();
    while output.wait() {
        let filled = output.fill(&mut [IoSliceMut::new(&mut buffer)]);
        if MUTE.load(Ordering::SeqCst) {
            continue;
        }
        stdout.write_all(buffer.get(..filled).unwrap_or_default())?;
        stdout.flush()?;
    }
    Ok(())
}

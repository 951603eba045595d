//! Hands: the few threads that run what may take long, started when there is such work.

use super::queue::Shared;
use std::io;
use std::sync::Arc;

/// Most of a session.
pub(super) const MOST: usize = 3;

/// Hashing keeps a buffer on the heap; nothing here recurses.
const STACK: usize = 256 * 1024;

/// Starts one. It ends with the session.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("sftp".to_owned()).stack_size(STACK);
    thread.spawn(move || run(&shared)).map(drop)
}

fn run(shared: &Arc<Shared>) {
    shared.enter_thread();
    let mut done = None;
    // The end of a session that could not be entered is the end of this, too.
    while let Some(job) = shared.work(done.take()) {
        let mut reply = Vec::new();
        shared.answer(job.id, &job.request).encode(job.id, &mut reply);
        done = Some((job, reply));
    }
}

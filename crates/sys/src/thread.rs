//! What a thread did with its time, by the scheduler's own account (proc(5), schedstat).

use std::time::Duration;

/// A thread of this process, for others to ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(libc::pid_t);

/// Time that the scheduler gave a thread, and made it wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// On a processor.
    pub busy: Duration,
    /// Ready to run, while others had the processors.
    pub queued: Duration,
}

impl ThreadId {
    /// The calling thread.
    pub fn current() -> Self {
        // SAFETY: takes nothing, cannot fail, touches no memory.
        Self(unsafe { libc::gettid() })
    }

    /// Its time so far; zero once it has ended, and where the kernel does not count.
    pub fn time(self) -> ThreadTime {
        let path = format!("/proc/self/task/{}/schedstat", self.0);
        std::fs::read_to_string(path).map(|text| parse(&text)).unwrap_or_default()
    }
}

/// Nanoseconds on a processor, nanoseconds waiting for one, time slices.
fn parse(text: &str) -> ThreadTime {
    let mut fields = text.split_whitespace().map(|field| field.parse().unwrap_or(0));
    let mut next = || Duration::from_nanos(fields.next().unwrap_or(0));
    ThreadTime { busy: next(), queued: next() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Instant;

    #[test]
    fn work_counts_and_sleep_does_not() {
        let (told, id) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let worker = std::thread::spawn(move || {
            told.send(ThreadId::current()).unwrap();
            let until = Instant::now() + Duration::from_millis(200);
            while Instant::now() < until {}
            told.send(ThreadId::current()).unwrap();
            wait.recv().unwrap();
        });
        let before = id.recv().unwrap().time();
        let thread = id.recv().unwrap();
        let time = thread.time();
        std::thread::sleep(Duration::from_millis(300));
        let later = thread.time();
        go.send(()).unwrap();
        worker.join().unwrap();
        if !need::have(time != ThreadTime::default(), "this kernel has no schedstat") {
            return;
        }
        let all = |t: ThreadTime| t.busy + t.queued;
        assert!(all(time).saturating_sub(all(before)) >= Duration::from_millis(100), "{time:?}");
        assert!(all(later).saturating_sub(all(time)) < Duration::from_millis(150), "{later:?}");
    }

    #[test]
    fn what_the_kernel_does_not_say_is_zero() {
        assert_eq!(parse(""), ThreadTime::default());
        let time = parse("1500 70 3\n");
        assert_eq!((time.busy.as_nanos(), time.queued.as_nanos()), (1500, 70));
    }
}

//! What a process inherits of signals from its starter.

/// Signals that nohup(1), scripts and service managers are known to leave ignored. SIGPIPE is not
/// among them: the Rust runtime ignores it on purpose, and gives it back to the programs we start.
const INHERITED: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGCHLD,
    libc::SIGALRM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Gives signals that our starter ignores their default meaning back. To be called first of all,
/// before there are threads.
///
/// An ignored signal stays ignored in every program that is started, and a shell cannot even
/// `trap` it: commands of a server under nohup would never hear that their client is gone.
pub fn forget_ignored_signals() {
    for signal in INHERITED {
        // SAFETY: no handler of ours is installed yet, and SIG_DFL runs none.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// The same for SIGCHLD alone: while it is ignored, nobody can wait for a child.
pub fn hear_of_children() {
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Whether our starter wants this signal ignored.
pub fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set, and `now` lives through the call.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_ignores_sigpipe_and_nothing_ignores_sigsegv() {
        assert!(is_ignored(libc::SIGPIPE));
        assert!(!is_ignored(libc::SIGSEGV) && !is_ignored(-1));
    }
}

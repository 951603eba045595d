//! Scheduling of the calling thread, for those that must be on time.

use std::io;

/// Asks for timers to the microsecond (the default slack is 50).
pub fn precise_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes an integer and no pointers.
    let rc = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Puts the calling thread before all ordinary ones (SCHED_FIFO, lowest priority; needs
/// CAP_SYS_NICE). Its children do not inherit this.
pub fn realtime() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `param` outlives the call.
    let rc = unsafe { libc::sched_setscheduler(0, policy, &param) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

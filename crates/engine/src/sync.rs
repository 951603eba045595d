//! Locks of the pipeline: the standard library's, or shuttle's when the scheduler is under test.
//!
//! A thread that panics while holding one of these ends its connection anyway, so a poisoned
//! lock is taken over instead of spreading the panic.

#[cfg(feature = "shuttle")]
use shuttle::sync as base;
#[cfg(not(feature = "shuttle"))]
use std::sync as base;

use base::atomic::{AtomicUsize, Ordering};
pub(crate) use base::{Arc, MutexGuard};
use std::sync::PoisonError;

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(base::Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(base::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guard if nobody holds the lock now.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition that threads wait for. The standard library's makes a system call for every
/// notification, heard or not; here one that nobody waits for costs a load.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    condvar: base::Condvar,
    /// Changed only while the lock that belongs to the condition is held.
    waiting: AtomicUsize,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Waits until `ready`.
    pub(crate) fn wait_until<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut ready: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while !ready(&mut guard) {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            guard = self.condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        guard
    }

    /// The state changed; to be called after it did, the lock held or let go.
    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.condvar.notify_all();
        }
    }
}

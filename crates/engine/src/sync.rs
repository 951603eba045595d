//! Locks of the pipeline: the standard library's, or shuttle's when the scheduler is under test.
//!
//! A thread that panics while holding one of these ends its connection anyway, so a poisoned
//! lock is taken over instead of spreading the panic.

#[cfg(feature = "shuttle")]
use shuttle::sync as base;
#[cfg(not(feature = "shuttle"))]
use std::sync as base;

pub(crate) use base::{Arc, Condvar, MutexGuard};
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

/// Waits on `condvar` until `ready`.
pub(crate) fn wait_until<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    mut ready: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    while !ready(&mut guard) {
        guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    guard
}

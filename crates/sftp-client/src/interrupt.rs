//! SIGINT: the first one stops a command, a second one the program.

use crate::failure::{Failure, Result};
use crate::transfer::Interrupt;
use signal_hook::SigId;
use signal_hook::consts::SIGINT;
use signal_hook::flag::{register, register_conditional_shutdown};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Exit code of a program that SIGINT ends, as a shell tells it.
const INTERRUPTED: i32 = 130;

/// What SIGINT does.
pub(crate) struct Interrupts {
    seen: Interrupt,
    actions: Vec<SigId>,
}

impl Interrupts {
    /// From now on SIGINT is noted.
    pub(crate) fn watch() -> Result<Self> {
        let mut interrupts = Self { seen: Interrupt::default(), actions: Vec::new() };
        interrupts.heed()?;
        Ok(interrupts)
    }

    /// Set while a command is to stop.
    pub(crate) fn seen(&self) -> Interrupt {
        Arc::clone(&self.seen)
    }

    pub(crate) fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.seen.store(false, Ordering::Relaxed);
    }

    /// SIGINT means nothing here: the terminal sends it to a child of ours as well, which it is
    /// meant for. The child gets the default action with its program.
    pub(crate) fn ignore(&mut self) {
        for action in self.actions.drain(..) {
            signal_hook::low_level::unregister(action);
        }
    }

    /// SIGINT is noted. The order counts: the second one finds the mark of the first.
    pub(crate) fn heed(&mut self) -> Result<()> {
        self.clear();
        let end = register_conditional_shutdown(SIGINT, INTERRUPTED, self.seen());
        let mark = end.and_then(|end| {
            self.actions.push(end);
            register(SIGINT, self.seen())
        });
        self.actions.push(mark.map_err(|error| Failure::local("SIGINT", &error))?);
        Ok(())
    }
}

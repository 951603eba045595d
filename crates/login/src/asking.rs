//! Asking: whether the user is being asked something, by us or by what leads to a host. Whoever draws
//! on the terminal meanwhile would hide the question.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Questions that are open, or may be.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A question is open while this lives.
pub(crate) struct Asking(());

impl Asking {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether some login of this process asks the user something, or a proxy on its way may.
pub fn is_asking() -> bool {
    OPEN.load(Ordering::SeqCst) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_open_until_it_is_answered() {
        let asking = Asking::new();
        assert!(is_asking());
        drop(asking);
        // Tests of prompts beside this one ask, too, but not for long.
        assert!((0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            !is_asking()
        }));
    }
}

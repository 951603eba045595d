//! Login limit: how many of this process may be on their way in at once. A server drops connections
//! that have not logged in once they are more than MaxStartups says: from 10 on at random (sshd's
//! 10:30:100), so at most 8 of ours are, and those that start together start a little apart.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Connections before login at one time.
const MOST: usize = 8;

/// The longest that one of several waits before it starts.
const JITTER: Duration = Duration::from_millis(50);

static INSIDE: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// A place among those who are on their way in, given back when dropped.
pub(crate) struct Place(());

/// Waits for a place.
pub(crate) fn enter() -> Place {
    let inside = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut inside =
        LEFT.wait_while(inside, |inside| *inside >= MOST).unwrap_or_else(PoisonError::into_inner);
    let alone = *inside == 0;
    *inside += 1;
    drop(inside);
    let place = Place(());
    if !alone {
        std::thread::sleep(jitter());
    }
    place
}

impl Drop for Place {
    fn drop(&mut self) {
        *INSIDE.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LEFT.notify_one();
    }
}

fn jitter() -> Duration {
    let [byte] = crypt::random_array::<1>();
    JITTER * u32::from(byte) / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn at_most_eight_are_on_their_way_in() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let _place = enter();
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    std::thread::sleep(Duration::from_millis(60));
                    now.fetch_sub(1, SeqCst);
                });
            }
        });
        assert!((2..=MOST).contains(&most.into_inner()));
    }
}

//! A global allocator that counts, for tests that assert how much is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator, and how often the whole process asked it for memory.
#[derive(Debug)]
pub struct Counting {
    asked: AtomicU64,
}

impl Counting {
    /// For a `#[global_allocator]`.
    #[allow(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> Self {
        Self { asked: AtomicU64::new(0) }
    }

    /// Allocations and growths so far, on all threads.
    pub fn count(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is the system allocator's with the same arguments; counting touches an
// atomic that is part of this value, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.ask();
        // SAFETY: the caller's promises are the ones System asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.ask();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.ask();
        // SAFETY: as above; `memory` is System's, as all of ours is.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

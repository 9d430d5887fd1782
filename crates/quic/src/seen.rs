//! What a stack tells its controller, and nobody else.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Counted while the controller of a connection learns of it.
#[derive(Default, Debug)]
pub struct Seen {
    /// Reports of marks.
    pub marked: AtomicU32,
    /// The last round trip that was measured, ns; 0: none.
    round_trip: AtomicU64,
    /// Nobody has asked for it yet.
    is_new: AtomicBool,
}

impl Seen {
    /// A packet is acknowledged so long after it was sent; the last of several gives the round trip.
    pub fn acknowledged(&self, took: Duration) {
        self.round_trip.store(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        self.is_new.store(true, Relaxed);
    }

    /// Whether a round trip was measured: until then the stacks take one for granted.
    pub fn has_measured(&self) -> bool {
        self.round_trip.load(Relaxed) > 0
    }

    /// The last round trip that was measured since this was asked last, ns.
    pub fn take_sample(&self) -> Option<u64> {
        self.is_new.swap(false, Relaxed).then(|| self.round_trip.load(Relaxed))
    }
}

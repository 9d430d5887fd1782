//! Where threads wait for each other, for less time than a system call takes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// So often a thread looks before it lets others run, where each has a processor.
const LOOKS: usize = 1000;

/// A barrier of so many threads, to be used again and again.
pub(super) struct Barrier {
    threads: usize,
    looks: usize,
    here: AtomicUsize,
    rounds: AtomicUsize,
    /// A thread has panicked, and will not come.
    broken: AtomicBool,
}

/// Tells the others if its thread panics.
pub(super) struct Member<'a>(&'a Barrier);

impl Barrier {
    pub(super) fn new(threads: usize) -> Self {
        let (here, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let looks = if threads <= processors { LOOKS } else { 0 };
        Self { threads, looks, here, rounds, broken: AtomicBool::new(false) }
    }

    /// One of its threads.
    pub(super) fn member(&self) -> Member<'_> {
        Member(self)
    }
}

impl Member<'_> {
    /// Waits until all threads have come; what each did before is seen by all behind it.
    pub(super) fn wait(&self) {
        let Barrier { threads, looks: most, here, rounds, broken } = self.0;
        let round = rounds.load(Ordering::Acquire);
        if here.fetch_add(1, Ordering::AcqRel) + 1 == *threads {
            here.store(0, Ordering::Relaxed);
            rounds.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut looks = 0;
        while rounds.load(Ordering::Acquire) == round {
            looks += 1;
            if looks < *most {
                std::hint::spin_loop();
            } else {
                assert!(!broken.load(Ordering::Relaxed), "another part of the run has failed");
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

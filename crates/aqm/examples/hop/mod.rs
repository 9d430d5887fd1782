//! What relay and VPN share: packets wait in a queue, and leave it at the rate of a link.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use aqm::{
    AnyQdisc, CATALOG, Cause, Cx, Ecn, Env, FlowKey, Limit, Meta, Outlet, Qdisc as _, Rate, Rng,
};

/// Packets that there is room for.
const ROOM: u32 = 1000;

/// A queue between a thread that puts packets in and one that sends them.
pub(crate) struct Hop {
    way: Way,
    rate: Rate,
    began: Instant,
}

enum Way {
    /// What programs have without a discipline.
    Channel(mpsc::SyncSender<Vec<u8>>, Mutex<mpsc::Receiver<Vec<u8>>>),
    /// A discipline; the thread that sends waits for arrivals.
    Managed(Mutex<Managed>, Condvar),
}

struct Managed {
    queue: AnyQdisc<u32>,
    rng: Rng,
    bytes: Slots,
}

impl Hop {
    /// `queue` is `channel` or the name of a discipline.
    ///
    /// # Errors
    /// Which names there are.
    pub(crate) fn new(queue: &str, rate: Rate) -> Result<Self, String> {
        let way = if queue == "channel" {
            let (sender, receiver) = mpsc::sync_channel(ROOM as usize);
            Way::Channel(sender, Mutex::new(receiver))
        } else {
            let limit = Limit::packets(ROOM.into()).expect("room for at least one packet");
            // Whoever foresees the seed foresees which flows share a queue: draw it at random.
            let mut rng = Rng::new(1, 0);
            let queue = AnyQdisc::build(queue, &[], &Env::new(limit, rate), &mut rng)
                .map_err(|error| format!("{queue}: {error:?}; there are channel, {}", names()))?;
            Way::Managed(
                Mutex::new(Managed { queue, rng, bytes: Slots::default() }),
                Condvar::new(),
            )
        };
        Ok(Self { way, rate, began: clock() })
    }

    /// A packet arrives.
    pub(crate) fn put(&self, flow: u64, ecn: Ecn, bytes: Vec<u8>) {
        match &self.way {
            Way::Channel(sender, _) => drop(sender.try_send(bytes)), // without room it is lost
            Way::Managed(managed, arrived) => {
                let len = bytes.len() as u32;
                lock(managed).call(self.began, |queue, cx, slots| {
                    let meta = Meta { flow: FlowKey(flow), len, ecn, ..Meta::default() };
                    queue.enqueue(meta, slots.keep(bytes), cx, slots);
                });
                arrived.notify_one();
            }
        }
    }

    /// Sends packets as the link takes them, for ever. `send` is told whether to mark the packet.
    pub(crate) fn run(&self, mut send: impl FnMut(&mut [u8], bool)) -> ! {
        let mut free = clock();
        loop {
            let (mut bytes, mark) = self.take();
            send(&mut bytes, mark);
            // A thread sleeps longer than it wants: up to a millisecond of that is made up for.
            let earliest = clock() - Duration::from_millis(1);
            let busy = self.rate.transmission(bytes.len() as u64).as_nanos();
            free = free.max(earliest) + Duration::from_nanos(busy);
            sleep(free.saturating_duration_since(clock()));
        }
    }

    /// Waits for the next packet.
    fn take(&self) -> (Vec<u8>, bool) {
        match &self.way {
            Way::Channel(_, receiver) => {
                let bytes = lock(receiver).recv().expect("this hop has the sender");
                (bytes, false)
            }
            Way::Managed(managed, arrived) => {
                let mut managed = lock(managed);
                loop {
                    if let Some(next) = managed.call(self.began, Managed::next) {
                        return next;
                    }
                    // A shaper may hold packets back: then there is a time to ask again.
                    let now = clock().duration_since(self.began).as_nanos() as u64;
                    let held = managed.queue.ready_at().map(|at| at.as_nanos().saturating_sub(now));
                    let wait = Duration::from_nanos(held.unwrap_or(1_000_000_000).max(1));
                    let woken = arrived.wait_timeout(managed, wait);
                    managed = woken.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

impl Managed {
    /// Runs the timers that are due, then `act`.
    fn call<T>(
        &mut self,
        began: Instant,
        act: impl FnOnce(&mut AnyQdisc<u32>, &mut Cx<'_>, &mut Slots) -> T,
    ) -> T {
        let now = aqm::Instant::from_nanos(clock().duration_since(began).as_nanos() as u64);
        let Self { queue, rng, bytes } = self;
        while let Some(due) = queue.poll_at().filter(|due| *due <= now) {
            queue.on_timer(&mut Cx { now: due, rng }, bytes);
        }
        act(queue, &mut Cx { now, rng }, bytes)
    }

    fn next(
        queue: &mut AnyQdisc<u32>,
        cx: &mut Cx<'_>,
        slots: &mut Slots,
    ) -> Option<(Vec<u8>, bool)> {
        let (meta, slot) = queue.dequeue(cx, slots)?;
        Some((slots.give(slot), meta.ecn == Ecn::Ce))
    }
}

/// The bytes of queued packets: the queue holds their places.
#[derive(Default)]
struct Slots {
    packets: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Slots {
    fn keep(&mut self, bytes: Vec<u8>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Vec::new());
            self.packets.len() as u32 - 1
        });
        self.packets[slot as usize] = bytes;
        slot
    }

    fn give(&mut self, slot: u32) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.packets[slot as usize])
    }
}

/// A dropped packet, which need not be the one that arrives, gives its place back.
impl Outlet<u32> for Slots {
    fn dropped(&mut self, _: &Meta, slot: u32, _: Cause, _: aqm::Instant) {
        self.give(slot);
    }
    fn marked(&mut self, _: &Meta, _: &u32, _: Cause, _: aqm::Instant) {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names() -> String {
    CATALOG.iter().map(|about| about.name).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::disallowed_methods, reason = "a program with real packets reads a clock")]
fn clock() -> Instant {
    Instant::now()
}

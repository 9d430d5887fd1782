//! A queue at steady state: the link is busy, the queue holds its length, each packet that is sent
//! is replaced. Shared by the benchmark (time) and the example (instructions).
//!
//! The queue is driven as the simulator does it: chosen by name once, then called as what it is
//! ([`Visitor`]). What the driving itself costs is measured with a queue that only stores packets,
//! [`Steady::NOTHING`], and is to be subtracted.

use std::hint::black_box;

use aqm::{
    AnyQdisc, Backlog, Counters, Cx, Duration, Ecn, Env, FlowKey, Instant, Limit, Meta, Outlet,
    Qdisc, Rate, Rng, State, Visitor,
};

/// A queue of 200 packets behind 45 Mbit/s, the bottleneck of the BLUE paper.
pub(crate) struct Steady {
    queue: Queue,
    drive: Drive,
}

enum Queue {
    /// One of the catalogue.
    Any(AnyQdisc<u32>),
    Slots(Box<Slots>),
}

/// The load of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// The queue stays at 40 % of the buffer: between RED's thresholds.
    Partial,
    /// The buffer is full, and two packets arrive for each that is sent.
    Overload,
    /// The same with 1000 flows in place of 100, after a longer time.
    Crowd,
    /// The same with three packets for each that is sent: less [`Load::Crowd`], this is the cost of
    /// an arrival that is not let through.
    Crush,
}

impl Load {
    /// All loads with their names.
    pub(crate) const ALL: [(&str, Self); 4] = [
        ("partial", Self::Partial),
        ("overload", Self::Overload),
        ("crowd", Self::Crowd),
        ("crush", Self::Crush),
    ];

    /// Packets that arrive for each that is sent.
    fn arrivals(self) -> u32 {
        match self {
            Self::Partial => 1,
            Self::Overload | Self::Crowd => 2,
            Self::Crush => 3,
        }
    }
}

impl Steady {
    /// The name of the queue that does nothing.
    pub(crate) const NOTHING: &str = "nothing";

    /// The queue `name` with `settings` over its defaults, filled as `load` says, by so many `flows`
    /// in place of the load's, 7 at the least.
    pub(crate) fn new(
        name: &str,
        settings: &[(&str, &str)],
        load: Load,
        flows: Option<u64>,
    ) -> Self {
        let mut rng = Rng::new(1, 0);
        let now = Instant::ZERO;
        let limit = Limit::packets(200).expect("within the range of buffers");
        let env = Env { now, ..Env::new(limit, Rate::from_mbit(45)) };
        let queue = match name {
            Self::NOTHING => Queue::Slots(Box::default()),
            _ => Queue::Any(
                AnyQdisc::build(name, settings, &env, &mut rng).expect("a queue that can be"),
            ),
        };
        let (target, of_load, settling) = match load {
            Load::Partial => (80, 100, 10_000),
            Load::Overload => (200, 100, 10_000),
            Load::Crowd | Load::Crush => (200, 1000, 200_000),
        };
        let flows = flows.unwrap_or(of_load);
        let drive = Drive { rng, now, flow: 0, flows, load };
        let mut steady = Self { queue, drive };
        steady.visit(Fill(target));
        // Averages and probabilities settle.
        steady.packets(settling.max(2 * flows));
        steady
    }

    /// So many packets are sent, and replaced.
    #[inline(never)]
    pub(crate) fn packets(&mut self, n: u64) {
        self.visit(Packets(n));
    }

    /// Its signals now.
    pub(crate) fn signals(&mut self) -> Vec<(&'static str, f64)> {
        let mut signals = Vec::new();
        self.visit(Signals(&mut signals));
        signals
    }

    fn visit(&mut self, work: impl Work) {
        let visit = Visit { drive: &mut self.drive, work };
        match &mut self.queue {
            Queue::Any(queue) => queue.visit(visit),
            Queue::Slots(slots) => visit.visit(&mut **slots),
        }
    }
}

/// What the world does to a queue.
struct Drive {
    rng: Rng,
    now: Instant,
    flow: u64,
    flows: u64,
    load: Load,
}

impl Drive {
    /// One packet is sent, and others arrive.
    #[inline(always)]
    fn packet(&mut self, queue: &mut impl Qdisc<u32>) {
        self.now += Duration::from_nanos(177_778);
        if queue.poll_at().is_some_and(|at| at <= self.now) {
            queue.on_timer(&mut self.cx(), &mut ());
        }
        black_box(queue.dequeue(&mut self.cx(), &mut ()));
        for _ in 0..self.load.arrivals() {
            self.arrive(queue);
        }
    }

    #[inline(always)]
    fn arrive(&mut self, queue: &mut impl Qdisc<u32>) {
        self.flow += 7;
        if self.flow >= self.flows {
            self.flow -= self.flows;
        }
        let (flow, len) = black_box((FlowKey(self.flow), 1000));
        let meta = Meta { flow, len, ecn: Ecn::Ect0, arrived: self.now };
        let packet = self.flow as u32;
        queue.enqueue(meta, packet, &mut self.cx(), &mut ());
    }

    #[inline(always)]
    fn cx(&mut self) -> Cx<'_> {
        Cx { now: self.now, rng: &mut self.rng }
    }
}

/// Something to do with a queue.
trait Work {
    fn on(self, drive: &mut Drive, queue: &mut impl Qdisc<u32>);
}

struct Visit<'a, W> {
    drive: &'a mut Drive,
    work: W,
}

impl<W: Work> Visitor<u32> for Visit<'_, W> {
    #[inline]
    fn visit(self, queue: &mut impl Qdisc<u32>) {
        self.work.on(self.drive, queue);
    }
}

/// Arrivals until so many packets are queued, which may take more than as many.
struct Fill(u32);

impl Work for Fill {
    #[inline]
    fn on(self, drive: &mut Drive, queue: &mut impl Qdisc<u32>) {
        while queue.backlog().packets < self.0 {
            drive.arrive(queue);
        }
    }
}

struct Packets(u64);

impl Work for Packets {
    #[inline]
    fn on(self, drive: &mut Drive, queue: &mut impl Qdisc<u32>) {
        for _ in 0..self.0 {
            // Nothing of the queue stays in registers from one packet to the next.
            let (drive, queue) = black_box((&mut *drive, &mut *queue));
            drive.packet(queue);
        }
    }
}

struct Signals<'a>(&'a mut Vec<(&'static str, f64)>);

impl Work for Signals<'_> {
    fn on(self, drive: &mut Drive, queue: &mut impl Qdisc<u32>) {
        queue.observe(drive.now, &mut |name, value| self.0.push((name, value)));
        self.0.push(("queued", f64::from(queue.backlog().packets)));
    }
}

/// A ring that is always full, and gives the packet that came longest ago.
#[derive(Default)]
struct Slots {
    packets: [(Meta, u32); 32],
    next: usize,
    counters: Counters,
}

impl Qdisc<u32> for Slots {
    #[inline]
    fn enqueue(&mut self, meta: Meta, packet: u32, _: &mut Cx<'_>, _: &mut impl Outlet<u32>) {
        self.packets[self.next] = (meta, packet);
        self.next = (self.next + 1) % 32;
    }
    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<u32>) -> Option<(Meta, u32)> {
        Some(self.packets[self.next])
    }
    fn backlog(&self) -> Backlog {
        Backlog { packets: u32::MAX, bytes: 0 }
    }
    fn counters(&self) -> &Counters {
        &self.counters
    }
    fn poll_at(&self) -> Option<Instant> {
        None
    }
    fn on_timer(&mut self, _: &mut Cx<'_>, _: &mut impl Outlet<u32>) {}
    fn observe(&self, _: Instant, _: &mut dyn FnMut(&'static str, f64)) {}
    fn state(&self) -> State {
        State::default()
    }
}

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
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Packets that the queue holds at the beginning.
    queued: u32,
    /// Packets that arrive for each that is sent.
    arrivals: u32,
    /// Flows that send in turn.
    flows: u64,
    /// Packets that are sent before anything is measured.
    settling: u64,
}

impl Load {
    /// The queue stays at 40 % of the buffer: between RED's thresholds.
    pub(crate) const PARTIAL: Self = Self { queued: 80, arrivals: 1, flows: 100, settling: 10_000 };
    /// The buffer is full, and two packets arrive for each that is sent.
    pub(crate) const OVERLOAD: Self = Self { queued: 200, arrivals: 2, ..Self::PARTIAL };
    /// The same with 1000 flows in place of 100, after a longer time.
    pub(crate) const CROWD: Self = Self { flows: 1000, settling: 200_000, ..Self::OVERLOAD };
    /// The same with three packets for each that is sent: less [`Load::CROWD`], this is the cost of
    /// an arrival that is not let through.
    pub(crate) const CRUSH: Self = Self { arrivals: 3, ..Self::CROWD };

    /// A load by its name, with `:` and another number of flows behind it or not.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let (name, flows) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let load = match name {
            "partial" => Self::PARTIAL,
            "overload" => Self::OVERLOAD,
            "crowd" => Self::CROWD,
            "crush" => Self::CRUSH,
            _ => return None,
        };
        let Some(flows) = flows else { return Some(load) };
        let flows = flows.parse().ok().filter(|&flows| flows > 0)?;
        Some(Self { flows, settling: load.settling.max(2 * flows), ..load })
    }
}

impl Steady {
    /// The name of the queue that does nothing.
    pub(crate) const NOTHING: &str = "nothing";

    /// The queue `name` with `settings` over its defaults, filled as `load` says.
    pub(crate) fn new(name: &str, settings: &[(&str, &str)], load: Load) -> Self {
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
        let drive = Drive { rng, now, flow: 0, step: 7 % load.flows, load };
        let mut steady = Self { queue, drive };
        steady.visit(Fill(load.queued));
        // Averages and probabilities settle.
        steady.packets(load.settling);
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
    /// From the flow of a packet to that of the next.
    step: u64,
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
        for _ in 0..self.load.arrivals {
            self.arrive(queue);
        }
    }

    #[inline(always)]
    fn arrive(&mut self, queue: &mut impl Qdisc<u32>) {
        self.flow += self.step;
        if self.flow >= self.load.flows {
            self.flow -= self.load.flows;
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

//! A queue at steady state: the link is busy, the queue holds its length, each packet that is sent
//! is replaced. Shared by the benchmark (time) and the example (instructions).

use aqm::{AnyQdisc, Backlog, Duration, Ecn, Env, FlowKey, Instant, Limit, Meta, Qdisc, Rate, Rng};

/// A queue of 200 packets behind 45 Mbit/s, the bottleneck of the BLUE paper.
pub(crate) struct Steady {
    queue: AnyQdisc<u32>,
    rng: Rng,
    now: Instant,
    flow: u64,
}

/// The load of a run.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// The queue stays at 40 % of the buffer: between RED's thresholds.
    Partial,
    /// The buffer is full, and two packets arrive for each that is sent.
    Overload,
}

impl Steady {
    /// The queue `name` with `settings` over its defaults, filled as `load` says.
    pub(crate) fn new(name: &str, settings: &[(&str, &str)], load: Load) -> Self {
        let mut rng = Rng::new(1, 0);
        let now = Instant::ZERO;
        let limit = Limit::packets(200).expect("within the range of buffers");
        let env = Env { now, limit, rate: Rate::from_mbit(45), mean_packet: 1000 };
        let queue = AnyQdisc::build(name, settings, &env, &mut rng).expect("a queue that can be");
        let mut steady = Self { queue, rng, now, flow: 0 };
        let target = match load {
            Load::Partial => 80,
            Load::Overload => 200,
        };
        while steady.backlog().packets < target {
            steady.arrive();
        }
        // Averages and probabilities settle.
        (0..20_000).for_each(|_| steady.packet(load));
        steady
    }

    /// One packet is sent, and one or two arrive.
    #[inline]
    pub(crate) fn packet(&mut self, load: Load) {
        self.now += Duration::from_nanos(177_778);
        let mut cx = aqm::Cx { now: self.now, rng: &mut self.rng };
        if self.queue.poll_at().is_some_and(|at| at <= self.now) {
            self.queue.on_timer(&mut cx, &mut ());
        }
        std::hint::black_box(self.queue.dequeue(&mut cx, &mut ()));
        self.arrive();
        if matches!(load, Load::Overload) {
            self.arrive();
        }
    }

    /// What is queued.
    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    #[inline]
    fn arrive(&mut self) {
        self.flow = (self.flow + 7) % 100;
        let flow = FlowKey(self.flow);
        let meta = Meta { flow, len: 1000, ecn: Ecn::Ect0, arrived: self.now };
        let mut cx = aqm::Cx { now: self.now, rng: &mut self.rng };
        self.queue.enqueue(meta, self.flow as u32, &mut cx, &mut ());
    }
}

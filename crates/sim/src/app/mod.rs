//! What applications give to a transport.

pub(crate) mod web;

use std::sync::Arc;

use aqm::Rng;

/// The distribution of the lengths of on and off periods.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Periods {
    /// Pareto with this shape (> 1): the mean fixes the least length, mean·(shape − 1)/shape.
    Pareto(f64),
    /// Exponential.
    Exponential,
}

impl Periods {
    /// A length in ns with mean `mean` ns.
    pub fn draw(self, mean: u64, rng: &mut Rng) -> u64 {
        let u = 1.0 - rng.uniform(); // (0, 1]
        let ns = match self {
            Self::Pareto(shape) => mean as f64 * (shape - 1.0) / shape * libm::pow(u, -1.0 / shape),
            Self::Exponential => -(mean as f64) * libm::log(u),
        };
        ns as u64
    }
}

/// What becomes of data that was not sent when an on period ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unsent {
    /// It is withdrawn: while off, nothing new is sent.
    Withdraw,
    /// It stays in the send buffer.
    Backlog,
}

/// What the flows of a group have to send.
#[derive(Clone, PartialEq, Debug)]
pub enum App {
    /// More than can ever be sent.
    Infinite,
    /// So many packets, then the end.
    Finite {
        /// Packets.
        packets: u32,
    },
    /// Periods of sending and of silence.
    OnOff {
        /// Distribution of their lengths.
        periods: Periods,
        /// Mean length of an on period, ns.
        on: u64,
        /// Mean length of an off period, ns.
        off: u64,
        /// Time between packets while on, ns; 0 for as fast as the transport can.
        gap: u64,
        /// What becomes of data not sent.
        unsent: Unsent,
    },
    /// Datagrams only: periods of one fixed length of sending and of silence.
    Periodic {
        /// Length of an on period, ns.
        on: u64,
        /// Length of an off period, ns.
        off: u64,
    },
    /// Steps: the time since the flow's start (ns), and the time between packets from then on, 0 for as fast
    /// as the transport can, [`NOTHING`] for none.
    Schedule(Arc<[(u64, u64)]>),
    /// Web sessions: requests for pages of objects.
    Web(Objects),
}

/// In place of a time between packets: there are none.
pub const NOTHING: u64 = u64::MAX;

/// What a web session fetches.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Objects {
    /// Objects of a page.
    pub number: u32,
    /// Connections at a time.
    pub connections: u16,
    /// Mean size of an object, thousandths of a packet.
    pub packets: u64,
    /// Shape of the sizes' Pareto distribution; without it all are of the mean size.
    pub shape: Option<f64>,
    /// Mean time (exponential) between pages, ns.
    pub think: u64,
    /// Whether a connection begins with a handshake, before the request.
    pub handshake: bool,
}

impl App {
    /// Whether its flows have an [`OnOff`].
    pub(crate) fn comes_and_goes(&self) -> bool {
        matches!(self, Self::OnOff { .. } | Self::Schedule(_))
    }

    /// The first time from `time` on (ns since the flow's start) at which a datagram may be sent.
    pub fn next_on(&self, time: u64) -> u64 {
        let &Self::Periodic { on, off } = self else { return time };
        let within = time % (on + off);
        if within < on { time } else { time - within + on + off }
    }
}

/// An application's state in an on/off flow, or one with a schedule.
#[derive(Clone, Debug)]
pub struct OnOff {
    rng: Rng,
    on: bool,
    /// Time between packets, ns; as in [`App::Schedule`].
    gap: u64,
    /// With a schedule: when it began, ns, and its next step.
    began: u64,
    next: usize,
    /// Another time between packets, up to the end of the present step, ns.
    instead: Option<(u64, u64)>,
    /// When the present period ends, ns.
    ends: u64,
    /// When the next packet is given while on, ns.
    gives: u64,
    /// While off: time on that is left until then, ns.
    left: u64,
}

/// What an on/off application does at an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Gives so many packets.
    Offer(u32),
    /// Withdraws what was not sent.
    Withdraw,
    /// It is no on/off application.
    Nothing,
}

impl OnOff {
    /// An application that has not begun.
    pub fn new(rng: Rng) -> Self {
        Self {
            rng,
            on: false,
            gap: 0,
            began: 0,
            next: 0,
            instead: None,
            ends: 0,
            gives: u64::MAX,
            left: 0,
        }
    }

    /// Time between packets, ns; as in [`App::Schedule`].
    pub fn gap(&self) -> u64 {
        self.gap
    }

    /// From `now` (ns) to the end of the present step of a schedule it has another time between packets.
    pub(crate) fn change(&mut self, now: u64, gap: u64) {
        let ends = self.instead.map_or(self.ends, |(_, ends)| ends);
        (self.instead, self.ends) = (Some((gap, ends)), now);
    }

    /// The next step of a schedule, or another time between packets, begins at `now`.
    fn begin(&mut self, now: u64, steps: &[(u64, u64)]) -> Step {
        if self.next == 0 {
            self.began = now;
        }
        if let Some((gap, ends)) = self.instead.take() {
            (self.gap, self.ends) = (gap, ends);
        } else {
            self.gap = steps.get(self.next).map_or(NOTHING, |step| step.1);
            self.next += 1;
            let next = steps.get(self.next);
            self.ends = next.map_or(u64::MAX, |step| self.began.saturating_add(step.0));
        }
        self.gives = if matches!(self.gap, 0 | NOTHING) { u64::MAX } else { now };
        if self.gap == 0 { Step::Offer(u32::MAX) } else { Step::Withdraw }
    }

    /// When the present period ends, ns.
    pub fn ends(&self) -> u64 {
        self.ends
    }

    /// When the next packet is given, if the period does not end before, ns.
    pub fn gives(&self) -> u64 {
        self.gives
    }

    /// The packets that were given up to `now` and not taken yet: a sender that has others to send
    /// needs no event for each.
    pub fn given(&mut self, now: u64) -> u32 {
        let now = now.min(self.ends.saturating_sub(1));
        if self.gives > now {
            return 0;
        }
        let packets = (now - self.gives) / self.gap + 1;
        self.gives += packets * self.gap;
        u32::try_from(packets).unwrap_or(u32::MAX)
    }

    /// Does what is due at `now`; the first call begins an on period.
    pub fn step(&mut self, now: u64, app: &App) -> Step {
        let given = self.given(now);
        let (periods, on, off, gap, unsent) = match *app {
            App::OnOff { periods, on, off, gap, unsent } => (periods, on, off, gap, unsent),
            App::Schedule(_) if self.ends > now => return Step::Offer(given),
            App::Schedule(ref steps) => return self.begin(now, steps),
            _ => return Step::Nothing,
        };
        self.gap = gap;
        if self.ends > now {
            return Step::Offer(given);
        }
        self.left = if self.on { self.gives.saturating_sub(self.ends) } else { self.left };
        self.on = !self.on;
        let mean = if self.on { on } else { off };
        // At least 1 ns, so that time goes on.
        self.ends = now.saturating_add(periods.draw(mean, &mut self.rng).max(1));
        self.gives = u64::MAX;
        match (self.on, gap, unsent) {
            (true, 0, _) => Step::Offer(u32::MAX),
            (true, _, _) => {
                self.gives = now + self.left;
                Step::Offer(self.given(now))
            }
            (false, 0, _) | (false, _, Unsent::Withdraw) => Step::Withdraw,
            (false, _, Unsent::Backlog) => Step::Offer(given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 000 exponential periods: σ of the mean is 1/√n = 0.22 %; the band is 5 σ.
    #[test]
    fn exponential_periods_have_their_mean() {
        let mut rng = Rng::new(2, 0);
        let sum: u64 = (0..200_000).map(|_| Periods::Exponential.draw(1_000_000, &mut rng)).sum();
        assert!((sum as f64 / 2e11 - 1.0).abs() < 0.011, "{sum}");
    }

    /// Pareto of shape 1.5 has infinite variance: compare the median, scale·2^(1/1.5), and the
    /// least length, mean/3.
    #[test]
    fn pareto_periods_have_their_median_and_minimum() {
        let mut rng = Rng::new(2, 1);
        let mut draws: Vec<u64> =
            (0..100_001).map(|_| Periods::Pareto(1.5).draw(3_000_000, &mut rng)).collect();
        draws.sort_unstable();
        assert!(draws[0] >= 1_000_000 && draws[0] < 1_001_000, "{}", draws[0]);
        let median = draws[50_000] as f64 / 1e6;
        assert!((median / 1.5874 - 1.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn periods_alternate_and_withdraw_at_their_end() {
        let app = App::OnOff {
            periods: Periods::Exponential,
            on: 1000,
            off: 1000,
            gap: 0,
            unsent: Unsent::Withdraw,
        };
        let mut state = OnOff::new(Rng::new(1, 1));
        let mut now = 0;
        for i in 0..10 {
            let step = state.step(now, &app);
            assert_eq!(step, if i % 2 == 0 { Step::Offer(u32::MAX) } else { Step::Withdraw });
            assert!(state.ends() > now);
            now = state.ends();
        }
    }

    /// A shape just above 1 draws periods longer than time itself.
    #[test]
    fn periods_beyond_all_time_do_not_overflow() {
        let app = App::OnOff {
            periods: Periods::Pareto(1.0001),
            on: u64::MAX,
            off: u64::MAX,
            gap: 0,
            unsent: Unsent::Withdraw,
        };
        let mut state = OnOff::new(Rng::new(1, 1));
        for _ in 0..100 {
            state.step(u64::MAX / 2, &app);
            assert!(state.ends() > u64::MAX / 2);
            state.ends = 0;
        }
    }

    /// On for 3 ns, off for 2: 0 … 2 and 5 … 7 are on.
    #[test]
    fn fixed_periods_begin_with_the_flow() {
        let app = App::Periodic { on: 3, off: 2 };
        let next: Vec<u64> = (0..8).map(|time| app.next_on(time)).collect();
        assert_eq!(next, [0, 1, 2, 5, 5, 5, 6, 7]);
        assert_eq!(App::Infinite.next_on(4), 4);
    }

    /// Periods on of 1 ms in the mean, a packet each 10 ms of them: time on counts through the periods
    /// off, so that short periods do not exceed the rate.
    #[test]
    fn short_periods_keep_the_rate() {
        let app = App::OnOff {
            periods: Periods::Exponential,
            on: 1_000_000,
            off: 5_000_000,
            gap: 10_000_000,
            unsent: Unsent::Backlog,
        };
        let mut state = OnOff::new(Rng::new(1, 1));
        let (mut now, mut on, mut packets) = (0, 0, 0);
        for _ in 0..200_000 {
            let before = now;
            if let Step::Offer(n) = state.step(now, &app) {
                packets += n;
            }
            now = state.ends().min(state.gives());
            on += if state.on { now - before } else { 0 };
        }
        let share = f64::from(packets) * 1e7 / on as f64;
        assert!((share - 1.0).abs() < 0.001, "{share}");
    }

    /// A packet each 10 ns, as many as can be from 100 ns on, none from 200 ns on; and none at 25 ns for a while.
    #[test]
    fn a_schedule_has_its_rates() {
        let app = App::Schedule([(0, 10), (100, 0), (200, NOTHING)].into());
        let mut state = OnOff::new(Rng::new(1, 1));
        assert_eq!((state.step(5, &app), state.gap(), state.ends()), (Step::Withdraw, 10, 105));
        assert_eq!((state.given(5), state.given(24), state.gives()), (1, 1, 25));
        state.change(25, NOTHING);
        assert_eq!((state.step(25, &app), state.ends(), state.given(60)), (Step::Withdraw, 105, 0));
        state.change(60, 20);
        assert_eq!((state.step(60, &app), state.ends(), state.given(99)), (Step::Withdraw, 105, 2));
        assert_eq!((state.step(105, &app), state.ends()), (Step::Offer(u32::MAX), 205));
        assert_eq!((state.step(205, &app), state.ends()), (Step::Withdraw, u64::MAX));
        assert_eq!((state.given(1_000_000), state.gives()), (0, u64::MAX));
    }

    /// Asked at each packet, at the period's end only, or now and then: the packets are the same.
    #[test]
    fn a_rate_gives_a_packet_a_gap_whenever_it_is_asked() {
        let app = App::OnOff {
            periods: Periods::Exponential,
            on: 1_000_000,
            off: 1000,
            gap: 10,
            unsent: Unsent::Backlog,
        };
        let offered = |every: u64| {
            let mut state = OnOff::new(Rng::new(1, 1));
            let (mut packets, mut now) = (0, 0);
            loop {
                if let Step::Offer(n) = state.step(now, &app) {
                    packets += n;
                }
                if state.gives() == u64::MAX {
                    return (packets, now);
                }
                now = state.ends().min(state.gives().saturating_add(every));
            }
        };
        let (packets, ends) = offered(0);
        assert_eq!(u64::from(packets), ends.div_ceil(10), "0, 10, … before the end");
        for every in [1, 7, 10, 1234, u64::MAX / 2] {
            assert_eq!(offered(every), (packets, ends));
        }
    }
}

//! A queue that is watched decides as if nobody looked, and what is told of it adds up.

use aqm::watched::{Call, Notes, Sight, Watched, Watcher};
use aqm::{
    AnyQdisc, CATALOG, Cause, Counters, Cx, Duration, Ecn, Env, FlowKey, Instant, Limit, Meta,
    Outlet, Qdisc, Rate, Rng,
};

use crate::{Numbered, To};

/// What a queue reported, in its order: packet, cause, whether it was marked.
#[derive(Default, PartialEq, Debug)]
struct Reports(Vec<(u32, Cause, bool)>);

impl Outlet<Numbered> for Reports {
    fn dropped(&mut self, _: &Meta, packet: Numbered, cause: Cause, _: Instant) {
        self.0.push((packet.id, cause, false));
    }
    fn marked(&mut self, _: &Meta, packet: &Numbered, cause: Cause, _: Instant) {
        self.0.push((packet.id, cause, true));
    }
}

/// Adds up what it is told, and keeps what a coin was thrown for.
#[derive(Default)]
struct Adder {
    counters: Counters,
    /// The probability, the coin thrown for it, whether the packet that came was signalled.
    throws: Vec<(f64, f64, bool)>,
    /// The signal that is the probability, if one is.
    probability: &'static str,
}

impl Watcher<Numbered> for Adder {
    fn saw(&mut self, sight: &Sight<'_, Numbered>) {
        let all = &mut self.counters;
        let queued = u64::from(sight.backlog.packets);
        assert_eq!(
            all.arrived.packets,
            all.departed.packets + all.all_dropped().packets + queued,
            "what was queued before"
        );
        match sight.call {
            Call::Arrival(meta, _) => all.arrived.count(meta.len),
            Call::Departure(Some((meta, _))) => all.departed.count(meta.len),
            Call::Departure(None) | Call::Timer => {}
        }
        for signal in sight.signals {
            let by_cause = if signal.marked { &mut all.marked } else { &mut all.dropped };
            by_cause[signal.cause as usize].count(signal.meta.len);
        }
        let coin = sight.coins.iter().find_map(|coin| Some((coin.drawn, coin.p?)));
        if let (Call::Arrival(_, packet), Some((drawn, p))) = (sight.call, coin) {
            if let Some(reported) = sight.before.iter().find(|(name, _)| *name == self.probability)
            {
                assert_eq!(p, reported.1, "the coin is thrown for what is reported");
            }
            let own = sight.signals.iter().find(|s| s.packet == packet);
            // A packet that finds no room is lost whatever its coin says.
            if own.is_none_or(|s| s.cause != Cause::Overflow) {
                self.throws.push((p, drawn, own.is_some()));
            }
        }
    }
}

fn env() -> Env {
    let limit = Limit::packets(50).unwrap();
    Env::new(limit, Rate::from_mbit(8))
}

/// 15 000 packets at 8 to 16 Mb/s for a link of 8 Mb/s. Returns which left, and when, and what was
/// reported.
fn drive(queue: &mut impl Qdisc<Numbered>, rng: &mut Rng) -> (Vec<(u64, u32, Ecn)>, Reports) {
    let (mut left, mut reports) = (Vec::new(), Reports::default());
    let (mut now, mut free, mut traffic) = (Instant::ZERO, Instant::ZERO, Rng::new(9, 9));
    for packet in 0..15_000 {
        now += Duration::from_micros(500 + traffic.below(500) as u64);
        loop {
            let timer = queue.poll_at().filter(|&at| at <= now);
            let busy = queue.backlog().packets > 0 && free <= now;
            match timer.filter(|&at| !busy || at < free) {
                Some(at) => queue.on_timer(&mut Cx { now: at, rng }, &mut To(&mut reports)),
                None if busy => {
                    let sent = queue.dequeue(&mut Cx { now: free, rng }, &mut To(&mut reports));
                    left.extend(sent.map(|(meta, packet)| (free.as_nanos(), packet.id, meta.ecn)));
                    free += Duration::from_millis(1);
                }
                None => break,
            }
        }
        free = free.max(now);
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][packet as usize % 3];
        let meta = Meta { arrived: now, flow: FlowKey(traffic.below(8) as u64), len: 1000, ecn };
        queue.enqueue(meta, Numbered::plain(packet), &mut Cx { now, rng }, &mut To(&mut reports));
    }
    (left, reports)
}

fn built(aqm: &str) -> (AnyQdisc<Numbered>, Rng) {
    let mut rng = Rng::new(4, 2);
    (AnyQdisc::build(aqm, &[], &env(), &mut rng).unwrap(), rng)
}

#[test]
fn whoever_looks_changes_nothing_and_can_count() {
    for entry in CATALOG {
        let (mut plain, mut rng) = built(entry.name);
        let (mut queue, mut watched_rng) = built(entry.name);
        let (mut adder, mut notes) = (Adder::default(), Notes::default());
        let mut watched = Watched::new(&mut queue, &mut adder, &mut notes);
        let seen = drive(&mut watched, &mut watched_rng);
        assert_eq!(drive(&mut plain, &mut rng), seen, "{}", entry.name);
        assert_eq!(rng, watched_rng, "{} drew as much", entry.name);
        assert_eq!(adder.counters, *plain.counters(), "{}", entry.name);
        assert!(plain.counters().all_dropped().packets > 0, "{} dropped nothing", entry.name);
    }
}

/// Of algorithms that throw a coin for each packet and report its probability.
#[test]
fn a_packet_is_signalled_if_its_coin_is_below_the_probability() {
    for (aqm, probability) in [("blue", "p_m"), ("pi", "p_m"), ("pie", "p_d"), ("red", "")] {
        let (mut queue, mut rng) = built(aqm);
        let (mut adder, mut notes) = (Adder { probability, ..Adder::default() }, Notes::default());
        drive(&mut Watched::new(&mut queue, &mut adder, &mut notes), &mut rng);
        let throws = &adder.throws;
        let hits = throws.iter().filter(|(.., hit)| *hit).count();
        assert!(hits > 20 && hits < throws.len(), "{aqm}: {hits} of {}", throws.len());
        for &(p, coin, hit) in throws {
            assert_eq!(coin < p, hit, "{aqm}: p = {p}, coin {coin}");
        }
    }
}

/// The queue of each packet's flow, as it arrived.
#[derive(Default)]
struct Places {
    of: std::collections::HashMap<u32, f64>,
    /// Packets that were driven out as one of another queue came.
    driven_out: u32,
}

fn place<'a>(signals: impl IntoIterator<Item = &'a (&'static str, f64)>) -> f64 {
    signals.into_iter().find(|(name, _)| *name == "flow_queue").unwrap().1
}

impl Watcher<Numbered> for Places {
    fn saw(&mut self, sight: &Sight<'_, Numbered>) {
        let comes = match sight.call {
            Call::Arrival(_, packet) => Some((packet.id, place(sight.after))),
            Call::Departure(_) | Call::Timer => None,
        };
        self.of.extend(comes);
        for (number, signal) in sight.signals.iter().enumerate() {
            let own = self.of[&signal.packet.id];
            assert_eq!(place(sight.after_signal(number)), own, "that of the packet itself");
            self.driven_out += u32::from(comes.is_some_and(|(_, place)| place != own));
        }
    }
}

#[test]
fn what_is_told_of_a_victim_is_of_its_own_queue() {
    for aqm in ["fq-codel", "fq-pie", "sfq", "cake"] {
        let (mut queue, mut rng) = built(aqm);
        let (mut places, mut notes) = (Places::default(), Notes::default());
        drive(&mut Watched::new(&mut queue, &mut places, &mut notes), &mut rng);
        assert!(places.driven_out > 50, "{aqm}: {}", places.driven_out);
    }
}

/// What was drawn for each packet that a departure looks at.
#[derive(Default)]
struct Draws {
    /// Packets that were dropped behind another at one departure, and that were sent.
    behind: u32,
    sent: u32,
}

impl Watcher<Numbered> for Draws {
    fn saw(&mut self, sight: &Sight<'_, Numbered>) {
        let Call::Departure(sent) = sight.call else { return };
        let p = |of: &str| sight.after.iter().find(|(name, _)| *name == of).unwrap().1;
        let expected = |ecn| match ecn {
            Ecn::Ect1 if p("p_c") < 0.25 => p("p_cl"),
            _ => p("p_c"),
        };
        for (number, signal) in sight.signals.iter().enumerate().filter(|(_, s)| !s.marked) {
            let [coin] = sight.drawn_for(number) else { panic!("one is drawn for a packet") };
            assert_eq!(coin.p, Some(expected(signal.meta.ecn)), "that of the packet");
            assert!(coin.drawn < coin.p.unwrap());
            self.behind += u32::from(number > 0);
        }
        if sent.is_some() {
            assert_eq!(sight.drawn_for(sight.signals.len()).len(), 1);
            self.sent += 1;
        }
    }
}

/// PI2 draws once for each packet; one of ECT(1) meets another probability (RFC 9332).
#[test]
fn each_packet_has_its_own_numbers() {
    let mut rng = Rng::new(4, 2);
    let mut queue = AnyQdisc::build("pi2", &[("signals", "random")], &env(), &mut rng).unwrap();
    let (mut draws, mut notes) = (Draws::default(), Notes::default());
    drive(&mut Watched::new(&mut queue, &mut draws, &mut notes), &mut rng);
    assert!(draws.behind > 20 && draws.sent > 1000, "{} {}", draws.behind, draws.sent);
}

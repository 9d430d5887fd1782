use super::dualpi2::DualPi2;
use super::*;
use crate::packet::FlowKey;
use crate::policy::lab::{config, env};
use std::vec::Vec;

/// A dual queue on the bench's link: 1 ms a packet.
struct Bench {
    q: Dual<DualPi2, u32>,
    rng: Rng,
    now: Instant,
    next: u32,
}

impl Bench {
    fn new(packets: u64, settings: &[(&str, &str)]) -> Self {
        let mut rng = Rng::new(3, 0);
        let env = env(packets);
        let q = Dual::new(&config(settings), &env, &mut rng).unwrap();
        Self { q, rng, now: env.now, next: 0 }
    }

    fn arrive(&mut self, ecn: Ecn) {
        let meta = Meta { len: 1000, ecn, flow: FlowKey(1), ..Meta::default() };
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.q.enqueue(meta, self.next, &mut cx, &mut ());
        self.next += 1;
    }

    /// The codepoint of the packet that leaves.
    fn depart(&mut self) -> Option<Ecn> {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.q.dequeue(&mut cx, &mut ()).map(|(meta, _)| meta.ecn)
    }

    fn wait_us(&mut self, us: u64) {
        self.now += Duration::from_micros(us);
        while let Some(due) = self.q.poll_at().filter(|at| *at <= self.now) {
            self.q.on_timer(&mut Cx { now: due, rng: &mut self.rng }, &mut ());
        }
    }

    fn signal(&self, name: &str) -> f64 {
        let mut found = None;
        self.q.observe(self.now, &mut |n, value| {
            if n == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }
}

/// Fig. 3: the last bit of the codepoint.
#[test]
fn packets_go_by_their_codepoint() {
    for (ecn, l4s, any) in [
        (Ecn::NotEct, false, false),
        (Ecn::Ect0, false, true),
        (Ecn::Ect1, true, true),
        (Ecn::Ce, true, true),
    ] {
        for (word, expected) in [("l4s", l4s), ("any-ect", any)] {
            let mut b = Bench::new(10, &[("low_latency", word)]);
            b.arrive(ecn);
            assert_eq!(b.signal("l_queue") == 1.0, expected, "{ecn:?} {word}");
        }
    }
}

/// Both queues full: at 1/16, one packet in sixteen is classic; at ½ every second. The first is L's.
#[test]
fn the_classic_queue_has_its_share() {
    for (share, classic) in [("0.0625", 20), ("0.5", 160)] {
        let mut b = Bench::new(1000, &[("classic_share", share), ("target", "1h")]);
        (0..400).for_each(|_| [Ecn::Ect1, Ecn::NotEct].into_iter().for_each(|e| b.arrive(e)));
        let sent: Vec<Ecn> = (0..320).map(|_| b.depart().unwrap()).collect();
        assert_ne!(sent[0], Ecn::NotEct);
        let got = sent.iter().filter(|ecn| **ecn == Ecn::NotEct).count();
        assert!(got.abs_diff(classic) <= 1, "{share}: {got}");
    }
}

/// A tenth is C's. Beside a packet of C, five of L are sent, and C's then alone. From 900 bytes, begun anew, L
/// may send 9 before C's next one; of 1211.2 that were kept, 711.2 are left, which is 8; and 13 from all of
/// them, if the link has found nothing in between.
#[test]
fn an_account_may_be_kept_while_a_queue_is_empty() {
    for (word, asked, expected) in
        [("wrr", false, 9), ("wrr-kept", false, 8), ("wrr-kept", true, 13)]
    {
        let mut b = Bench::new(1000, &[("scheduler", word), ("classic_share", "0.1")]);
        b.arrive(Ecn::NotEct);
        (0..5).for_each(|_| b.arrive(Ecn::Ect1));
        (0..5).for_each(|_| assert_ne!(b.depart(), Some(Ecn::NotEct)));
        assert_eq!(b.depart(), Some(Ecn::NotEct));
        if asked {
            assert_eq!(b.depart(), None);
        }
        b.arrive(Ecn::NotEct);
        (0..20).for_each(|_| b.arrive(Ecn::Ect1));
        let before = (0..20).take_while(|_| b.depart() != Some(Ecn::NotEct)).count();
        assert_eq!(before, expected, "{word} {asked}");
    }
}

/// With p' = 1 all is dropped but what leaves less than 3000 bytes behind, or finds less when it comes.
#[test]
fn what_leaves_little_behind_is_spared() {
    for (decided, dropped) in [("departure", 2), ("arrival", 0)] {
        let mut b = Bench::new(
            100,
            &[
                ("signals", "random-twice"),
                ("spare", "3000"),
                ("decided", decided),
                ("alpha", "10000"),
            ],
        );
        (0..5).for_each(|_| b.arrive(Ecn::NotEct));
        b.wait_us(100_000);
        assert_eq!(b.signal("p"), 1.0);
        assert_eq!(b.depart(), Some(Ecn::NotEct));
        let early = |b: &Bench| b.q.counters().dropped[Cause::Early as usize].packets;
        assert_eq!(early(&b), dropped, "{decided}");
        (0..5).for_each(|_| b.arrive(Ecn::NotEct));
        let at_arrival = if decided == "arrival" { 5 } else { 0 };
        assert_eq!(early(&b), dropped + at_arrival, "4000 bytes wait");
    }
}

/// At k = 1, p' = 1 the RFC drops what leaves C. Linux marks it, since k p' does not pass 1, and all of L.
#[test]
fn without_coupling_linux_has_no_overload() {
    for (signals, decided, ecn, sent) in [
        ("recur", "departure", Ecn::Ect0, None),
        ("random-twice", "departure", Ecn::Ect0, Some(Ecn::Ce)),
        ("random-twice", "departure", Ecn::Ect1, Some(Ecn::Ce)),
        ("random-twice", "arrival", Ecn::Ect0, Some(Ecn::Ce)),
        ("random-twice", "arrival", Ecn::Ect1, Some(Ecn::Ce)),
    ] {
        let settings = [("signals", signals), ("decided", decided), ("k", "1"), ("alpha", "10000")];
        let mut b = Bench::new(100, &settings);
        b.arrive(ecn);
        b.wait_us(100_000);
        assert_eq!(b.signal("p"), 1.0);
        (0..3).for_each(|_| b.arrive(ecn));
        b.depart(); // with `recur` the first sum is not above 1
        assert_eq!(b.depart(), sent, "{signals} {decided} {ecn:?}");
    }
}

/// Without overload p' ends at 1/k: L is marked throughout, C dropped with ¼, and nothing else helps.
#[test]
fn an_overflow_ends_p() {
    let mut b = Bench::new(5000, &[("overload", "overflow"), ("alpha", "10000")]);
    (0..2000).for_each(|_| [Ecn::Ect1, Ecn::Ect0].into_iter().for_each(|e| b.arrive(e)));
    b.wait_us(100_000);
    assert_eq!(b.signal("p"), 0.5);
    let marked = (0..2000).filter(|_| b.depart() == Some(Ecn::Ce)).count();
    assert_eq!(b.q.counters().dropped[Cause::Early as usize].packets, 0);
    assert!(marked.abs_diff(1875 + 31) < 5, "15/16 of L, a quarter of 1/16 of C: {marked}");
}

/// C's packet came 30 ms before L's: it goes first with a shift of 20 ms, not with 50.
#[test]
fn a_time_shift_lets_old_classic_packets_go_first() {
    for (tshift, first) in [("20ms", Ecn::NotEct), ("50ms", Ecn::Ect1)] {
        let mut b = Bench::new(10, &[("scheduler", "ts-fifo"), ("tshift", tshift)]);
        b.arrive(Ecn::NotEct);
        b.wait_us(30_000);
        b.arrive(Ecn::Ect1);
        assert_eq!(b.depart(), Some(first));
    }
}

/// The ramp from 0.8 to 1.2 ms: a packet that waited 1 ms adds ½, so every second is marked (the
/// first sum above 1 is at the third); at 1.2 ms every one but the first; at 0.8 ms none.
#[test]
fn the_ramp_marks_evenly() {
    for (us, marks) in [(800, 0), (1000, 9), (1200, 19), (5000, 19)] {
        let mut b = Bench::new(100, &[]);
        (0..21).for_each(|_| b.arrive(Ecn::Ect1));
        b.wait_us(us);
        let marked = (0..20).filter(|_| b.depart() == Some(Ecn::Ce)).count();
        assert_eq!(marked, marks, "{us} µs");
        b.wait_us(3_000);
        assert_eq!(b.depart(), Some(Ecn::Ect1), "a single packet is spared");
    }
}

/// Linux marks a packet that waited more than 1 ms.
#[test]
fn linux_s_step_is_above_a_millisecond() {
    for (ns, codepoint) in [(1_000_000, Ecn::Ect1), (1_000_001, Ecn::Ce)] {
        let mut b = Bench::new(100, super::dualpi2::ABOUT.presets[0].1);
        b.arrive(Ecn::Ect1);
        b.now += Duration::from_nanos(ns);
        assert_eq!(b.depart(), Some(codepoint), "{ns} ns");
    }
}

/// 30 ms in C for one update of 15 ms: p' = 0.15·0.015 + 3·0.03 = 0.09225 (RFC 9332 Fig. 2).
#[test]
fn p_by_hand() {
    let mut b = Bench::new(100, &[]);
    b.wait_us(15_000);
    assert_eq!(b.signal("p"), 0.0, "an empty queue is below target");
    b.arrive(Ecn::NotEct);
    b.now += Duration::from_millis(15); // no update is run at 30 ms
    b.wait_us(15_000);
    // At 30 ms the delay is 15, at 45 it is 30: 3·0.015, then 0.15·0.015 + 3·0.015.
    let p = 0.045 + 0.00225 + 0.045;
    assert!((b.signal("p") - p).abs() < 1e-12, "{}", b.signal("p"));
    assert!((b.signal("p_c") - p * p).abs() < 1e-12);
    assert!((b.signal("p_cl") - 2.0 * p).abs() < 1e-12);
}

/// L traffic that does not respond: the delay grows, p' with it, until L's packets are dropped.
#[test]
fn an_unresponsive_l_queue_is_shed() {
    let mut b = Bench::new(2000, &[]);
    for _ in 0..4000 {
        (0..3).for_each(|_| b.arrive(Ecn::Ect1));
        b.wait_us(2000);
        (0..2).for_each(|_| _ = b.depart());
    }
    let dropped = b.q.counters().dropped[Cause::Early as usize].packets;
    assert!(dropped > 1000, "{dropped}");
    // A third of the load is too much, so p_C is about ⅓ when it settles.
    assert!((0.25..0.45).contains(&b.signal("p_c")), "{}", b.signal("p_c"));
    // It ends with the load: the marks, too.
    while b.depart().is_some() {}
    (0..400).for_each(|_| b.wait_us(15_000));
    assert_eq!(b.signal("p"), 0.0);
    b.arrive(Ecn::Ect1);
    b.arrive(Ecn::Ect1);
    assert_eq!(b.depart(), Some(Ecn::Ect1));
}

/// RFC 9957 §4.2: the flow that fills L is sent to C once the delay is above the critical one, and one that
/// sends now and then is not; when it has been quiet for as long as its score, it is back.
#[test]
fn a_flow_that_builds_a_queue_goes_to_c_until_its_score_is_over() {
    let settings = [("protection", "queue"), ("critical_score", "4ms"), ("aging", "8mbit")];
    let mut b = Bench::new(1000, &settings);
    let arrive = |b: &mut Bench, flow: u64| {
        let meta = Meta { len: 1000, ecn: Ecn::Ect1, flow: FlowKey(flow), ..Meta::default() };
        let before = b.signal("l_queue");
        b.q.enqueue(meta, 0, &mut Cx { now: b.now, rng: &mut b.rng }, &mut ());
        b.signal("l_queue") > before
    };
    // 1 ms a packet, on the link and of score: the second packet finds 1 ms, half-way up the ramp and below
    // its end at 1.2 ms; the third finds 2 ms, with a score of 1.5; the fourth 3 ms and 2.5, which is
    // more than 1.2 ms times 4.
    let stays: Vec<bool> = (0..5).map(|_| arrive(&mut b, 1)).collect();
    assert_eq!(stays, [true, true, true, false, false]);
    assert!(arrive(&mut b, 2), "3 ms and a score of 1");
    while b.depart().is_some() {}
    b.wait_us(3_000);
    (0..4).for_each(|n| assert!(arrive(&mut b, 3 + n)));
    assert!(!arrive(&mut b, 1), "4 ms, and of 3.5 there is 0.5 left, and 1 more");
    b.wait_us(10_000);
    assert!(arrive(&mut b, 1), "4 ms and a score of 1");
}

/// With 250 bytes of framing a packet takes 1.25 ms: the third one finds 2.5 ms, with a score of 2, its own length
/// being blamed, which is more than 1.2 ms times 4. Without, it finds 2 ms and has 1.5.
#[test]
fn what_frames_take_is_delay_that_is_blamed() {
    let settings = [("protection", "queue"), ("critical_score", "4ms"), ("aging", "8mbit")];
    for (framing, stays) in [("", [true, true, true]), ("overhead 250", [true, true, false])] {
        let mut rng = Rng::new(3, 0);
        let mut env = env(1000);
        if !framing.is_empty() {
            env.framing = framing.parse().unwrap();
        }
        let q = Dual::new(&config(&settings), &env, &mut rng).unwrap();
        let mut b = Bench { q, rng, now: env.now, next: 0 };
        let found = [(); 3].map(|()| {
            let before = b.signal("l_queue");
            b.arrive(Ecn::Ect1);
            b.signal("l_queue") > before
        });
        assert_eq!(found, stays, "{framing}");
    }
}

/// A score of 2 ms at most is blame enough from 200 ms on, where 4 ms would be from 100 on.
#[test]
fn scores_are_bounded() {
    let high = [("protection", "queue"), ("max_score", "2ms"), ("critical_delay", "100ms")];
    let mut b = Bench::new(1000, &high);
    (0..200).for_each(|_| b.arrive(Ecn::Ect1));
    let to_c = b.signal("c_queue");
    assert_eq!(to_c, 0.0);
    (0..10).for_each(|_| b.arrive(Ecn::Ect1));
    assert_eq!(b.signal("c_queue"), 9.0, "the first finds 200 ms, which is not above");
}

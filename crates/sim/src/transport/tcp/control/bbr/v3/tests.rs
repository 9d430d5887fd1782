//! Rules of the draft, by its numbers.
use super::*;

const MS: u64 = 1_000_000;
/// Packets a ns: 100 in 10 ms.
const RATE: f64 = 1e-5;

/// One that has seen a path of 10 ms with a BDP of 100 packets.
fn seasoned(phase: Phase) -> Bbr {
    let mut bbr = Bbr::fresh(10.0);
    bbr.phase = phase;
    bbr.max_bw.update(0, RATE, BW_CYCLES);
    bbr.bw = RATE;
    (bbr.min_rtt, bbr.min_rtt_at) = (10 * MS, 0);
    (bbr.probe_min_rtt, bbr.probe_min_rtt_at) = (10 * MS, 0);
    bbr.full = FullPipe { reached: true, now: true, rate: RATE, rounds: 3 };
    bbr.pacing.rate = RATE;
    bbr
}

/// An acknowledgement at `ms` that is the first of a round if `first`.
fn sample(ms: u64, first: bool) -> Sample {
    Sample {
        now: ms * MS,
        rtt: Some(10 * MS),
        srtt: 10 * MS,
        prior_delivered: if first { 1000 } else { 0 },
        total: 1001,
        delivered: 100,
        rate: RATE,
        tx_in_flight: 100,
        newly: 1,
        in_flight: 100,
        prior_in_flight: 101,
        ..Sample::default()
    }
}

/// The draft's table of gains, and the bounds of the window.
#[test]
fn gains_and_caps_are_those_of_the_table() {
    let table = [
        (Startup, 2.77, 2.0, f64::INFINITY),
        (Drain, 0.5, 2.0, f64::INFINITY),
        (Down, 0.9, 2.0, 200.0),
        (Cruise, 1.0, 2.0, 170.0),
        (Refill, 1.0, 2.0, 200.0),
        (Up, 1.25, 2.25, 200.0),
        (Phase::ProbeRtt, 1.0, 0.5, 170.0),
    ];
    for (phase, pacing, window, cap) in table {
        let mut bbr = seasoned(phase);
        bbr.inflight_long = 200.0;
        assert_eq!((phase.pacing_gain(), phase.window_gain()), (pacing, window), "{phase:?}");
        assert_eq!(bbr.window_cap(), cap, "{phase:?}");
        bbr.inflight_short = 50.0;
        assert_eq!(bbr.window_cap(), 50.0, "{phase:?}");
    }
}

/// Cruise ends 2 to 3 s after the cycle began, or after 63 rounds; Refill after one.
#[test]
fn the_next_probe_has_its_time() {
    let tells = Tells { now: 0, delivered: 0, window: 200.0 };
    let mut waits = Vec::new();
    for seed in 0..200 {
        let mut bbr = seasoned(Up);
        bbr.rng = Rng::new(seed, 0);
        bbr.start_down(tells);
        assert!(bbr.probe.rounds_since < 2);
        waits.push(bbr.probe.wait);
        assert!(!bbr.is_time_to_probe(bbr.probe.wait, 200.0));
        assert!(bbr.is_time_to_probe(bbr.probe.wait + 1, 200.0));
        bbr.probe.rounds_since = 62;
        assert!(!bbr.is_time_to_probe(0, 200.0), "the BDP is 100: no more than 63 rounds");
        assert!(bbr.is_time_to_probe(0, 62.0), "as many rounds as packets");
        bbr.probe.rounds_since = 63;
        assert!(bbr.is_time_to_probe(0, 200.0));
    }
    assert!(waits.iter().all(|wait| (2000 * MS..3000 * MS).contains(wait)));
    assert!(waits.iter().max() > Some(&(2900 * MS)) && waits.iter().min() < Some(&(2100 * MS)));
    let mut bbr = seasoned(Cruise);
    bbr.start_refill(1000);
    let mut window = 200.0;
    bbr.on_sample(&sample(1, false), &mut window);
    assert_eq!(bbr.phase, Refill);
    bbr.on_sample(&sample(2, true), &mut window);
    assert_eq!(bbr.phase, Up);
    assert_eq!(bbr.pacing.rate, 1.25 * 0.99 * RATE);
}

/// Losses while it does not probe: once a round, to what was delivered, at most by 30 %.
#[test]
fn a_round_with_losses_lowers_the_short_term_bounds() {
    for (delivered, left) in [(90, 0.9), (30, 0.7)] {
        let mut bbr = seasoned(Cruise);
        bbr.probe.wait = u64::MAX / 2;
        let mut window = 200.0;
        let share = f64::from(delivered) / 100.0;
        let slow = Sample { rate: share * RATE, delivered, ..sample(1, false) };
        bbr.note_loss(1000);
        bbr.on_sample(&slow, &mut window);
        assert!(bbr.bw_short.is_infinite(), "the round goes on");
        bbr.on_sample(&Sample { prior_delivered: 1000, ..slow }, &mut window);
        assert!((bbr.bw_short / RATE - left).abs() < 1e-9, "{}", bbr.bw_short);
        assert!((bbr.bw / RATE - left).abs() < 1e-9);
        assert_eq!(
            bbr.inflight_short,
            f64::from(delivered).max(0.7 * 201.0),
            "a packet was acknowledged meanwhile"
        );
    }
}

fn lose(bbr: &mut Bbr, lost: u32) {
    let tx_in_flight = 200;
    let lost = Lost { now: 1, seq: lost * 2, tx_in_flight, lost, app_limited: false, total: 1000 };
    bbr.on_lost(&lost, 200.0);
}

/// Up ends with the fifth loss of 200 under way, and with the bound where the threshold was passed.
#[test]
fn more_than_two_percent_end_a_probe() {
    let mut bbr = seasoned(Up);
    bbr.probe.sampling = true;
    (1..=4).for_each(|lost| lose(&mut bbr, lost));
    assert_eq!(bbr.phase, Up);
    assert!(bbr.inflight_long.is_infinite());
    lose(&mut bbr, 5);
    assert_eq!(bbr.phase, Down);
    // 199 before it, of which 4 were lost: 2 % were passed a little before.
    let part = (0.02 * 199.0 - 4.0) / 0.98;
    assert!((bbr.inflight_long - (199.0 + part)).abs() < 1e-9, "{}", bbr.inflight_long);
    assert!(bbr.probe.too_high && !bbr.probe.sampling);
    let bound = bbr.inflight_long;
    lose(&mut bbr, 40);
    assert_eq!(bbr.inflight_long, bound, "one answer to a probe");
}

/// After a probe that was too high the next goes up to the bound only, and the one after further.
#[test]
fn the_probe_after_one_that_was_too_high_is_careful() {
    let mut bbr = seasoned(Up);
    (bbr.inflight_long, bbr.probe.too_high) = (100.0, true);
    bbr.full.restart(RATE);
    let mut window = 100.0;
    bbr.on_sample(&sample(1, false), &mut window);
    assert_eq!(bbr.phase, Down);
    assert!(bbr.probe.precautionary && !bbr.probe.too_high);
    bbr.rounds.next = 1000;
    bbr.on_sample(&sample(2, true), &mut window);
    assert_eq!(bbr.phase, Refill, "at once, without a cruise");
    assert_eq!(bbr.cycle, 1, "the filter of the bandwidth goes on");
}

/// `C.is_cwnd_limited`: the bound rises by 2, 4, 8 packets in rounds that follow upon one in which the window was full
/// for a moment. Without such a moment neither it nor its slope rises in the next round.
#[test]
fn the_bound_rises_faster_each_round() {
    let mut bbr = seasoned(Up);
    (bbr.inflight_long, bbr.probe.acks) = (100.0, Acks::ProbeFeedback);
    bbr.full.restart(RATE);
    let (mut window, mut total, mut steps) = (100.0, 0, Vec::new());
    bbr.raise_slope(window);
    for full_for_a_moment in [true, true, true, false, true, false] {
        let (before, first) = (bbr.inflight_long, total);
        for n in 0..window as u32 {
            let prior_delivered = if n == 0 { first } else { 0 };
            total += 1;
            let window_filled = full_for_a_moment && n == 50;
            let s = Sample { prior_delivered, total, tx_in_flight: 1, ..sample(1, false) };
            bbr.on_sample(&Sample { window_filled, ..s }, &mut window);
        }
        steps.push(bbr.inflight_long - before);
    }
    let expected = [0.0, 2.0, 4.0, 8.0, 0.0, 16.0];
    let near = steps.iter().zip(expected).all(|(step, expected)| (step - expected).abs() <= 1.0);
    assert!(near, "{steps:?}");
}

/// Startup ends with six separate losses above 2 % in a round of repair, not with one burst.
#[test]
fn startup_ends_with_losses_in_six_places() {
    for (step, ends) in [(2, true), (1, false)] {
        let mut bbr = seasoned(Startup);
        bbr.full = FullPipe::default();
        let mut window = 100.0;
        let change = RepairChange { repair: Repair::Begins, in_flight: 100, delivered: 900 };
        bbr.on_repair(&change, &mut window);
        for n in 1..=6 {
            let lost = Lost {
                now: MS,
                seq: n * step,
                tx_in_flight: 100,
                lost: n,
                app_limited: false,
                total: 900,
            };
            bbr.on_lost(&lost, window);
        }
        bbr.on_sample(&Sample { lost: 6, ..sample(2, true) }, &mut window);
        assert_eq!(bbr.phase != Startup, ends, "{step}");
        assert_eq!(bbr.inflight_long.is_finite(), ends);
    }
}

/// One that takes marks as Google's kernel does, on a path whose least round trip is `ms`, in Cruise.
fn by_share(ms: u64) -> Bbr {
    let mut bbr = seasoned(Cruise);
    bbr.marks = Marks::new(MarkRule::LowLatency);
    (bbr.min_rtt, bbr.probe_min_rtt) = (ms * MS, ms * MS);
    (bbr.probe.since, bbr.probe.wait) = (0, 3000 * MS);
    bbr
}

/// A sample that begins a round of 100 packets, `marked` of which were.
fn round(n: u32, marked: u32) -> Sample {
    Sample {
        prior_delivered: 100 * n,
        total: 100 * (n + 1),
        rtt: None,
        marked: marked > 0,
        marks: marked,
        total_marks: marked * (n + 1),
        marked_since: marked,
        ..sample(u64::from(n), false)
    }
}

/// Below a round trip of 5 ms a round with marks leaves 1 − alpha/3 of what may be under way, and the rate as it is;
/// above it marks are nothing.
#[test]
fn marks_of_low_latency_cut_by_their_share() {
    for (ms, left) in [(5, 1.0 - (1.0 - 0.75 / 16.0) / 3.0), (6, f64::INFINITY)] {
        let mut bbr = by_share(ms);
        let mut window = 150.0;
        bbr.on_sample(&round(1, 25), &mut window);
        let short = if left.is_finite() { left * 150.0 } else { left };
        assert!((bbr.inflight_short - short).abs() < 1e-9 || short.is_infinite(), "{ms} ms");
        assert_eq!(bbr.inflight_short.is_finite(), left.is_finite(), "{ms} ms");
        assert!(bbr.bw_short.is_infinite(), "{ms} ms");
        assert!(bbr.inflight_long.is_infinite(), "{ms} ms");
    }
}

/// More than half of the packets marked end a probe, and two such rounds Startup.
#[test]
fn too_many_marks_of_low_latency_end_a_probe_and_startup() {
    for (marked, ends) in [(50, false), (51, true)] {
        let mut bbr = by_share(2);
        (bbr.phase, bbr.probe.sampling) = (Up, true);
        bbr.full.restart(RATE);
        let mut window = 150.0;
        bbr.on_sample(&round(1, marked), &mut window);
        assert_eq!(bbr.phase == Down, ends, "{marked}");
        assert_eq!(bbr.inflight_long.is_finite(), ends, "{marked}");
    }
    let mut bbr = by_share(2);
    (bbr.phase, bbr.full) = (Startup, FullPipe::default());
    let mut window = 150.0;
    bbr.on_sample(&round(1, 50), &mut window);
    assert_eq!(bbr.phase, Startup);
    bbr.on_sample(&round(2, 50), &mut window);
    assert_ne!(bbr.phase, Startup);
}

/// A cycle with marks and no losses probes again once a round trip had none.
#[test]
fn when_marks_of_low_latency_cease_it_probes() {
    let mut bbr = by_share(2);
    bbr.inflight_long = 128.0;
    let mut window = 100.0;
    bbr.on_sample(&round(1, 10), &mut window);
    assert_eq!(bbr.phase, Cruise);
    bbr.on_sample(&Sample { calm: true, total_marks: 20, ..round(2, 0) }, &mut window);
    assert_eq!((bbr.phase, bbr.probe.up_rounds), (Refill, 6), "2⁶ is half of the bound");
    assert!(bbr.inflight_short.is_infinite());
}

/// Packet `seq` of 100 under way when it was sent, the `lost`th to be lost since.
fn lost(seq: u32, lost: u32) -> Lost {
    Lost { now: MS, seq, tx_in_flight: 100, lost, app_limited: false, total: 1000 }
}

fn repair(repair: Repair) -> RepairChange {
    RepairChange { repair, in_flight: 90, delivered: 1000 }
}

/// Losses that were none take nothing away: neither window nor bounds.
#[test]
fn a_needless_repair_leaves_what_there_was() {
    for begins in [Repair::Begins, Repair::TimedOut] {
        let mut bbr = seasoned(Cruise);
        bbr.probe.wait = u64::MAX / 2;
        (bbr.inflight_long, bbr.inflight_short, bbr.bw_short) = (300.0, 250.0, 2.0 * RATE);
        let mut window = 200.0;
        bbr.on_repair(&repair(begins), &mut window);
        bbr.on_lost(&lost(5, 1), window);
        let slow =
            Sample { rate: 0.3 * RATE, delivered: 30, prior_delivered: 1000, ..sample(1, true) };
        bbr.on_sample(&slow, &mut window);
        assert!(bbr.bw_short < 2.0 * RATE && bbr.inflight_short < 250.0);
        bbr.on_undo(1001, &mut window);
        assert_eq!((bbr.bw_short, bbr.inflight_short), (2.0 * RATE, 250.0));
        assert_eq!((bbr.inflight_long, bbr.phase), (300.0, Cruise));
        assert!(window >= 200.0 && !bbr.loss.lossy, "{window}");
    }
}

/// A probe that they ended begins anew, and so does Startup.
#[test]
fn a_needless_repair_gives_back_the_phase() {
    let mut bbr = seasoned(Up);
    (bbr.probe.sampling, bbr.inflight_long) = (true, 300.0);
    let mut window = 200.0;
    bbr.on_repair(&repair(Repair::Begins), &mut window);
    bbr.on_lost(&lost(5, 3), window);
    assert_eq!((bbr.phase, bbr.inflight_long < 300.0), (Down, true));
    bbr.on_undo(1001, &mut window);
    assert_eq!((bbr.phase, bbr.inflight_long), (Refill, 300.0));

    let mut bbr = seasoned(Startup);
    bbr.full = FullPipe::default();
    bbr.on_repair(&repair(Repair::Begins), &mut window);
    (0..6).for_each(|n| bbr.on_lost(&lost(2 * n, 3 + n), window));
    let round = Sample { lost: 9, ..sample(2, true) };
    bbr.on_sample(&round, &mut window);
    assert_eq!((bbr.full.reached, bbr.undo.phase), (true, Some(Startup)));
    bbr.on_undo(1001, &mut window);
    assert_eq!((bbr.full.reached, bbr.phase), (false, Startup));
}

/// As the draft has it: what ends a probe forgets that the round had a loss, and the next loss of the same
/// repair is taken for the first, at which all is saved anew, without the phase.
#[test]
fn a_loss_behind_the_one_that_ended_a_probe_forgets_the_phase() {
    let mut bbr = seasoned(Up);
    (bbr.probe.sampling, bbr.inflight_long) = (true, 300.0);
    let mut window = 200.0;
    bbr.on_repair(&repair(Repair::Begins), &mut window);
    bbr.on_lost(&lost(5, 3), window);
    bbr.on_lost(&lost(6, 4), window);
    bbr.on_undo(1001, &mut window);
    assert_eq!((bbr.phase, bbr.inflight_long < 300.0), (Down, true));
}

use super::*;
use crate::policy::lab::{config, env};
use std::vec::Vec;

/// The filter before a queue that the test plays.
struct Desk {
    filter: RedPd,
    now: Instant,
    rng: Rng,
}

fn packet(flow: u64, len: u32) -> Meta {
    Meta { flow: FlowKey(flow), len, ..Meta::default() }
}

impl Desk {
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut rng = Rng::new(5, 0);
        let filter = RedPd::new(&config(settings), &env(100), &mut rng).unwrap();
        Self { filter, now: Instant::ZERO, rng }
    }

    /// A packet arrives before a congested queue: whether the filter drops it.
    fn arrive(&mut self, flow: u64) -> bool {
        let mut cx = Cx { now: self.now, rng: &mut self.rng };
        self.filter.drops(&packet(flow, 1000), |_| true, &mut cx)
    }

    /// The queue drops a packet of each of these flows.
    fn signal(&mut self, flows: &[u64]) {
        flows.iter().for_each(|&flow| self.filter.signalled(&packet(flow, 1000)));
    }

    /// A list in which the queue drops 2 % of 1000 packets, those of `flows` among them.
    fn list(&mut self, flows: &[u64]) {
        self.signal(flows);
        self.filter.arrived = 1000;
        self.filter.signalled = 20;
        self.end_list();
    }

    fn end_list(&mut self) {
        self.now = self.filter.ends;
        self.filter.on_timer(&mut Cx { now: self.now, rng: &mut self.rng });
    }

    /// The probability of a flow, if it is monitored.
    fn p(&self, flow: u64) -> Option<f64> {
        let table = &self.filter.monitored;
        table.find(FlowKey(flow)).map(|id| table[id].p)
    }

    /// The record of flow 1, which is monitored.
    fn flow_1(&mut self) -> &mut Monitored {
        let table = &mut self.filter.monitored;
        let id = table.find(FlowKey(1)).unwrap();
        &mut table[id]
    }

    fn monitored(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.filter.monitored.iter().map(|(_, key, _)| key.0).collect();
        all.sort_unstable();
        all
    }
}

/// The smoothed drop rate is 2 % from the first list on.
const STEADY: (&str, &str) = ("weight", "1");
const PATIENT: (&str, &str) = ("unresponsive_test", "false");

fn close(got: Option<f64>, expected: f64) {
    assert!(got.is_some_and(|got| (got - expected).abs() < 1e-12), "{got:?} for {expected}");
}

#[test]
fn drops_in_three_of_five_lists_identify_a_flow() {
    let mut desk = Desk::new(&[STEADY]);
    // Flow 1 in lists 0, 2 and 4, flow 2 in 0, 1 and 5, flow 3 ten times in list 4.
    for flows in [&[1, 2][..], &[2], &[1], &[], &[1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]] {
        assert_eq!(desk.monitored(), []);
        desk.list(flows);
    }
    desk.list(&[2]);
    assert_eq!(desk.monitored(), [1]);
}

#[test]
fn a_single_list_counts_drops_however_they_come() {
    let mut desk = Desk::new(&[STEADY, ("identification", "single-list")]);
    desk.list(&[1, 1, 1, 2, 2]);
    assert_eq!(desk.monitored(), [1]);
    (0..4).for_each(|_| desk.list(&[]));
    desk.list(&[2]);
    assert_eq!(desk.monitored(), [1], "the first list is forgotten");
}

#[test]
fn a_burst_evades_unless_it_is_looked_for() {
    let burst = |settings: &[(&str, &str)]| {
        let mut desk = Desk::new(settings);
        desk.list(&[1; 12]);
        desk.monitored()
    };
    assert_eq!(burst(&[STEADY]), []);
    assert_eq!(burst(&[STEADY, ("burst", "13")]), []);
    assert_eq!(burst(&[STEADY, ("burst", "12")]), [1]);
}

/// Each list is K/M · R/√(1.5 p) for the p at its beginning (eq. 3), 0.6 · 0.04 s here: at 10⁻⁴
/// over 0.012247 (1.9596 s), at 2 % over 0.173205, at (2 + 6)/2 % over 0.244949.
#[test]
fn lists_get_shorter_with_more_drops() {
    let mut desk = Desk::new(&[]);
    let length = |desk: &Desk| desk.filter.ends.since(desk.now).as_secs_f64();
    assert!((length(&desk) - 1.9596).abs() < 1e-4);
    for (signalled, p) in [(40, 0.02), (60, 0.04)] {
        desk.filter.arrived = 1000;
        desk.filter.signalled = signalled;
        desk.end_list();
        assert!((desk.filter.rules.p - p).abs() < 1e-12);
        assert!((length(&desk) - 0.024 / (1.5 * p).sqrt()).abs() < 1e-9);
    }
    let before = desk.filter.rules.p;
    desk.end_list();
    assert_eq!(desk.filter.rules.p, before, "no arrivals tell nothing");
    let bounded = Desk::new(&[("interval_bounds", "true")]);
    assert!((length(&bounded) - 0.4).abs() < 1e-9, "10 R");
}

/// Alone a flow is raised by p = 2 % (eq. 5) every four lists.
#[test]
fn a_probability_rises_every_m_minus_1_lists() {
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    let mut seen = Vec::new();
    for _ in 0..11 {
        desk.list(&[1]);
        seen.push(desk.p(1).map_or(0, |p| (p * 1000.0).round() as u32));
    }
    assert_eq!(seen, [0, 0, 20, 20, 20, 20, 40, 40, 40, 40, 60]);
}

/// Two flows of 9 and 3 drops: their average is 6, eq. 5 gives 3 % and 1 %, but a flow that lost
/// 2 % gets no more than 2 % on top. Next time 15 and 5 drops, average 10: again 3 % and 1 %.
#[test]
fn increments_go_by_drops_and_at_most_double_the_losses() {
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    for _ in 0..3 {
        desk.list(&[1, 1, 1, 2]);
    }
    close(desk.p(1), 0.02);
    close(desk.p(2), 0.01);
    for _ in 0..4 {
        desk.list(&[1, 1, 1, 2]);
    }
    close(desk.p(1), 0.05);
    close(desk.p(2), 0.02);
}

/// §5.1: an increment above what the flow loses, P + p = 2.5 %, doubles P and does not add P + p to it.
#[test]
fn what_asks_for_more_than_a_flow_loses_only_doubles_its_probability() {
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    (0..3).for_each(|_| desk.list(&[1, 1, 1, 2]));
    desk.flow_1().p = 0.005;
    (0..4).for_each(|_| desk.list(&[1, 1, 1, 2]));
    close(desk.p(1), 0.01);
}

/// The authors' program: the first probability is at most twice the drop rate and at most a half, and
/// a later increment that is more than the probability doubles it. Flow 1 has three halves of the
/// average, flow 2 a half.
#[test]
fn with_the_authors_cap_a_probability_at_most_doubles() {
    let rules = [STEADY, PATIENT, ("increment_cap", "probability")];
    let mut desk = Desk::new(&rules);
    (0..3).for_each(|_| desk.list(&[1, 1, 1, 2]));
    close(desk.p(1), 0.03);
    close(desk.p(2), 0.01);
    (0..4).for_each(|_| desk.list(&[1, 1, 1, 2]));
    close(desk.p(1), 0.06);
    close(desk.p(2), 0.02);
    desk.flow_1().p = 0.005;
    (0..4).for_each(|_| desk.list(&[1, 1, 1, 2]));
    close(desk.p(1), 0.01);
    // 0.98 + 0.03: what the filter lets through is halved.
    desk.flow_1().p = 0.98;
    (0..4).for_each(|_| desk.list(&[1, 1, 1, 2]));
    close(desk.p(1), 0.99);

    let mut crowded = Desk::new(&rules);
    for _ in 0..3 {
        crowded.signal(&[1, 1, 1, 2]);
        (crowded.filter.arrived, crowded.filter.signalled) = (10, 4);
        crowded.end_list();
    }
    close(crowded.p(1), 0.5);
    close(crowded.p(2), 0.2);
}

/// Three lists with drop rates of 2, 2 and 1 %: with a weight of a half 1, 1.5 and 1.25 %.
#[test]
fn increments_may_go_by_the_lesser_drop_rate() {
    for (rate, expected) in [("smoothed", 0.0125), ("least", 0.01)] {
        let mut desk = Desk::new(&[PATIENT, ("increment_rate", rate)]);
        for signalled in [20, 20, 10] {
            desk.signal(&[1]);
            (desk.filter.arrived, desk.filter.signalled) = (1000, signalled);
            desk.end_list();
        }
        close(desk.p(1), expected);
    }
}

/// A loss in the last list counts whether it was the filter's or the queue's.
#[test]
fn who_lost_nothing_in_the_last_list_may_be_left_alone() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("last_list", "true")]);
    for flows in [&[1][..], &[1], &[], &[1]] {
        assert_eq!(desk.monitored(), []);
        desk.list(flows);
    }
    close(desk.p(1), 0.02);
    // Due again after four lists, and identified, but without a loss in the fourth and fifth.
    for flows in [&[1][..], &[1], &[1], &[], &[]] {
        desk.list(flows);
        close(desk.p(1), 0.02);
    }
    desk.list(&[1]);
    close(desk.p(1), 0.04);
    desk.flow_1().p = 1.0;
    for flows in [&[1][..], &[1], &[1], &[]] {
        desk.arrive(1);
        desk.list(flows);
    }
    close(desk.p(1), 1.0);
    let last = desk.filter.rules.list - 1;
    assert_eq!(desk.flow_1().changed, last, "raised again");
}

/// A queue of so many packets or more is congested.
#[test]
fn the_filter_may_spare_short_queues() {
    for (least, dropped) in [("0", true), ("2", true), ("3", false)] {
        let mut desk = Desk::new(&[STEADY, PATIENT, ("least_backlog", least)]);
        (0..3).for_each(|_| desk.list(&[1]));
        desk.flow_1().p = 1.0;
        let mut cx = Cx { now: desk.now, rng: &mut desk.rng };
        assert_eq!(desk.filter.drops(&packet(1, 1000), |least| 2 >= least, &mut cx), dropped);
    }
}

/// In a list of 1000 packets one drop is 0.1 %, two are more.
#[test]
fn while_the_queue_drops_next_to_nothing_nobody_is_raised() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("last_list", "true")]);
    let mut list = |signalled| {
        desk.signal(&[1]);
        (desk.filter.arrived, desk.filter.signalled) = (1000, signalled);
        desk.end_list();
        desk.p(1)
    };
    assert!((0..4).all(|_| list(1).is_none()));
    close(list(2), 0.002);
    // Due again after four lists; a list that raises nobody is no change.
    assert!((0..5).all(|_| list(1) == Some(0.002)));
    close(list(2), 0.004);
}

/// 0.6 · 0.04 s over the root of 1.5 · 1 %, whatever is dropped.
#[test]
fn lists_may_go_by_a_drop_rate_that_is_known() {
    let mut desk = Desk::new(&[("list_drop_rate", "0.01")]);
    for _ in 0..3 {
        assert_eq!(desk.filter.ends.since(desk.now).as_nanos(), 195_959_179);
        desk.list(&[1]);
    }
}

/// At 2 % a list lasts 0.1386 s: four take 0.554 s, and 0.6 s are over after five.
#[test]
fn changes_may_have_to_wait() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("least_pause", "600ms")]);
    let mut seen = Vec::new();
    for _ in 0..14 {
        desk.list(&[1]);
        seen.push(desk.p(1).map_or(0, |p| (p * 1000.0).round() as u32));
    }
    assert_eq!(seen, [0, 0, 20, 20, 20, 20, 20, 40, 40, 40, 40, 40, 60, 60]);
    // Lowered after three lists without it, after five with it.
    (0..5).for_each(|_| desk.list(&[]));
    let p = desk.p(1).unwrap();
    (0..4).for_each(|_| desk.list(&[]));
    close(desk.p(1), p);
    desk.list(&[]);
    close(desk.p(1), p / 2.0);
}

/// Spaced, the gap between two drops of the filter is uniform on 1 … 1/P: its mean is (1/P + 1)/2, so
/// that 2P/(1 + P) of the packets are lost. At P = 0.1 gaps of 1 … 10 come equally often; of 10 000
/// each has 1000 ± 30 (one σ).
#[test]
fn the_coin_of_the_filter_may_be_spaced() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("filter_spacing", "uniform-exact")]);
    (0..3).for_each(|_| desk.list(&[1]));
    desk.flow_1().p = 0.1;
    let (mut gaps, mut gap, mut drops) = ([0; 11], 0, 0);
    while drops < 10_000 {
        gap += 1;
        if desk.arrive(1) {
            gaps[gap] += 1;
            (gap, drops) = (0, drops + 1);
        }
    }
    assert_eq!(gaps[0], 0);
    assert!(gaps[1..].iter().all(|n| (850..=1150).contains(n)), "{gaps:?}");
    // Of 1000 packets at a quarter: 0.4 by gaps of 1 … 4, a quarter by independent coins (σ 14).
    let lost = |spacing| {
        let mut desk = Desk::new(&[STEADY, PATIENT, ("filter_spacing", spacing)]);
        (0..3).for_each(|_| desk.list(&[1]));
        desk.flow_1().p = 0.25;
        (0..1000).filter(|_| desk.arrive(1)).count()
    };
    assert!((350..=450).contains(&lost("uniform-exact")));
    assert!((180..=320).contains(&lost("geometric")));
}

/// Mahajan01 §5.2: from 0.75 thirteen steps of 0.05, then 0.05, 0.025 … below 0.005: 18 rounds of three
/// lists. The first comes when the last drop is five lists old.
#[test]
fn a_quiet_flow_is_released_as_equation_7_says() {
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    (0..3).for_each(|_| desk.list(&[1]));
    desk.flow_1().p = 0.75;
    (0..4).for_each(|_| desk.list(&[]));
    close(desk.p(1), 0.75);
    desk.list(&[]);
    close(desk.p(1), 0.70);
    let began = desk.now;
    (0..17 * 3 - 1).for_each(|_| desk.list(&[]));
    close(desk.p(1), 0.1 / 16.0);
    desk.list(&[]);
    assert_eq!(desk.p(1), None);
    let took = desk.now.since(began).as_secs_f64();
    assert!((took - equations::release_time(17, 3, 0.04, 0.02, 3, 5)).abs() < 1e-6);
}

/// §5.2: monitored no longer *below* p_min.
#[test]
fn a_flow_at_p_min_is_still_monitored() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("p_min", "0.03125")]);
    (0..3).for_each(|_| desk.list(&[1]));
    desk.flow_1().p = 0.0625;
    (0..5).for_each(|_| desk.list(&[]));
    assert_eq!(desk.p(1), Some(0.03125));
    (0..3).for_each(|_| desk.list(&[]));
    assert_eq!(desk.p(1), None);
}

#[test]
fn a_probability_rests_while_a_flow_has_some_drops() {
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    (0..3).for_each(|_| desk.list(&[1]));
    for i in 0..20 {
        desk.list(if i % 5 == 4 { &[1] } else { &[] });
        close(desk.p(1), 0.02);
    }
}

#[test]
fn only_monitored_flows_are_dropped_and_only_in_congestion() {
    let mut desk = Desk::new(&[STEADY]);
    (0..3).for_each(|_| desk.list(&[1]));
    desk.flow_1().p = 1.0;
    assert!(desk.arrive(1) && !desk.arrive(2));
    let mut cx = Cx { now: desk.now, rng: &mut desk.rng };
    assert!(!desk.filter.drops(&packet(1, 1000), |_| false, &mut cx));
    assert_eq!(desk.filter.arrived, 2, "what the filter drops does not reach the queue");
}

/// A monitored flow sends `packets[i]` a list of which it loses `lost[i]`, 5 lists each.
fn tested(desk: &mut Desk, packets: [u32; 2], lost: [u32; 2]) -> bool {
    (0..3).for_each(|_| desk.list(&[1]));
    for (packets, lost) in packets.into_iter().zip(lost) {
        for _ in 0..5 {
            (0..packets).for_each(|_| desk.flow_1().record.arrived());
            (1..lost).for_each(|_| desk.flow_1().record.lost());
            desk.list(&[1]);
        }
    }
    desk.filter.unresponsive == 1
}

#[test]
fn who_sends_on_as_losses_grow_is_unresponsive() {
    let test = |packets, lost| tested(&mut Desk::new(&[STEADY]), packets, lost);
    assert!(test([100, 100], [4, 12]), "three times the losses, the same rate");
    assert!(!test([100, 75], [4, 9]), "3^(−¼) = 0.76");
    assert!(!test([100, 100], [4, 11]), "less than three times");
    assert!(!test([100, 100], [1, 3]), "the first sample has 5 losses: it goes on");
    let mut desk = Desk::new(&[STEADY, PATIENT]);
    assert!(!tested(&mut desk, [100, 100], [4, 12]), "nobody asked");
}

#[test]
fn who_was_found_last_is_told_from_the_others() {
    let found = |desk: &Desk| {
        let mut signals = Vec::new();
        desk.filter.observe(desk.now, &mut |name, value| signals.push((name, value)));
        signals.into_iter().find(|(name, _)| *name == "found_last").unwrap().1
    };
    let mut desk = Desk::new(&[STEADY]);
    (0..3).for_each(|_| desk.list(&[1, 2]));
    assert_eq!(found(&desk), -1.0);
    for (flow, lost) in [(1, 12), (2, 15)] {
        for lost in [4, lost] {
            for _ in 0..5 {
                let id = desk.filter.monitored.find(FlowKey(flow)).unwrap();
                (0..100).for_each(|_| desk.filter.monitored[id].record.arrived());
                (1..lost).for_each(|_| desk.filter.monitored[id].record.lost());
                desk.list(&[flow]);
            }
        }
        assert_eq!(found(&desk), flow as f64);
    }
}

/// Three samples, of the lists before the second raise and later ones, make the pairs that the fifth
/// raise judges (all is lost in the list before the flow is monitored: no pair). A flow that sends on is
/// found there, one that yields is not.
#[test]
fn pairs_of_samples_find_who_sends_on() {
    let found = |lists: [(u32, u32); 5]| {
        let mut desk = Desk::new(&[STEADY, ("unresponsive_rule", "pairs")]);
        (0..3).for_each(|_| desk.list(&[1]));
        lists.into_iter().position(|(packets, lost)| {
            (0..3).for_each(|_| desk.list(&[1]));
            (0..packets).for_each(|_| desk.flow_1().record.arrived());
            (1..lost).for_each(|_| desk.flow_1().record.lost());
            desk.list(&[1]);
            desk.filter.unresponsive == 1
        })
    };
    assert_eq!(found([(100, 4), (100, 6), (100, 9), (100, 13), (100, 19)]), Some(3));
    assert_eq!(found([(100, 4), (70, 5), (48, 6), (33, 8), (22, 8)]), None);
}

/// Raised by twice the quantum, lowered by 1.5 every five lists down to 0.0025.
#[test]
fn the_unresponsive_are_cut_sooner_and_released_later() {
    let mut desk = Desk::new(&[STEADY]);
    assert!(tested(&mut desk, [100, 100], [4, 12]));
    let before = desk.p(1).unwrap();
    while desk.p(1) == Some(before) {
        desk.list(&[1]);
    }
    close(desk.p(1), before + 2.0 * 0.02);
    desk.flow_1().p = 0.06;
    (0..5).for_each(|_| desk.list(&[]));
    close(desk.p(1), 0.04);
    let mut lists = 0;
    while desk.p(1).is_some() {
        desk.list(&[]);
        lists += 1;
    }
    // 0.04/1.5⁶ = 0.0035, 0.04/1.5⁷ = 0.0023.
    assert_eq!(lists, 7 * 5);
    assert_eq!(desk.filter.unresponsive, 0);
}

#[test]
fn in_byte_mode_drops_weigh_their_bytes() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("mode", "bytes")]);
    for _ in 0..3 {
        for (flow, len) in [(1, 500), (2, 1500)] {
            desk.filter.signalled(&packet(flow, len));
        }
        desk.list(&[]);
    }
    // 1500 and 4500 bytes, 3000 on average.
    close(desk.p(1), 0.01);
    close(desk.p(2), 0.02);
}

#[test]
fn a_full_history_forgets_the_flows_with_the_fewest_drops() {
    let mut desk = Desk::new(&[STEADY, ("history", "10")]);
    desk.list(&[1, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9]);
    let mut left: Vec<u64> = desk.filter.history.iter().map(|(key, _)| key.0).collect();
    left.sort_unstable();
    assert_eq!(left, [1, 2]);
}

/// Of seven flows five may stay: those with one drop go, then those with two, and nobody more.
#[test]
fn a_full_history_forgets_no_more_than_it_has_to() {
    let mut desk = Desk::new(&[STEADY, ("history", "10")]);
    desk.list(&[1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 7, 7]);
    assert_eq!(desk.filter.history.iter().count(), 5);
}

#[test]
fn a_full_table_gives_up_the_monitored_flow_with_the_lowest_probability() {
    let mut desk = Desk::new(&[STEADY, PATIENT, ("monitored", "2")]);
    (0..3).for_each(|_| desk.list(&[1, 1, 2]));
    assert_eq!(desk.monitored(), [1, 2]);
    for _ in 0..3 {
        desk.list(&[3, 4]);
    }
    // Flow 2 has 1/75, flow 1 and the newcomers 2 %: one newcomer a list.
    assert_eq!(desk.monitored().len(), 2);
    assert!(desk.p(2).is_none() && desk.p(1).is_some());
}

#[test]
fn r_follows_the_drop_rate_between_its_bounds_while_there_is_room() {
    let settings = [STEADY, ("wanted_drop_rate", "0.01"), ("max_rtt", "60ms")];
    let mut desk = Desk::new(&settings);
    let mut seen = Vec::new();
    for list in 0..30 {
        if list < 15 {
            desk.list(&[])
        } else {
            desk.end_list()
        }
        if list == 14 {
            desk.filter.rules.p = 0.0;
        }
        if list % 5 == 0 {
            seen.push((desk.filter.rules.rtt * 1e4).round());
        }
    }
    // 40 · 1.25, · 1.25 = 62.5, then down again.
    assert_eq!(seen, [500.0, 600.0, 600.0, 480.0, 400.0, 400.0]);
    let mut full = Desk::new(&[&settings[..], &[("monitored", "1")]].concat());
    (0..10).for_each(|_| full.list(&[1]));
    assert_eq!(full.filter.rules.rtt, 0.04, "no room");
}

/// Thousands of flows of different weight come, go, are monitored, released, thrown out of either table and
/// forgotten. After each list, and once within it, what is kept up is what a walk through all flows finds.
#[test]
fn what_is_kept_up_is_what_a_walk_finds() {
    let settings: [&[(&str, &str)]; 5] = [
        &[("monitored", "8192"), ("history", "8192")],
        &[("monitored", "50"), ("history", "500"), ("unresponsive_rule", "pairs")],
        &[("identification", "single-list"), ("burst", "2"), ("m", "8"), ("monitored", "200")],
        &[("k", "1"), ("m", "1"), ("history", "100")],
        &[("mode", "bytes"), ("last_list", "true"), ("k", "2"), ("monitored", "1000")],
    ];
    for (case, settings) in settings.into_iter().enumerate() {
        let mut desk = Desk::new(settings);
        let (mut rng, mut monitored, mut identified) = (Rng::new(9, 0), 0, 0);
        for list in 0..60 {
            for packet in 0..20_000 {
                // Square roots of uniform numbers: flow 6000 sends most. Those that send change every ten lists.
                let drawn = libm::sqrt(rng.below(36_000_000) as f64) as u64;
                let flow = (drawn + 1000 * (list / 10)) % 6000;
                let sent = Meta {
                    flow: FlowKey(flow),
                    len: [1000, 0][usize::from(packet % 50 == 7)],
                    ..Meta::default()
                };
                let mut cx = Cx { now: desk.now, rng: &mut desk.rng };
                if !desk.filter.drops(&sent, |_| true, &mut cx) && rng.chance(0.4) {
                    desk.filter.signalled(&sent);
                }
                if packet == 10_000 || packet == 19_999 {
                    if packet == 19_999 {
                        desk.end_list();
                    }
                    let RedPd { history, monitored, found, rules, .. } = &desk.filter;
                    let all = monitored.iter().map(|(.., flow)| &flow.drops);
                    let walk =
                        Found::by_walk(all.chain(history.iter().map(|(_, drops)| drops)), rules);
                    assert_eq!(*found, walk, "case {case}, list {list}");
                    assert!(
                        packet == 10_000 || history.is_consistent(rules),
                        "case {case}, list {list}"
                    );
                    assert!(history.iter().all(|(_, drops)| packet == 10_000 || !drops.are_none()));
                }
            }
            monitored = monitored.max(desk.filter.monitored.len());
            identified = identified.max(desk.filter.identified);
        }
        assert!(identified > 0, "case {case}: nothing was identified");
        assert!(
            monitored >= [5000, 50, 200, 1000, 1000][case],
            "case {case}: {monitored} monitored"
        );
    }
}

/// Ten million flows with a drop each, among them a flow that is monitored already and one that
/// becomes so: both stay, memory is what it was, and the list's end costs as much as the tables.
#[test]
fn a_flood_of_flows_takes_nothing_from_the_monitored() {
    let mut desk = Desk::new(&[PATIENT]);
    (0..3).for_each(|_| desk.list(&[1]));
    let state = desk.filter.state();
    let mut spoofed = 1000;
    for _ in 0..100 {
        for i in 0..100_000 {
            spoofed += 1;
            desk.signal(&[spoofed]);
            // The two heavy flows have a drop in a thousand each.
            match i % 1000 {
                7 => desk.signal(&[1]),
                8 => desk.signal(&[2]),
                _ => {}
            }
        }
        desk.filter.arrived = 1_000_000;
        desk.end_list();
    }
    assert_eq!(desk.monitored(), [1, 2]);
    assert!(desk.filter.history.iter().count() <= 2048);
    assert_eq!(desk.filter.state(), state);
}

/// A flow of γ·f(R, p) packets, each dropped with probability p: the share of M lists in which it
/// is identified. Windows overlap; σ is taken as if every fifth counted: √(0.25·5/50 000) = 0.005.
#[test]
fn identification_meets_equation_4() {
    let desk = Desk::new(&[]);
    let mut rules = desk.filter.rules.clone();
    let mut rng = Rng::new(8, 0);
    for p in [0.01, 0.05, 0.1] {
        for gamma in [0.5, 1.0, 1.5, 2.0, 3.0] {
            let packets = gamma * 0.6 / p;
            let (mut drops, mut owed, mut identified) = (Drops::default(), 0.0, 0);
            for list in 0..50_000 {
                rules.list = list;
                owed += packets;
                let sent = f64::floor(owed);
                owed -= sent;
                drops.forget(rules.place(list));
                let lost = (0..sent as u32).map(|_| u32::from(rng.chance(p))).sum();
                drops.add(rules.place(list), lost);
                identified += u32::from(rules.identified(&drops));
            }
            let share = f64::from(identified) / 5e4;
            let expected = equations::identification(gamma, p, 3, 5);
            assert!((share - expected).abs() < 0.02, "γ {gamma} at {p}: {share} for {expected}");
        }
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let refused = |settings: &[(&str, &str)]| {
        RedPd::new(&config(settings), &env(10), &mut Rng::new(1, 0)).err().map(|e| e.key)
    };
    assert_eq!(refused(&[("k", "4"), ("m", "3")]), Some("k"));
    assert_eq!(refused(&[("wanted_drop_rate", "0.01"), ("max_rtt", "39ms")]), Some("max_rtt"));
    assert_eq!(refused(&[("max_rtt", "39ms")]), None);
}

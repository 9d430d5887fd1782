//! Stories of bins, hashes that move, and the penalty, told with SFB.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::bins::Bin;
use super::*;
use crate::context::Backlog;
use crate::packet::FlowKey;
use crate::policy::lab::{Fate, Lab, config, env, refused};
use crate::policy::sfb::{ABOUT, BlueBin, Sfb};
use crate::time::Duration;

type Story = Lab<Sfb>;

const EARLY: Fate = Fate::Dropped(Cause::Early);
const PENALTY: Fate = Fate::Dropped(Cause::Penalty);

/// Settings with which two packets of a flow are too many, and each that comes on top brings its
/// bins to saturation for good.
fn strict<'a>(extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut settings = vec![("bin_size", "1p"), ("increment", "1"), ("decrement", "0")];
    settings.extend(extra);
    settings.to_vec()
}

/// The preset `linux`, as strict, with these settings over it.
fn linux<'a>(extra: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let (_, preset) = ABOUT.presets.iter().find(|(name, _)| *name == "linux").unwrap();
    let mut settings = preset.to_vec();
    settings.extend(strict(&[("bin_limit", "1p")]));
    settings.extend(extra);
    settings
}

/// Makes a flow known as nonresponsive and empties the queue.
fn convict(lab: &mut Story, flow: u64) {
    (0..3).for_each(|_| _ = lab.arrive_from(flow));
    while lab.depart().is_some() {}
}

/// The bins of a flow in the current set, by level.
fn bins(sfb: &Sfb, flow: u64) -> Vec<usize> {
    sfb.current.of(FlowKey(flow)).collect()
}

/// The flows that share all bins with flow 0.
fn twins(sfb: &Sfb) -> Vec<u64> {
    (1..1000).filter(|&flow| bins(sfb, flow) == bins(sfb, 0)).collect()
}

#[test]
fn a_flow_is_nonresponsive_if_all_its_bins_are() {
    let settings =
        strict(&[("bins", "2"), ("levels", "3"), ("penalty", "boxtime"), ("boxtime", "10s")]);
    let mut lab = Story::new(100, &settings);
    convict(&mut lab, 0);
    lab.arrive_from(0); // takes the Boxtime
    lab.depart();
    let twins = twins(lab.queue.policy());
    // One in 2³ of 999: 124.9, σ = 10.5; the band is 5 σ.
    assert!((72..178).contains(&twins.len()), "{}", twins.len());
    for flow in 1..1000 {
        let expected = if twins.contains(&flow) { PENALTY } else { Fate::Queued };
        assert_eq!(lab.arrive_from(flow), expected, "{flow}");
        lab.depart();
    }
}

#[test]
fn full_bins_drop_one_by_one_or_all_together() {
    // Flow 0 fills its bins; another flow shares one of two.
    for (overflow, fate) in [("any", EARLY), ("all", Fate::Queued)] {
        let settings =
            [("bins", "2"), ("bin_size", "2p"), ("overflow", overflow), ("increment", "0")];
        let mut lab = Story::new(100, &settings);
        let sfb = lab.queue.policy();
        let half = (1..100)
            .find(|&f| bins(sfb, f)[0] == bins(sfb, 0)[0] && bins(sfb, f)[1] != bins(sfb, 0)[1])
            .unwrap();
        (0..3).for_each(|_| assert_eq!(lab.arrive_from(0), Fate::Queued));
        assert_eq!(lab.arrive_from(0), EARLY, "3 > 2 on both levels");
        assert_eq!(lab.arrive_from(half), fate, "{overflow}");
    }
}

#[test]
fn a_limit_above_the_size_lets_p_rise_before_packets_are_dropped() {
    let settings =
        [("bin_size", "1p"), ("bin_limit", "3p"), ("increment", "0.25"), ("ecn", "true")];
    let mut lab = Story::new(100, &settings);
    let fates: Vec<bool> = (0..5).map(|_| lab.arrive_from(0) != EARLY).collect();
    assert_eq!(fates, [true, true, true, true, false], "the fifth finds 4");
    assert_eq!(lab.signal("p_max"), 0.75, "the third to fifth find more than 1");
}

#[test]
fn beyond_mark_up_to_a_growing_share_of_signals_are_drops() {
    for (p, up_to, expected) in [
        (0.3, 0.5, 0.0),
        (0.5, 0.5, 0.0),
        (0.75, 0.5, 0.5), // half-way from ½ to 1: of 75 % signals 50 % are drops
        (1.0, 0.5, 1.0),
        (1.0, 1.0, 0.0), // never
        (0.4, 0.0, 0.4), // always
    ] {
        assert!((certain_drop(p, up_to) - expected).abs() < 1e-12);
    }
}

#[test]
fn a_moving_hash_sets_everybody_on_parole() {
    let settings = strict(&[
        ("hash", "moving"),
        ("hash_interval", "100ms"),
        ("penalty", "boxtime"),
        ("boxtime", "10s"),
    ]);
    let mut lab = Story::new(100, &settings);
    convict(&mut lab, 0);
    lab.arrive_from(0);
    lab.wait_ms(99);
    assert_eq!(lab.arrive_from(0), PENALTY);
    let before = bins(lab.queue.policy(), 0);
    lab.wait_ms(1);
    assert_eq!(lab.arrive_from(0), Fate::Queued, "the interval is over: on parole");
    assert_ne!(bins(lab.queue.policy(), 0), before, "one in 529 seeds would fail here");
    assert_eq!((lab.signal("hash_age_s"), lab.signal("saturated")), (0.0, 0.0));
    // Bins count from the change on: the packet from before is not among them.
    assert_eq!(lab.arrive_from(0), Fate::Queued);
    assert_eq!(lab.arrive_from(0), EARLY);
    lab.wait_ms(250);
    lab.arrive_from(1);
    assert_eq!(lab.signal("hash_age_s"), 0.05, "changes at multiples of the interval");
}

#[test]
fn a_double_buffered_hash_knows_whom_the_last_one_knew() {
    for (warm_up, seen_at, fate) in
        [("none", 50, PENALTY), ("20ms", 80, PENALTY), ("20ms", 79, Fate::Queued)]
    {
        let settings = strict(&[
            ("hash", "double-buffered"),
            ("hash_interval", "100ms"),
            ("warm_up", warm_up),
            ("penalty", "boxtime"),
            ("boxtime", "10s"),
        ]);
        let mut lab = Story::new(100, &settings);
        lab.wait_ms(seen_at);
        convict(&mut lab, 0);
        assert_eq!(lab.arrive_from(0), Fate::Queued, "takes the Boxtime");
        lab.depart();
        lab.wait_ms(100 - seen_at);
        assert_eq!(lab.arrive_from(0), fate, "{warm_up} {seen_at}");
        assert_eq!(lab.arrive_from(1), Fate::Queued, "a stranger");
    }
}

/// Two flows' packets wait while the second set learns, one of them known as nonresponsive.
#[test]
fn linux_s_second_set_counts_nonresponsive_packets_only() {
    let queued = |settings: &[(&str, &str)]| {
        let mut lab = Story::new(100, settings);
        convict(&mut lab, 0);
        assert_eq!((lab.arrive_from(0), lab.arrive_from(1)), (Fate::Queued, Fate::Queued));
        let next = lab.queue.policy().next.as_ref().unwrap();
        next.bins.iter().map(|bin| bin.len).sum::<u64>()
    };
    let warm = [("warm_up", "600s")];
    assert_eq!(queued(&linux(&warm)), 8, "one packet, in a bin on each of eight levels");
    assert_eq!(queued(&linux(&[warm[0], ("warm_up_by", "verdict")])), 16);
}

/// A packet that full bins drop teaches the second set nothing, so that it stays clean.
#[test]
fn linux_s_second_set_learns_nothing_from_full_bins() {
    let saturated = |settings: &[(&str, &str)]| {
        let mut lab = Story::new(100, settings);
        (0..9).for_each(|_| _ = lab.arrive_from(0));
        lab.wait_ms(600_000);
        lab.arrive_from(1);
        lab.signal("saturated")
    };
    let warm = [("warm_up", "600s")];
    assert_eq!(saturated(&linux(&warm)), 0.0);
    assert_eq!(saturated(&linux(&[warm[0], ("warm_up_by", "verdict")])), 1.0 / 16.0);
}

/// The set that a flow made suspicious is the current one again two changes later. It knows the same
/// bins, and another hash says whose they are.
#[test]
fn linux_s_hash_changes_leave_others_with_what_a_flow_did() {
    let shape = [("levels", "1"), ("bins", "8")];
    let mut lab = Story::new(100, &linux(&shape));
    convict(&mut lab, 0);
    assert_eq!(lab.arrive_from(0), Fate::Queued, "a token");
    assert_eq!(lab.signal("saturated"), 1.0 / 8.0);
    lab.wait_ms(600_000);
    lab.arrive_from(1);
    assert_eq!(lab.signal("saturated"), 0.0, "the other set knows nothing");
    lab.wait_ms(900_000);
    lab.arrive_from(1);
    assert_eq!((lab.signal("saturated"), lab.signal("hash_age_s")), (1.0 / 8.0, 0.0));
    let sfb = lab.queue.policy();
    let suspicious = sfb.current.bins.iter().position(|bin| bin.account.p(&sfb.rule) == 1.0);
    let len = |sfb: &Sfb| sfb.current.bins[suspicious.unwrap()].len;
    let heir = (2..1000).find(|&flow| bins(sfb, flow)[0] == suspicious.unwrap()).unwrap();
    let waiting = len(sfb);
    assert!(waiting >= 1, "the first flow's packet");
    lab.wait_ms(599_999);
    lab.arrive_from(heir);
    assert_eq!(lab.signal("hash_age_s"), 599.999, "an interval counts from the last change");
    assert_eq!(lab.depart(), Some(3));
    assert_eq!(len(lab.queue.policy()), waiting, "one is in, one is out");
}

#[test]
fn a_full_buffer_teaches_linux_s_bins_nothing() {
    let p_max = |settings: &[(&str, &str)]| {
        let mut lab = Story::new(2, settings);
        (0..2).for_each(|_| assert_eq!(lab.arrive_from(0), Fate::Queued));
        assert_eq!(lab.arrive_from(0), Fate::Dropped(Cause::Overflow));
        lab.signal("p_max")
    };
    assert_eq!(p_max(&linux(&[])), 0.0);
    assert_eq!(p_max(&linux(&[("full_teaches", "true")])), 1.0, "two is one too many");
}

/// Drives a policy with arrivals, departures, and drops from anywhere, and holds each bin's
/// length against a count that is kept beside it.
fn lengths_are_those_of_packets_that_entered(settings: &[(&str, &str)], steps: u32) {
    let mut rng = Rng::new(3, 0);
    let mut dice = Rng::new(4, 0);
    let env = env(12);
    let mut sfb = Sfb::new(&config(settings), &env, &mut rng).unwrap();
    let mut now = env.now;
    let mut queue: Vec<(Meta, Tag, u32)> = Vec::new();
    // By the epoch in which a set judges: the amount in each of its bins.
    let mut books: VecDeque<Vec<u64>> = vec![vec![0; 15]; 2].into();
    let mut first = 0;
    let mut amounts: Vec<(u32, u32, Vec<usize>, u64)> = Vec::new();
    let (mut id, mut changes) = (0, 0);
    let kept = sfb.config.hash_change == HashChange::Kept;
    for _ in 0..steps {
        now += Duration::from_nanos(dice.bits() % 200_000);
        let gone = match dice.below(20) {
            0..10 => {
                let flow = FlowKey(dice.below(30) as u64);
                let meta = Meta { flow, len: 40 + dice.below(1000) as u32, ..Meta::default() };
                let backlog = Backlog {
                    packets: queue.len() as u32,
                    bytes: queue.iter().map(|(m, ..)| u64::from(m.len)).sum(),
                };
                let q = View { backlog, limit: env.limit, ring: &[], head: 0 };
                let mut cx = Cx { now, rng: &mut rng };
                let verdict = sfb.on_arrival(&meta, &q, &mut cx);
                while first < sfb.epoch {
                    first += 1;
                    changes += 1;
                    let stale = books.pop_front().unwrap();
                    books.push_back(if kept { stale } else { vec![0; 15] });
                }
                let enters = matches!(verdict, Arrival::Admit | Arrival::Signal(_));
                if enters && queue.len() < 12 {
                    let amount =
                        if sfb.measure == Measure::Bytes { u64::from(meta.len) } else { 1 };
                    let tag = sfb.admitted(&meta, &mut cx);
                    let learns = sfb.warming(now) && sfb.config.warm_up_by == WarmUpBy::Verdict
                        || sfb.arriving.1.is_some();
                    let sets = [Some(&sfb.current), sfb.next.as_ref().filter(|_| learns)];
                    for (age, set) in (0..).zip(sets) {
                        let Some(set) = set else { continue };
                        let entered: Vec<usize> =
                            (0..).zip(set.of(flow)).map(|(l, b)| l * 5 + b).collect();
                        entered.iter().for_each(|&b| books[age as usize][b] += amount);
                        amounts.push((id, first + age, entered, amount));
                    }
                    queue.push((meta, tag, id));
                    id += 1;
                }
                None
            }
            10..17 if !queue.is_empty() => Some((0, Exit::Sent)),
            17.. if !queue.is_empty() => Some((dice.below(queue.len()), Exit::Dropped)),
            _ => None,
        };
        if let Some((position, exit)) = gone {
            let (meta, tag, gone) = queue.remove(position);
            sfb.left(&meta, tag, exit, &mut Cx { now, rng: &mut rng });
            amounts.retain(|(id, epoch, entered, amount)| {
                if *id == gone && (kept || *epoch >= first) {
                    let book = &mut books[epoch.abs_diff(first) as usize % 2];
                    entered.iter().for_each(|&b| book[b] -= amount);
                }
                *id != gone
            });
        }
        let lens = |set: &Set<BlueBin>| set.bins.iter().map(|b| b.len).collect::<Vec<_>>();
        assert_eq!(lens(&sfb.current), books[0]);
        if let Some(next) = &sfb.next {
            assert_eq!(lens(next), books[1]);
        }
    }
    assert!(id > steps / 10, "packets entered");
    assert_eq!(changes > 100, sfb.config.hash != Hash::Static, "the hash changed {changes} times");
}

#[test]
fn each_bin_counts_the_queued_packets_that_entered_it() {
    for mode in ["packets", "bytes"] {
        for (hash, warm_up, by, change) in [
            ("static", "none", "verdict", "afresh"),
            ("moving", "none", "verdict", "afresh"),
            ("double-buffered", "none", "verdict", "afresh"),
            ("double-buffered", "1ms", "verdict", "afresh"),
            ("double-buffered", "1ms", "length", "afresh"),
            ("double-buffered", "1ms", "verdict", "kept"),
            ("double-buffered", "none", "length", "kept"),
        ] {
            let settings = [
                ("levels", "3"),
                ("bins", "5"),
                ("hash", hash),
                ("warm_up", warm_up),
                ("warm_up_by", by),
                ("hash_change", change),
                ("hash_interval", "2ms"),
                ("mode", mode),
                ("increment", "0.3"),
                ("decrement", "0.1"),
                ("bin_size", "2p"),
            ];
            lengths_are_those_of_packets_that_entered(&settings, 500_000);
        }
    }
}

/// Packets of one nonresponsive flow that pass in 1000 ms, one offered in each.
fn passing(settings: &[(&str, &str)]) -> Vec<u64> {
    let mut lab = Story::new(100, &strict(settings));
    convict(&mut lab, 0);
    (0..1000)
        .filter(|_| {
            let fate = lab.arrive_from(0);
            lab.depart();
            lab.wait_ms(1);
            assert!([Fate::Queued, PENALTY].contains(&fate));
            fate == Fate::Queued
        })
        .collect()
}

#[test]
fn a_boxtime_has_to_be_exceeded() {
    // More than 50 ms: the packet of the 51st millisecond.
    let at = passing(&[("penalty", "boxtime"), ("boxtime", "50ms")]);
    assert_eq!(at, (0..1000).step_by(51).collect::<Vec<_>>());
}

#[test]
fn a_penalty_rate_is_kept_and_may_be_overdrawn_by_its_burst() {
    // 80 kbit/s: 100 ms a packet. Served on the clock, 1 ns late: the packets of 0, 101, 201 … ms.
    let at = passing(&[("penalty_rate", "80kbit")]);
    assert_eq!(at.len(), 10, "{at:?}");
    let at = passing(&[("penalty_rate", "80kbit"), ("penalty_burst", "3p")]);
    assert_eq!(at[..4], [0, 1, 2, 3], "one, and three at once");
    assert_eq!(at.len(), 13);
}

/// In Linux tokens are counted only when the last is gone, and a count that finds none begins the
/// next token anew.
#[test]
fn linux_s_penalty_lets_nothing_pass_while_packets_follow_closely() {
    let at = passing(&linux(&[]));
    assert_eq!(at, (0..20).collect::<Vec<_>>(), "the burst, and nothing in the second behind it");
    let mut lab = Story::new(100, &linux(&[("penalty_burst", "2p")]));
    convict(&mut lab, 0);
    let mut pass = |ms| {
        lab.wait_ms(ms);
        let passes = lab.arrive_from(0) == Fate::Queued;
        lab.depart();
        passes
    };
    assert_eq!([0, 0, 0, 0].map(&mut pass), [true, true, true, false]);
    assert_eq!([99, 99, 99].map(&mut pass), [false; 3]);
    assert_eq!([100, 99, 1].map(&mut pass), [true, false, false]);
    assert_eq!([299, 0, 0, 99].map(&mut pass), [true, true, false, false]);
    assert_eq!([9000, 0, 0, 0].map(&mut pass), [true, true, true, false]);
}

/// Boxtimes are uniform on 25 … 75 ms, rounded up to the next packet: 50.5 ms on average with
/// σ = 14.4; of 1000 ms that is 20 packets, σ = 1.3.
#[test]
fn a_random_boxtime_has_the_same_mean() {
    let at = passing(&[("penalty", "boxtime-random")]);
    assert!((14..=26).contains(&at.len()), "{}", at.len());
    let gaps: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|gap| (25..=76).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() > 20, "they vary");
}

/// One nonresponsive flow among ten, on a link of 8 Mbit/s or 1000 packets a second: after the
/// first interval it passes at a tenth of that.
#[test]
fn the_penalty_follows_the_estimated_fair_share() {
    let settings = [
        ("penalty", "fair-share"),
        ("share_interval", "500ms"),
        ("penalty_rate", "8kbit"),
        ("bins", "1000"),
    ];
    let mut lab = Story::new(100, &strict(&settings));
    convict(&mut lab, 0);
    let mut passed = [0; 4];
    for ms in 0..2000 {
        lab.arrive_from(1 + ms % 9);
        lab.depart();
        passed[ms as usize / 500] += u32::from(lab.arrive_from(0) == Fate::Queued);
        lab.depart();
        lab.wait_ms(1);
    }
    assert_eq!(passed[0], 1, "one packet a second until there is an estimate");
    // 10.01 flows are counted: 10.01 ms a packet, on a clock of 1 ms that is 11 for most.
    assert!(passed[1..].iter().all(|n| (44..=50).contains(n)), "{passed:?}");
}

/// A queue with 64 virtual buckets, under the `seed`-th secret.
fn small(seed: u64) -> Sfb {
    let settings = [("levels", "2"), ("bins", "8")];
    Sfb::new(&config(&settings), &env(100), &mut Rng::new(seed, 0)).unwrap()
}

/// How many of `flows` share all bins with flow `victim`.
fn hits(sfb: &Sfb, victim: u64, flows: &[u64]) -> u32 {
    flows.iter().filter(|&&f| f != victim && bins(sfb, f) == bins(sfb, victim)).count() as u32
}

/// 500 secrets with 64 tries each meet a victim in one of 64 cases: 500, σ = √(500·63/64) = 22;
/// the band is 5 σ.
fn assert_chance(what: &str, attack: impl Fn(u64, &mut Sfb) -> (u64, Vec<u64>)) {
    let met: u32 = (0..500)
        .map(|seed| {
            let mut sfb = small(seed);
            let (victim, flows) = attack(seed, &mut sfb);
            assert_eq!(flows.len(), 64);
            hits(&sfb, victim, &flows)
        })
        .sum();
    assert!((390..=610).contains(&met), "{what}: {met} of 500");
}

/// A sender that knows the algorithm, the victim and all of its own past successes, but not the secret,
/// meets the victim's bins no more often than by chance.
#[test]
fn without_the_secret_no_sender_aims_better_than_chance() {
    let flips = |flow: u64| (0..64).map(|bit| flow ^ 1 << bit).collect::<Vec<_>>();
    let next = |flow: u64| (1..=64).map(|i| flow.wrapping_add(i)).collect::<Vec<_>>();
    let success = |sfb: &Sfb| (1000..).find(|&flow| hits(sfb, 7, &[flow]) == 1).unwrap();
    assert_chance("counting", |_, _| (7, next(7)));
    assert_chance("one bit off", |_, _| (7, flips(7)));
    assert_chance("one bit off, at any flow", |seed, _| {
        let flow = Rng::new(seed, 9).bits();
        (flow, flips(flow))
    });
    assert_chance("what works under a secret of one's own", |seed, _| {
        let own = small(seed + 1000);
        (7, (1000..).filter(|&flow| hits(&own, 7, &[flow]) == 1).take(64).collect())
    });
    assert_chance("next to a success", |_, sfb| (7, next(success(sfb))));
    assert_chance("one bit off a success", |_, sfb| (7, flips(success(sfb))));
    assert_chance("the difference of a success, again", |_, sfb| {
        let difference = success(sfb) ^ 7;
        (7, (1..=64).map(|i| 7 ^ difference.wrapping_mul(2 * i + 1)).collect())
    });
    assert_chance("what worked under the last secret", |seed, sfb| {
        let worked = (1000..).filter(|&flow| hits(sfb, 7, &[flow]) == 1).take(64).collect();
        sfb.current.start_afresh(&sfb.rule, &mut Rng::new(seed, 1));
        (7, worked)
    });
}

/// With the secret it takes some 64 tries on paper, and the victim is shut out. More than 20 times
/// as many are needed once in 10⁹ cases.
#[test]
fn with_the_secret_anybody_can_be_shut_out() {
    let settings =
        strict(&[("bins", "8"), ("penalty", "boxtime"), ("boxtime", "10s"), ("levels", "2")]);
    let mut lab = Story::new(100, &settings);
    let attacker =
        (1000..2280).find(|&flow| hits(lab.queue.policy(), 7, &[flow]) == 1).expect("found");
    assert_eq!(lab.arrive_from(7), Fate::Queued);
    convict(&mut lab, attacker);
    lab.arrive_from(attacker);
    assert_eq!(lab.arrive_from(7), PENALTY);
}

/// Feng02 §IV.C has 529 buckets for 400 flows, and none of them hurt by another.
#[test]
fn distinct_flows_have_a_bucket_each() {
    for (levels, per_level) in [("2", "23"), ("1", "46"), ("4", "16"), ("3", "1"), ("16", "2")] {
        let settings = [("levels", levels), ("bins", per_level), ("assignment", "distinct")];
        let mut sfb = Sfb::new(&config(&settings), &env(10), &mut Rng::new(2, 0)).unwrap();
        let n = per_level.parse::<u64>().unwrap().pow(levels.parse().unwrap());
        for flows in [0..n, 7..n + 7] {
            let met: std::collections::BTreeSet<_> = flows.map(|flow| bins(&sfb, flow)).collect();
            assert_eq!(met.len() as u64, n, "{levels} x {per_level}");
        }
        let before: Vec<_> = (0..n).map(|flow| bins(&sfb, flow)).collect();
        sfb.current.start_afresh(&sfb.rule, &mut Rng::new(3, 0));
        let after: Vec<_> = (0..n).map(|flow| bins(&sfb, flow)).collect();
        assert_eq!(before == after, n == 1, "another order");
    }
    let many = [("levels", "2"), ("bins", "257"), ("assignment", "distinct")];
    assert_eq!(refused::<Sfb>(&many).key, "assignment");
}

#[test]
fn shares_of_the_buffer_are_the_default_sizes() {
    let sfb = |settings: &[(&str, &str)], env: &Env| {
        Sfb::new(&config(settings), env, &mut Rng::new(1, 0)).unwrap().bin_limit
    };
    assert_eq!(sfb(&[], &env(200)), 13, "Feng02 §IV.B: 1.5/23 of 200 packets is 13.04");
    let bytes = Env { limit: crate::units::Limit::bytes(200_000).unwrap(), ..env(1) };
    assert_eq!(sfb(&[], &bytes), 13, "200 kB");
    assert_eq!(sfb(&[("mode", "bytes")], &bytes), 13_043);
}

#[test]
fn state_is_the_bins_and_a_tag_a_packet() {
    let state = |hash| Story::new(10, &[("hash", hash)]).queue;
    let (one, two) = (state("static"), state("double-buffered"));
    use crate::qdisc::Qdisc;
    let per_set = 46 * size_of::<Bin<BlueBin>>() as u64;
    assert_eq!(two.state().queue - one.state().queue, per_set);
    assert_eq!(one.state().per_flow, 0);
    assert_eq!(one.state().per_packet, 24);
}

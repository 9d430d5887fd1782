use super::*;
use crate::fifo::Fifo;
use crate::packet::{Ecn, FlowKey};
use crate::policy::drop_tail::DropTail;
use crate::qdisc::Discipline as _;
use crate::rng::Rng;
use crate::units::Limit;
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
use std::vec::Vec;

const MS: u64 = 1_000_000;

/// 8 Mb/s over a channel of 80, which takes 100 ns a byte. A request has its grant two intervals later.
const PLAIN: Upstream = Upstream {
    channel: Rate::from_mbit(80),
    map: Duration::from_millis(2),
    turnaround: Duration::from_millis(3),
    most: None,
    burst: 3044,
    peak: None,
    backoff: 1,
    guaranteed: None,
};

type Modem = Docsis<Fifo<DropTail, u32>, u32>;

fn modem(upstream: Upstream) -> Modem {
    let env = Env::new(Limit::packets(10_000).unwrap(), Rate::from_mbit(8));
    let queue = Fifo::new(&Default::default(), &env, &mut Rng::new(1, 0)).unwrap();
    Docsis::around(queue, upstream, &env).unwrap()
}

/// When each of `arrivals` (ns, bytes) has been sent, ns, as a link's server asks for it.
fn departures(modem: &mut Modem, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let mut rng = Rng::new(7, 0);
    let (mut left, mut asks, mut next) = (Vec::new(), None, 0);
    loop {
        let coming = arrivals.get(next).map(|a| a.0);
        let due = asks.filter(|&at| coming.is_none_or(|coming| at <= coming));
        if let Some(at) = due {
            let now = Instant::from_nanos(at);
            let sent = modem.dequeue(&mut Cx { now, rng: &mut rng }, &mut ());
            asks = match sent {
                Some((_, id)) => {
                    assert_eq!(id as usize, left.len(), "in order");
                    let until = modem.aggregate().unwrap().until.as_nanos();
                    left.push(until);
                    Some(until)
                }
                None => modem.ready_at().map(Instant::as_nanos),
            };
            assert!(asks.is_none_or(|next| next > at));
        } else if let Some(at) = coming {
            let arrived = Instant::from_nanos(at);
            let meta = Meta { arrived, flow: FlowKey(1), len: arrivals[next].1, ecn: Ecn::NotEct };
            modem.enqueue(meta, next as u32, &mut Cx { now: arrived, rng: &mut rng }, &mut ());
            asks = asks.or(Some(at));
            next += 1;
        } else {
            return left;
        }
    }
}

/// The naive model: each interval from time 0 on, each byte in a list, requests in a list.
fn naive(upstream: Upstream, rate: u64, arrivals: &[(u64, u32)]) -> Vec<u64> {
    let map = upstream.map.as_nanos();
    let channel = upstream.channel.bits_per_second();
    let part = |rate: u64| u128::from(rate) * u128::from(map);
    let bytes = |units: u128| (units / BYTE) as u64;
    // Packet and bytes left.
    let mut unsent: Vec<(usize, u64)> = Vec::new();
    let mut requests: Vec<(u64, u64)> = Vec::new();
    let mut left = Vec::new();
    let (mut next, mut interval) = (0, 0);
    let bucket =
        |burst: u64, rate: u64| u128::from(burst) * BYTE + u128::from(bytes(part(rate)) + 1) * BYTE;
    let peak = upstream.peak.map(Rate::bits_per_second);
    let (full, full_peak) = (bucket(upstream.burst.into(), rate), bucket(1522, peak.unwrap_or(0)));
    let (mut tokens, mut peaks) = (full, full_peak);
    while left.len() < arrivals.len() {
        let start = interval * map;
        if interval > 0 {
            tokens = full.min(tokens + part(rate));
            peaks = full_peak.min(peaks + part(peak.unwrap_or(0)));
        }
        let mut come = |before: u64, unsent: &mut Vec<(usize, u64)>| {
            while next < arrivals.len() && arrivals[next].0 < before {
                unsent.push((next, u64::from(arrivals[next].1) + 18));
                next += 1;
            }
        };
        come(start, &mut unsent);
        let seen = |at: u64| at + upstream.turnaround.as_nanos().max(1) <= start;
        let asked: u64 = requests.iter().filter(|r| seen(r.0)).map(|r| r.1).sum();
        let own = upstream.guaranteed.map_or(0, |rate| {
            let part = part(rate.bits_per_second());
            bytes(part * u128::from(interval + 1)) - bytes(part * u128::from(interval))
        });
        let mut grant = asked.max(own).min(bytes(tokens)).min(bytes(part(channel)));
        grant = grant.min(upstream.most.unwrap_or(u64::MAX));
        if peak.is_some() {
            grant = grant.min(bytes(peaks));
        }
        let mut answered = grant;
        for request in requests.iter_mut().filter(|r| seen(r.0)) {
            let part = request.1.min(answered);
            request.1 -= part;
            answered -= part;
        }
        requests.retain(|request| request.1 > 0);
        let queued: u64 = unsent.iter().map(|packet| packet.1).sum();
        let covered = grant + requests.iter().map(|r| r.1).sum::<u64>();
        if queued > covered {
            requests.push((start, queued - covered));
        }
        let mut sent = 0;
        while sent < grant && !unsent.is_empty() {
            sent += 1;
            unsent[0].1 -= 1;
            tokens -= BYTE;
            peaks = peaks.saturating_sub(BYTE);
            if unsent[0].1 == 0 {
                let units = u128::from(sent) * BYTE;
                let time = (units + u128::from(channel / 2)) / u128::from(channel);
                left.push(start + time as u64);
                unsent.remove(0);
                come(start + time as u64, &mut unsent);
            }
        }
        interval += 1;
    }
    left
}

/// It asks at 2 ms and has its grant at 6 ms: 1018 bytes take 101.8 µs.
#[test]
fn a_packet_waits_for_its_request_and_for_its_grant() {
    let arrivals = [(0, 1000), (9_500_000, 1000)];
    assert_eq!(departures(&mut modem(PLAIN), &arrivals), [6_101_800, 14_101_800]);
    // An arrival at the opportunity misses it.
    assert_eq!(departures(&mut modem(PLAIN), &[(2 * MS, 1000)]), [8_101_800]);
    let guaranteed = Some(Rate::from_mbit(8));
    let proactive = Upstream { guaranteed, ..PLAIN };
    assert_eq!(departures(&mut modem(proactive), &arrivals), [2_101_800, 10_101_800]);
}

/// The bucket has 3044 bytes and one more, and 2000 come in an interval: 5045 leave in the first grant, 2000 in each
/// of the others.
#[test]
fn a_burst_leaves_at_once_and_what_does_not_fit_is_cut() {
    let sent = |interval: u64, bytes: u64| interval * 2 * MS + bytes * 100;
    let first = [1, 2, 3, 4].map(|n| sent(3, n * 1018));
    let second = [5, 6].map(|n| sent(4, n * 1018 - 5045));
    let third = [7, 8].map(|n| sent(5, n * 1018 - 7045));
    let at = departures(&mut modem(PLAIN), &[(0, 1000); 8]);
    assert_eq!(at, [&first[..], &second, &third].concat());
}

/// An idle modem with a backoff of 4 waits for one of four opportunities, each as often.
#[test]
fn a_request_without_a_grant_waits_for_a_random_opportunity() {
    let arrivals: Vec<_> = (0..4000).map(|n| (n * 40 * MS + 1, 1000)).collect();
    let at = departures(&mut modem(Upstream { backoff: 4, ..PLAIN }), &arrivals);
    let mut waits = [0; 4];
    for (n, at) in (0..).zip(at) {
        let late = at - n * 40 * MS - 6_101_800;
        assert_eq!(late % (2 * MS), 0);
        waits[(late / (2 * MS)) as usize] += 1;
    }
    // 1000 ± 4 standard deviations.
    assert!(waits.iter().all(|n| (890..1110).contains(n)), "{waits:?}");
}

fn upstreams() -> impl Strategy<Value = Upstream> {
    let times = (200_000..5 * MS, 0..12 * MS);
    let most = prop::option::of(64..4000u64);
    let rates = (prop::option::of(8_000_000..80_000_000u64), prop::option::of(1000..8_000_000u64));
    (times, most, rates, 1522..9000u32, 8_000_000..90_000_000u64).prop_map(
        |((map, turnaround), most, (peak, guaranteed), burst, channel)| Upstream {
            channel: Rate::new(channel).unwrap(),
            map: Duration::from_nanos(map),
            turnaround: Duration::from_nanos(turnaround),
            most,
            burst,
            peak: peak.and_then(Rate::new),
            backoff: 1,
            guaranteed: guaranteed.and_then(Rate::new),
        },
    )
}

proptest! {
    /// Each departure is that of the naive model, to the nanosecond.
    #[test]
    fn each_packet_leaves_when_the_naive_model_says(
        upstream in upstreams(),
        gaps in prop::collection::vec((0..3_000_000u64, 40..1500u32, any::<bool>()), 1..80),
    ) {
        let mut now = 0;
        let come = |(gap, len, burst)| { now += if burst { gap / 30 } else { gap }; (now, len) };
        let arrivals: Vec<(u64, u32)> = gaps.into_iter().map(come).collect();
        let mut modem = modem(upstream);
        prop_assert_eq!(departures(&mut modem, &arrivals), naive(upstream, 8_000_000, &arrivals));
        prop_assert_eq!((modem.backlog(), modem.requested), (Backlog::default(), 0));
    }
}

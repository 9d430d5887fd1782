use super::*;
use crate::fifo::Fifo;
use crate::packet::FlowKey;
use crate::policy::drop_tail::DropTail;
use crate::policy::lab::env;
use crate::qdisc::Discipline as _;
use crate::rng::Rng;
use crate::shaper::{Shaped, ShaperConfig};

type Plain = Fifo<DropTail, u32>;
/// Stations 0 and 1 of 7.2 Mb/s and 144.4 Mb/s, and all others.
const STATIONS: [Station; 3] = [
    Station { peer: Some(4), rate: Rate::new(7_200_000).unwrap() },
    Station { peer: Some(5), rate: Rate::new(144_400_000).unwrap() },
    Station { peer: None, rate: Rate::new(144_400_000).unwrap() },
];
const SCHEDULES: [Schedule; 4] = [
    Schedule::Fifo(1),
    Schedule::Fifo(20),
    Schedule::Turns,
    Schedule::Airtime(Duration::from_micros(300)),
];

fn built<Q: Qdisc<u32>>(
    schedule: Schedule,
    packets: u64,
    mut queue: impl FnMut(&Env) -> Q,
) -> Wifi<Q, u32> {
    let queue = |env: Env| Ok::<_, ()>(queue(&env));
    Wifi::new(Air::default(), schedule, &STATIONS, &env(packets), queue).unwrap()
}

fn plain(env: &Env) -> Plain {
    Fifo::new(&Default::default(), env, &mut Rng::new(1, 0)).unwrap()
}

fn arrive<Q: Qdisc<u32>>(wifi: &mut Wifi<Q, u32>, now: u64, peer: u16, number: u32, len: u32) {
    let arrived = Instant::from_nanos(now);
    let flow = FlowKey::labelled(7, Label { peer, ..Label::default() });
    let meta = Meta { len, flow, arrived, ..Meta::default() };
    let mut rng = Rng::new(1, 0);
    wifi.enqueue(meta, number, &mut Cx { now: arrived, rng: &mut rng }, &mut ());
}

/// Its station, its packets with their lengths, and when it ends.
type Sent = (u16, Vec<(u32, u32)>, u64);

/// The next aggregate.
fn next<Q: Qdisc<u32>>(wifi: &mut Wifi<Q, u32>, now: u64) -> Option<Sent> {
    let mut packets = Vec::new();
    loop {
        let mut rng = Rng::new(1, 0);
        let mut cx = Cx { now: Instant::from_nanos(now), rng: &mut rng };
        let (meta, number) = wifi.dequeue(&mut cx, &mut ())?;
        packets.push((number, meta.len));
        let Aggregate { until, more } = wifi.aggregate().unwrap();
        if !more {
            return Some((wifi.station(&meta), packets, until.as_nanos()));
        }
    }
}

/// Random packets come while the air is busy and while it is free. Each is sent once or dropped; an aggregate keeps
/// its limits and its time; packets of a station keep their order, and with one queue and no room in the driver all.
#[test]
fn packets_are_sent_in_order_within_the_limits() {
    for schedule in SCHEDULES {
        let mut wifi = built(schedule, 30, plain);
        let (mut rng, mut now, mut number) = (Rng::new(3, 0), 0, 0);
        let (mut last, mut most) = ([0; 3], 0);
        for round in 0..3000 {
            for _ in 0..rng.below(if round % 100 < 50 { 4 } else { 40 }) {
                let len = [40, 1500, 9000][rng.below(3)];
                number += 1;
                arrive(&mut wifi, now, 4 + rng.below(3) as u16, number, len);
            }
            let counters = *wifi.counters();
            let gone = counters.departed + counters.all_dropped();
            assert_eq!(counters.arrived.packets, gone.packets + u64::from(wifi.backlog().packets));
            assert_eq!(counters.arrived.bytes, gone.bytes + wifi.backlog().bytes);
            let Some((station, packets, until)) = next(&mut wifi, now) else {
                assert_eq!(wifi.backlog(), Backlog::default());
                now += 1000;
                continue;
            };
            let bytes: u32 = packets.iter().map(|(_, len)| Air::framed(*len)).sum();
            let rate = STATIONS[usize::from(station)].rate;
            assert_eq!(until, now + Air::default().airtime(bytes, rate).as_nanos());
            let longest = rate.transmission(bytes.into()) <= Duration::from_millis(4);
            assert!(packets.len() <= 64 && bytes <= 65_535 && longest || packets.len() == 1);
            for (number, _) in packets {
                let before = std::mem::replace(&mut last[usize::from(station)], number);
                assert!(number > before, "{schedule:?}");
                assert!(number > most || schedule != Schedule::Fifo(1));
                most = most.max(number);
            }
            now = until;
        }
        while let Some((.., until)) = next(&mut wifi, now) {
            now = until;
        }
        let counts = wifi.counts();
        let sent = counts.iter().fold(Tally::default(), |sum, count| sum + count.departed);
        assert_eq!(sent, wifi.counters().departed);
        assert_eq!(wifi.counters().arrived, sent + wifi.counters().all_dropped());
        assert!(wifi.counters().all_dropped().packets > 100 && sent.packets > 3000);
    }
}

/// Two stations have packets. One that had none for long goes next, though the slow one is in debt.
#[test]
fn a_new_station_goes_first_and_a_debt_is_paid() {
    let mut wifi = built(SCHEDULES[3], 1000, plain);
    (0..200).for_each(|n| arrive(&mut wifi, 0, 4, n, 1500));
    let (mut now, mut airtime) = (0, [0; 3]);
    for turn in 0..40 {
        (0..50).for_each(|n| arrive(&mut wifi, now, 5, n, 1500));
        if turn == 20 {
            arrive(&mut wifi, now, 9, 1000, 100);
        }
        let (station, packets, until) = next(&mut wifi, now).unwrap();
        assert_eq!(station == 2, turn == 20, "{turn} {packets:?}");
        airtime[usize::from(station)] += until - now;
        now = until;
        assert!(airtime[0].abs_diff(airtime[1]) < 2 * 4_300_000, "{airtime:?}");
    }
}

/// A token bucket of 12 Mb/s in each station's queue lets 1500 bytes out in a millisecond, whatever the air could
/// carry.
#[test]
fn queues_that_hold_packets_back_are_asked_in_time() {
    for schedule in SCHEDULES {
        let config = ShaperConfig { rate: Some(Rate::from_mbit(12)), ..ShaperConfig::default() };
        let shaped = |env: &Env| Shaped::around(plain(env), &config, env).unwrap();
        let mut wifi = built(schedule, 1000, shaped);
        (0..200).for_each(|n| arrive(&mut wifi, 0, 5, n, 1500));
        let (mut now, mut sent) = (0, 0);
        while sent < 200 {
            if let Some((_, packets, until)) = next(&mut wifi, now) {
                sent += packets.len();
                now = until;
            } else {
                let ready = wifi.ready_at().unwrap().as_nanos();
                assert!(ready > now, "{schedule:?}");
                now = ready;
            }
        }
        // The bucket is full at first: 15 140 bytes.
        assert!((189_000_000..192_000_000).contains(&now), "{schedule:?}: {now}");
    }
}

/// With one queue it reports what the driver holds, with more the signals of the station's own.
#[test]
fn what_a_packet_meets_is_told() {
    use crate::policy::docsis_pie::DocsisPie;
    let told = |schedule| {
        let pie = |env: &Env| {
            Fifo::<DocsisPie, u32>::new(&Default::default(), env, &mut Rng::new(1, 0)).unwrap()
        };
        let mut wifi = built(schedule, 100, pie);
        (0..50).for_each(|n| arrive(&mut wifi, 0, 4 + n as u16 % 2, n, 1500));
        next(&mut wifi, 0);
        let flow = FlowKey::labelled(7, Label { peer: 5, ..Label::default() });
        let mut told = Vec::new();
        let mut sink = |name, value| told.push((name, value));
        wifi.observe_flow(&Meta { flow, ..Meta::default() }, Instant::ZERO, &mut sink);
        told
    };
    // It took 20 packets, of which the aggregate has two of the slow station.
    let [all, own, ..] = told(Schedule::Fifo(20))[..] else { panic!() };
    assert_eq!(all.0, "flow_driver_packets");
    assert!((18.0..=21.0).contains(&all.1), "{all:?}");
    assert!(own.0 == "flow_driver_own" && (5.0..all.1).contains(&own.1), "{own:?} of {all:?}");
    let of_queue = told(Schedule::Turns);
    assert!(of_queue.iter().any(|(name, _)| *name == "active"), "{of_queue:?}");
}

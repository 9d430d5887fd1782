use super::format::read_varint;
use super::*;
use crate::frame::Layer;
use crate::link::Bucket;
use aqm::{Ack, CATALOG, Duration, Ecn, FlowKey, Instant, Label, Limit, Rate, Rng};
use link::Sending;
use proptest::prelude::*;
use sim::results::table::{Column, Table};
use std::sync::Arc;

fn specs(aqm: &str) -> [Spec; 2] {
    let (rate, limit) = (Rate::new(9_999_991).unwrap(), Limit::bytes(30_000).unwrap());
    let plain = Spec::new(rate, Duration::from_micros(2500), limit, aqm);
    let up = Spec { seed: u64::MAX - 7, ..plain };
    let down = Spec { limit: Limit::packets(20).unwrap(), seed: 3, ..up.clone() };
    [up, down]
}

/// A datagram, or an acknowledgement of TCP, of one of some flows.
fn datagram(rng: &mut Rng) -> Vec<u8> {
    let mut p = vec![0; [28, 40, 576, 1000, 1500][rng.below(5)]];
    p[0] = 0x45;
    p[1] = rng.below(4) as u8 | [0, 8, 46, 20][rng.below(4)] << 2;
    p[15] = rng.below(3) as u8;
    let len = p.len() as u16;
    p[2..4].copy_from_slice(&len.to_be_bytes());
    p[9] = 17;
    p[20] = rng.below(10) as u8;
    if len == 40 {
        p[9] = 6;
        p[31] = rng.below(200) as u8;
        p[32..34].copy_from_slice(&[0x50, 0x10]);
    }
    p
}

/// Random traffic through the gateway's links, recorded; the simulator, given the recording and
/// nothing else, takes the same decisions at the same nanoseconds. Returns the gateway's links.
fn replay_of(specs: &[Spec; 2], stream: u64, packets: usize) -> [crate::link::Link; 2] {
    let new = |s: &Spec| crate::link::Link::new(s, Layer::Ip, 1500).unwrap();
    let mut links = specs.each_ref().map(new);
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, specs).unwrap();
    let mut rng = Rng::new(11, stream);
    let mut now = 0;
    let mut came_out = [0u64; 2];
    for n in 0..packets {
        now += rng.below([150_000, 1_500_000][n / 4_000 % 2]) as u64;
        let direction = rng.below(2);
        let link = &mut links[direction];
        link.deliver(now, |_| came_out[direction] += 1);
        let mut packet = datagram(&mut rng);
        if packet.len() == 40 {
            // Numbers grow and wrap, but for what was overtaken.
            let grown = 0u32.wrapping_sub(10_000).wrapping_add(2 * n as u32);
            let number = grown.wrapping_sub(packet[31].into());
            packet[28..32].copy_from_slice(&number.to_be_bytes());
        }
        let (meta, ack) = link.arrive(now, &packet).unwrap();
        recorder.arrived(direction, &meta, ack);
        assert!(link.check());
    }
    now += 1_234_567;
    links.iter_mut().zip(&mut came_out).for_each(|(l, out)| l.deliver(now, |_| *out += 1));
    let hashes = links.each_ref().map(|l| l.decision_hash().to_string());
    recorder.end(now, hashes.clone()).unwrap();

    let mut recording = Recording::new(&file[..]).unwrap();
    for (read, spec) in recording.specs.iter().zip(specs) {
        assert_eq!(
            (read.seed, &read.sending, &read.impairments),
            (spec.seed, &spec.sending, &spec.impairments)
        );
    }
    let mut replays = recording.specs.each_ref().map(|s| Replay::new(s).unwrap());
    let ended = loop {
        match recording.next_entry().unwrap().unwrap() {
            Entry::Arrival(direction, meta, ack) => replays[direction].arrive(meta, ack),
            Entry::End(at, recorded) => break (at, recorded),
            Entry::Cut => panic!("it is whole"),
        }
    };
    assert_eq!(ended, (now, hashes.clone()));
    assert_eq!(recording.next_entry().unwrap(), None);
    let replayed = replays.map(|mut r| r.end(now));
    for i in 0..2 {
        let aqm = &specs[i].aqm;
        assert_eq!(replayed[i].0, hashes[i], "{aqm} {i}: {:?}", specs[i]);
        let (sim, live) = (replayed[i].1.unwrap(), links[i].summary(now));
        assert_eq!(sim.counts, live.counts, "{aqm}");
        assert_eq!(sim.delay_s, live.delay_s, "{aqm}");
        assert_eq!(sim.mean_packets, live.mean_packets, "{aqm}");
        assert!(links[i].check());
        assert_eq!(came_out[i], links[i].beside().delivered);
    }
    links
}

#[test]
fn a_replay_decides_alike() {
    for (i, entry) in CATALOG.iter().enumerate() {
        for link in replay_of(&specs(entry.name), i as u64, 20_000) {
            let dropped = link.counters().all_dropped().packets;
            assert!(dropped > 0, "{} was not tried", entry.name);
        }
    }
}

/// Leaves of several disciplines, one of which asks for codepoints; packets are from three hosts.
#[test]
fn a_replay_has_the_classes() {
    let tree = r#"default = "rest"
        class = [
            { name = "line", rate = "9mbit" },
            { name = "one", parent = "line", rate = "2mbit", ceil = "9mbit", address = ["0.0.0.1"], aqm = "cake" },
            { name = "two", parent = "line", rate = "3mbit", address = ["0.0.0.2"], aqm = "fq-pie" },
            { name = "rest", parent = "line", rate = "1mbit" },
        ]"#;
    let tree = scenario::tree::TreeSpec::from_toml(tree, "x").unwrap();
    let mut specs = specs("red");
    for (spec, down) in specs.iter_mut().zip([false, true]) {
        let classes = crate::link::Classes { tree: tree.clone(), down };
        spec.classes = Some(Arc::new(classes));
    }
    let [up, down] = replay_of(&specs, 3, 20_000);
    let came = |link: &crate::link::Link| {
        link.classes().unwrap().iter().map(|(_, c)| c.counters.arrived.packets).collect::<Vec<_>>()
    };
    let (up, down) = (came(&up), came(&down));
    assert!(up[1..].iter().all(|came| *came > 2000), "{up:?}");
    assert_eq!((down[0], down[1], down[2]), (down[3], 0, 0), "all are to 0.0.0.0");
}

#[test]
fn what_is_wrong_with_recorded_classes_is_told() {
    let why = |tree: Value| {
        let mut head = super::described(&specs("red"));
        head["queues"][1]["tree"] = tree;
        super::recording::links(&head).unwrap_err()
    };
    let told = why("default = \"a\"\n[[class]]\nname = \"a\"\nrate = \"1mbut\"\n".into());
    for part in ["the classes of the way down in its head", "class[0].rate = \"1mbut\""] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(why(3.into()), "the classes of the way down in its head: no text");
}

#[test]
fn a_replay_filters_the_same_acknowledgements() {
    let mut specs = specs("cake");
    // Long queues, which lose nothing else.
    specs[0].limit = Limit::packets(100_000).unwrap();
    specs[0].params = vec![("target".into(), "1h".into()), ("ack_filter".into(), "on".into())];
    let [up, _] = replay_of(&specs, 1, 20_000);
    let dropped = up.counters().dropped.map(|tally| tally.packets);
    assert!(matches!(dropped, [0, early, 0, 0] if early > 100), "{dropped:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same over links that vary and impair packets in any way.
    #[test]
    fn a_replay_of_a_link_that_varies_decides_alike(
        stream: u64,
        // Rates that queues learn hold for at least 1 ms.
        rates in prop::option::of(prop::collection::vec((1_000_000u64..400_000_000, 0u64..30_000_000), 1..6)),
        delays in prop::option::of(prop::collection::vec((1u64..300_000_000, 0u64..40_000_000), 1..5)),
        losses in prop::option::of(prop::collection::vec((1u64..300_000_000, 0f64..0.3), 1..5)),
        framing in prop::sample::select(vec!["raw", "0", "-64", "pppoe-ptm", "bridged-llcsnap", "ethernet"]),
        loss in prop::sample::select(vec!["0", "3%", "gemodel 2% 20%", "gemodel 2% 20% 70% 1%"]),
        (jitter, reorder) in any::<(u64, bool)>(),
        (duplicate, corrupt) in (0f64..0.1, 0f64..0.1),
        (repeat, keep, told_rate, policed, shaped) in any::<(bool, bool, bool, bool, bool)>(),
        layer in prop::sample::select(vec![Layer::Ip, Layer::Ethernet]),
        aqm in prop::sample::select(vec!["codel", "docsis-pie", "csfq", "ared"]),
    ) {
        fn course<T: Copy>(gaps: &[(u64, T)], end: T, repeat: bool) -> Arc<Steps<T>> {
            let mut rows = vec![];
            let mut at = 0;
            for &(gap, value) in gaps {
                rows.push((at, value));
                at += gap;
            }
            rows.push((at, end));
            Steps::new(&rows, repeat).map(Arc::new).unwrap()
        }
        let rate = |gaps: &Vec<(u64, u64)>| course(&[&[(1_000_000, 9_000_000)], &gaps[..]].concat(), 4_000_000, repeat);
        let bucket = |mbit| Bucket { rate: Rate::from_mbit(mbit), burst: "9kB".parse().unwrap() };
        let [up, down] = specs(aqm);
        let varied = Spec {
            sending: Sending {
                rates: rates.as_ref().map(rate),
                framing: framing.parse().unwrap(),
                ..Sending::default()
            },
            impairments: Impairments {
                delay: delays.map(|delays| course(&delays, 5_000_000, repeat)),
                jitter: jitter % 20_000_000,
                reorder,
                loss: loss.parse().unwrap(),
                losses: losses.map(|losses| course(&losses, 0.1, repeat)),
                duplicate: if keep { 0.0 } else { duplicate },
                corrupt: if keep { 0.0 } else { corrupt },
            },
            told_rate,
            policer: policed.then(|| bucket(4)),
            shaper: shaped.then(|| bucket(2)),
            peak: (shaped && policed).then(|| bucket(3)),
            ..up
        };
        replay_of(&[varied.between(layer), down], stream, 3_000);
    }
}

/// The reports of each packet add up, and change no decision.
#[test]
fn a_replay_tells_of_each_packet() {
    let specs = [specs("red")[0].clone(), specs("codel")[1].clone()];
    let mut rng = Rng::new(5, 0);
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, &specs).unwrap();
    let mut now = 0;
    for _ in 0..40_000 {
        now += rng.below(700_000) as u64;
        let arrived = Instant::from_nanos(now);
        let (flow, ecn) = (FlowKey(rng.below(9) as u64), Ecn::ect(rng.below(2) == 0));
        recorder.arrived(rng.below(2), &Meta { arrived, flow, len: 1000, ecn }, Ack::NONE);
    }
    recorder.end(now + 1, ["".into(), "".into()]).unwrap();

    let allowed = Allowed::of(file.len() as u64);
    let plain = replay(&mut Recording::new(&file[..]).unwrap(), allowed, None).unwrap();
    let (mut fates, mut marked, mut tables) = ([[0; 3]; 2], [0; 2], 0);
    let mut told = |direction: usize, rows: &Table| {
        let texts = |name| match rows.column(name).unwrap() {
            Column::Text(values) => values.iter(),
            other => panic!("{other:?}"),
        };
        for fate in texts("fate") {
            let known = ["sent", "dropped", "queued"];
            fates[direction][known.iter().position(|of| of == fate).unwrap()] += 1;
        }
        marked[direction] += texts("marked").filter(|cause| !cause.is_empty()).count() as u64;
        tables += 1;
        Ok(())
    };
    let mut recording = Recording::new(&file[..]).unwrap();
    let watched = replay(&mut recording, allowed, Some(&mut told)).unwrap();
    assert!(tables > 2, "some of them before the end");
    for i in 0..2 {
        assert_eq!(watched.queues[i].0, plain.queues[i].0);
        let counts = watched.queues[i].1.unwrap().counts;
        let [sent, dropped, queued] = fates[i];
        assert_eq!((sent, dropped), (counts.departed.packets, counts.all_dropped().packets));
        assert_eq!(sent + dropped + queued, counts.arrived.packets);
        assert_eq!(marked[i], counts.all_marked().packets);
        assert!(dropped > 0 && marked[i] > 0, "{i} was not tried");
    }
}

/// One bit of one arrival's time makes another hash: the comparison is not vacuous.
#[test]
fn another_nanosecond_is_another_hash() {
    let spec = &specs("droptail")[0];
    let hash = |nudge: u64| {
        let mut replay = Replay::new(spec).unwrap();
        for n in 0..10 {
            let arrived = Instant::from_nanos(n * 10_000_000 + nudge * u64::from(n == 5));
            replay
                .arrive(Meta { arrived, flow: FlowKey(n), len: 1000, ecn: Ecn::NotEct }, Ack::NONE);
        }
        replay.end(1 << 30).0
    };
    assert_eq!(hash(0), hash(0));
    assert_ne!(hash(0), hash(1));
}

#[test]
fn what_is_no_recording_is_refused() {
    let mut file = Vec::new();
    Recorder::new(&mut file, &specs("red")).unwrap();
    let refused = |bytes: &[u8]| Recording::new(bytes).map(drop).unwrap_err().to_string();
    assert!(refused(b"not a recording of any kind").contains("no recording"));
    let mut other = file.clone();
    other[7] = 3;
    assert!(refused(&other).contains("version"));
    let mut long = file.clone();
    long[11] = 0xff;
    assert!(refused(&long).contains("too long"));
    for end in 0..file.len() {
        assert!(Recording::new(&file[..end]).is_err(), "cut off at {end}");
    }
    let mut recording = Recording::new(&file[..]).unwrap();
    assert_eq!(recording.next_entry().unwrap(), Some(Entry::Cut));
    assert_eq!(recording.next_entry().unwrap(), None);
}

/// What a queue asks for is recorded, and for the others a key is as short as ever.
#[test]
fn labels_are_recorded_where_a_queue_asks_for_them() {
    let key = FlowKey::labelled(7, Label { dscp: 46, host: 8191, peer: 5 });
    let said = Ack::new(0x1234_5678, [true, false], true);
    for (aqm, ack_filter, version, flow, ack) in [
        ("fq-codel", None, 1, FlowKey(7), Ack::NONE),
        ("cake", None, 2, key, Ack::NONE),
        ("cake", Some("off"), 2, key, Ack::NONE),
        ("wred", None, 2, key, Ack::NONE),
        ("cake", Some("on"), 4, key, said),
    ] {
        let mut specs = specs(aqm);
        specs[0].params.extend(ack_filter.map(|on| ("ack_filter".into(), on.into())));
        let mut file = Vec::new();
        let mut recorder = Recorder::new(&mut file, &specs).unwrap();
        let arrived = Instant::from_nanos(1);
        let meta = Meta { arrived, flow: key, len: 1000, ecn: Ecn::Ect0 };
        recorder.arrived(0, &meta, said);
        assert_eq!(file[7], version);
        let mut recording = Recording::new(&file[..]).unwrap();
        let entry = recording.next_entry().unwrap();
        assert_eq!(entry, Some(Entry::Arrival(0, Meta { flow, ..meta }, ack)), "{aqm}");
    }
}

/// A recording of three arrivals, with an end.
fn short(specs: &[Spec; 2], times: [u64; 3]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, specs).unwrap();
    for time in times {
        let arrived = Instant::from_nanos(time);
        let meta = Meta { arrived, flow: FlowKey(7), len: 1000, ecn: Ecn::Ect0 };
        recorder.arrived(0, &meta, Ack::NONE);
    }
    recorder.end(times[2] + 5, ["a".into(), "b".into()]).unwrap();
    file
}

fn allowed(steps: u64) -> Allowed {
    Allowed { steps, ..Allowed::of(400) }
}

/// Cut off anywhere behind its head, it replays up to there.
#[test]
fn a_recording_that_breaks_off_replays_as_far_as_it_goes() {
    let file = short(&specs("red"), [1_000_000, 2_000_000, 300_000_000]);
    let mut head = Vec::new();
    Recorder::new(&mut head, &specs("red")).unwrap();
    let mut seen = Vec::new();
    for end in head.len()..=file.len() {
        let replayed =
            replay(&mut Recording::new(&file[..end]).unwrap(), allowed(1), None).unwrap();
        assert_eq!(replayed.recorded.is_some(), end == file.len());
        seen.push((replayed.arrivals, replayed.last));
    }
    assert!(seen.is_sorted());
    seen.dedup();
    let whole = (3, 300_000_005);
    assert_eq!(
        seen,
        [(0, 0), (1, 1_000_000), (2, 2_000_000), (3, 300_000_000), whole],
        "each arrival as soon as it is there"
    );
    let mut more = file.clone();
    more.push(0);
    let mut recording = Recording::new(&more[..]).unwrap();
    (0..4).for_each(|_| _ = recording.next_entry().unwrap());
    assert!(recording.next_entry().is_err(), "behind its end");
}

/// A few bytes that would take for ever, or all memory, are refused at once.
#[test]
fn a_crafted_recording_is_refused() {
    let refused = |file: &[u8]| {
        let recording = Recording::new(file);
        recording
            .and_then(|mut r| replay(&mut r, Allowed::of(400), None).map(drop))
            .unwrap_err()
            .to_string()
    };
    let mut quick = specs("pie");
    quick[0].params = vec![("t_update".into(), "1ms".into())];
    let jump = short(&quick, [1, 2, 10_000_000_000_000_000]);
    assert!(refused(&jump).contains("time jumps to 10000000 s"), "{}", refused(&jump));
    let late = short(&specs("droptail"), [1, 2, u64::MAX / 2]);
    assert!(refused(&late).contains("time runs over"));
    // 15 ms, from 350 bytes: minutes of computing.
    let month = short(&specs("pie"), [1, 2, 2_592_000_000_000_000]);
    assert!(refused(&month).contains("time jumps to 2592000 s"));
    // So is news of a rate each nanosecond, or to many queues for long.
    for (gap, why) in [(1, "at least 1ms"), (1_000_000, "time jumps to 100000 s")] {
        let mut restless = specs("sfq");
        restless[0].params = vec![("queues".into(), "65536".into()), ("aqm".into(), "red".into())];
        restless[0].told_rate = true;
        let rates = [(0, 1_000_000), (gap, 2_000_000), (2 * gap, 0)];
        restless[0].sending.rates = Steps::new(&rates, true).map(Arc::new);
        let restless = refused(&short(&restless, [1, 2, 100_000 * 1_000_000_000]));
        assert!(restless.contains(why), "{restless}");
    }
    // A year of nothing is no reason.
    let year = short(&specs("droptail"), [1, 2, 31_536_000_000_000_000]);
    replay(&mut Recording::new(&year[..]).unwrap(), Allowed::of(400), None).unwrap();
    // Half a millisecond for each packet, which is ten bytes.
    let mut tiny = specs("fq-codel");
    tiny[0].params = vec![("quantum".into(), "1".into())];
    let mut many = Vec::new();
    let mut recorder = Recorder::new(&mut many, &tiny).unwrap();
    for n in 0..1000 {
        let arrived = Instant::from_nanos(n);
        recorder.arrived(
            0,
            &Meta { arrived, flow: FlowKey(n), len: 65_535, ecn: Ecn::Ect0 },
            Ack::NONE,
        );
    }
    assert!(refused(&many).contains("with a quantum of 1 B its packets wait for"));
    // More memory than there is reason for; with enough of a recording there is.
    let mut deep = specs("sfb");
    deep[1].limit = Limit::packets(1 << 20).unwrap();
    let deep = short(&deep, [1, 2, 3]);
    assert!(refused(&deep).contains("a buffer of 1048576 packets: allowed are 262144"));
    for allowed in [Allowed::of(400).any_buffer(), Allowed::of(6 << 20)] {
        replay(&mut Recording::new(&deep[..]).unwrap(), allowed, None).unwrap();
    }
    let mut large = specs("droptail");
    large[1].limit = Limit::packets(2 * Spec::MAX_PACKETS).unwrap();
    let large = short(&large, [1, 2, 3]);
    let any = Allowed { buffer: u64::MAX, ..Allowed::of(0) };
    let large =
        replay(&mut Recording::new(&large[..]).unwrap(), any, None).unwrap_err().to_string();
    assert!(large.contains("beyond reach"), "{large}");
    for end in [4, 10, 50] {
        assert!(refused(&year[..end]).contains("breaks off inside its head"));
    }
    let mut empty = specs("droptail");
    empty[0].mean_packet = 0;
    assert!(refused(&short(&empty, [1, 2, 3])).contains("no links"));
}

proptest! {
    #[test]
    fn varints_come_back(value in any::<u64>(), shift in 0u32..64) {
        let value = value >> shift;
        let mut bytes = Vec::new();
        write_varint(&mut bytes, value).unwrap();
        prop_assert_eq!(read_varint(&mut &bytes[..]).unwrap(), value);
    }

    /// Damaged recordings are read to an error or an end.
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = Vec::new();
        Recorder::new(&mut file, &specs("droptail")).unwrap();
        file.extend(bytes);
        let mut recording = Recording::new(&file[..]).unwrap();
        _ = replay(&mut recording, allowed(1000), None);
    }
}

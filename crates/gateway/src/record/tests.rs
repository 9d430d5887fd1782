use super::format::read_varint;
use super::*;
use crate::frame::Layer;
use aqm::{CATALOG, Duration, Ecn, FlowKey, Instant, Limit, Rate, Rng};
use proptest::prelude::*;

fn specs(aqm: &str) -> [Spec; 2] {
    let up = Spec {
        rate: Rate::new(9_999_991).unwrap(),
        delay: Duration::from_micros(2500),
        limit: Limit::bytes(30_000).unwrap(),
        aqm: aqm.into(),
        params: Vec::new(),
        mean_packet: 1000,
        seed: u64::MAX - 7,
    };
    let down = Spec { limit: Limit::packets(20).unwrap(), seed: 3, ..up.clone() };
    [up, down]
}

/// A datagram of `len` bytes of one of some flows.
fn datagram(rng: &mut Rng) -> Vec<u8> {
    let mut p = vec![0; [28, 40, 576, 1000, 1500][rng.below(5)]];
    p[0] = 0x45;
    p[1] = rng.below(4) as u8;
    let len = p.len() as u16;
    p[2..4].copy_from_slice(&len.to_be_bytes());
    p[9] = 17;
    p[20] = rng.below(10) as u8;
    p
}

/// Random traffic through the gateway's links, recorded; the simulator, given the recording and
/// nothing else, takes the same decisions at the same nanoseconds, under every algorithm.
#[test]
fn a_replay_decides_alike() {
    for (i, entry) in CATALOG.iter().enumerate() {
        let specs = specs(entry.name);
        let new = |s: &Spec| crate::link::Link::new(s, Layer::Ip, 1500).unwrap();
        let mut links = specs.each_ref().map(new);
        let mut file = Vec::new();
        let mut recorder = Recorder::new(&mut file, &specs).unwrap();
        let mut rng = Rng::new(11, i as u64);
        let mut now = 0;
        for n in 0..20_000 {
            now += rng.below([150_000, 1_500_000][n / 4_000 % 2]) as u64;
            let direction = rng.below(2);
            let link = &mut links[direction];
            link.deliver(now, |_| ());
            let meta = link.arrive(now, &datagram(&mut rng)).unwrap();
            recorder.arrived(direction, &meta);
        }
        now += 1_234_567;
        links.iter_mut().for_each(|l| l.deliver(now, |_| ()));
        let hashes = links.each_ref().map(|l| l.decision_hash().to_string());
        recorder.end(now, hashes.clone()).unwrap();
        assert!(file.len() < 20_000 * 11, "{} bytes", file.len());

        let mut recording = Recording::new(&file[..]).unwrap();
        assert_eq!(recording.specs[0].seed, specs[0].seed);
        let mut replays = recording.specs.each_ref().map(|s| Replay::new(s).unwrap());
        let ended = loop {
            match recording.next_entry().unwrap().unwrap() {
                Entry::Arrival(direction, meta) => replays[direction].arrive(meta),
                Entry::End(at, recorded) => break (at, recorded),
                Entry::Cut => panic!("it is whole"),
            }
        };
        assert_eq!(ended, (now, hashes.clone()));
        let replayed = replays.map(|r| r.end(now));
        for i in 0..2 {
            assert_eq!(replayed[i].0, hashes[i], "{} {i}", entry.name);
            let (sim, live) = (replayed[i].1.unwrap(), links[i].summary(now));
            assert_eq!(sim.counts, live.counts, "{}", entry.name);
            assert_eq!(sim.delay_s, live.delay_s, "{}", entry.name);
            assert_eq!(sim.mean_packets, live.mean_packets, "{}", entry.name);
            assert!(sim.counts.all_dropped().packets > 0, "{} was not tried", entry.name);
        }
        assert_eq!(recording.next_entry().unwrap(), None);
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
            replay.arrive(Meta { arrived, flow: FlowKey(n), len: 1000, ecn: Ecn::NotEct });
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
    other[7] = 2;
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

/// A recording of three arrivals, with an end.
fn short(specs: &[Spec; 2], times: [u64; 3]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, specs).unwrap();
    for time in times {
        let arrived = Instant::from_nanos(time);
        let meta = Meta { arrived, flow: FlowKey(7), len: 1000, ecn: Ecn::Ect0 };
        recorder.arrived(0, &meta);
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
        let replayed = replay(&mut Recording::new(&file[..end]).unwrap(), allowed(1)).unwrap();
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
            .and_then(|mut r| replay(&mut r, Allowed::of(400)).map(drop))
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
    // A year of nothing is no reason.
    let year = short(&specs("droptail"), [1, 2, 31_536_000_000_000_000]);
    replay(&mut Recording::new(&year[..]).unwrap(), Allowed::of(400)).unwrap();
    // Half a millisecond for each packet, which is ten bytes.
    let mut tiny = specs("fq-codel");
    tiny[0].params = vec![("quantum".into(), "1".into())];
    let mut many = Vec::new();
    let mut recorder = Recorder::new(&mut many, &tiny).unwrap();
    for n in 0..1000 {
        let arrived = Instant::from_nanos(n);
        recorder.arrived(0, &Meta { arrived, flow: FlowKey(n), len: 65_535, ecn: Ecn::Ect0 });
    }
    assert!(refused(&many).contains("with a quantum of 1 B its packets wait for"));
    // More memory than there is reason for; with enough of a recording there is.
    let mut deep = specs("sfb");
    deep[1].limit = Limit::packets(1 << 20).unwrap();
    let deep = short(&deep, [1, 2, 3]);
    assert!(refused(&deep).contains("a buffer of 1048576 packets: allowed are 262144"));
    for allowed in [Allowed::of(400).any_buffer(), Allowed::of(6 << 20)] {
        replay(&mut Recording::new(&deep[..]).unwrap(), allowed).unwrap();
    }
    let mut large = specs("droptail");
    large[1].limit = Limit::packets(2 * Spec::MAX_PACKETS).unwrap();
    let large = short(&large, [1, 2, 3]);
    let any = Allowed { buffer: u64::MAX, ..Allowed::of(0) };
    let large = replay(&mut Recording::new(&large[..]).unwrap(), any).unwrap_err().to_string();
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
        _ = replay(&mut recording, allowed(1000));
    }
}

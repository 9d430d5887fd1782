//! AccECN against that of Linux 7.2, acknowledgement by acknowledgement: what its receiver answered and what its
//! sender counted, recorded by `linux_accecn.py` beside the table (docs/validation.md, "AccECN of Linux").

use super::super::receiver::AckWhen;
use super::super::sender::Marks;
use super::*;

const ROWS: &str = include_str!("../../../../../validation/reference/linux_accecn.csv");

#[derive(Debug)]
struct Row {
    setting: String,
    lost: u32,
    option: bool,
    received: u32,
    counted: u32,
    came: &'static str,
    acks: &'static str,
}

fn rows() -> Vec<Row> {
    let rows: Vec<Row> = ROWS
        .lines()
        .skip(1)
        .map(|line| {
            let values: Vec<&str> = line.split(',').collect();
            let [setting, cc, option, _, lost, .., received, counted, came, acks] = values[..]
            else {
                panic!("{line}")
            };
            let number = |text: &str| text.parse().unwrap();
            Row {
                setting: format!("{setting}, {cc}, {lost} % lost, option {option}"),
                lost: number(lost),
                option: option != "0",
                received: number(received),
                counted: number(counted),
                came,
                acks,
            }
        })
        .collect();
    assert_eq!(rows.len(), 42);
    rows
}

/// What ours counts of the acknowledgements that came to the kernel's sender.
fn counted(row: &Row) -> u32 {
    let mut marks = Marks::default();
    let mut told = 0;
    for word in row.acks.split(' ') {
        let (ack, times) = word.split_once('x').unwrap_or((word, "1"));
        let (ace, newly) = ack.split_once('.').unwrap();
        for _ in 0..times.parse().unwrap() {
            told += marks.told(ace.parse().unwrap(), newly.parse().unwrap());
        }
    }
    told
}

/// Ours counts the marks that the receiver saw, but for those of one turn of the counter at most. The kernel with the
/// counter alone takes what may have come round for marks, up to twelve times as many as there were; with the
/// option, which tells of bytes, it counts as ours.
#[test]
fn marks_are_counted_though_acknowledgements_are_lost() {
    let mut invented = 0;
    for row in rows() {
        let ours = counted(&row);
        assert!((row.received.saturating_sub(8)..=row.received).contains(&ours), "{row:?}: {ours}");
        if row.lost == 0 {
            assert!(ours == row.received && row.counted.abs_diff(ours) <= 4, "{row:?}: {ours}");
        } else if row.option && row.lost == 20 {
            assert_eq!(row.counted, ours, "{row:?}");
        } else if !row.option {
            assert!(row.counted > row.received, "{row:?}");
            invented += row.counted - row.received;
        }
    }
    assert_eq!(invented, 5304);
}

/// The kernel's receiver and ours answer the first mark behind none at once, and have the same counter. With
/// `quick_acks` ours answers the first packet without one at once as well, as the kernel's does, and without some of
/// them, as the second packet. All that ours answers at once the kernel's does.
#[test]
fn marks_are_told_as_linux_tells_them() {
    assert_eq!(told(false), (608, [561, 45]));
    assert_eq!(told(true), (608, [0, 606]));
}

/// How often a mark behind none, and a packet without one behind a mark, is answered by the kernel's receiver: the
/// latter where ours waits and where it answers at once.
fn told(quick: bool) -> (u32, [u32; 2]) {
    let o = options(Variant::Sack).with(|o| {
        (o.ecn.echo, o.acks.plain) = (Echo::Counted, false);
        (o.acks.delay, o.acks.quick) = (40 * MS, quick);
    });
    let (mut begun, mut ended) = (0, [0, 0]);
    // With 40 % lost much comes twice, and what had come before the kernel does not count.
    let marked = |row: &&Row| !row.setting.starts_with("no marks") && row.lost < 40;
    for row in rows().iter().filter(marked) {
        let came: Vec<&str> = row.came.split(' ').collect();
        let [_, _, _, came] = came[..] else { continue }; // more of a handshake than three segments
        let mut receiver = Receiver::default();
        let (mut seq, mut last, mut early) = (0, b'd', None);
        let mut words = came.bytes().peekable();
        while let Some(word) = words.next() {
            if word == b'd' || word == b'c' {
                let ours = receiver.on_watched_data(seq, word == b'c', false, &o) == AckWhen::Now;
                let Some(next) = words.peek() else { break };
                let theirs = next.is_ascii_digit();
                assert!(theirs || !ours, "{}, packet {seq}", row.setting);
                if (last, word) == (b'd', b'c') {
                    assert!(ours, "{}, packet {seq}", row.setting);
                    begun += 1;
                } else if (last, word) == (b'c', b'd') {
                    assert!(theirs, "{}, packet {seq}", row.setting);
                    ended[usize::from(ours)] += 1;
                }
                (seq, last) = (seq + 1, word);
            } else if word != b'T' {
                words.next();
                let mut packet = Packet::default();
                receiver.acknowledge(true, &mut packet);
                receiver.tell_more(&mut packet, &o);
                let Payload::Ack { ece, .. } = packet.payload else { panic!("{packet:?}") };
                // The kernel's counts a mark on what ended the handshake, too.
                let more = (word - b'0' + 8 - ece) % 8;
                assert_eq!(more, *early.get_or_insert(more), "{}, packet {seq}", row.setting);
                assert!(more <= 1, "{}", row.setting);
            }
        }
    }
    (begun, ended)
}

//! What must hold for any bytes; shared by the property test and the fuzz target.

use std::io::{self, Read};

use trace::flows::Others;
use trace::skew::{Analysis, Options};
use trace::{Capture, Error, Packet};

/// `bytes` as a capture: nothing panics, reading ends, time does not run back, every packet is
/// counted once, and it does not matter in what pieces the bytes come.
pub fn check_capture(bytes: &[u8]) {
    let (packets, error) = read(bytes);
    assert!(packets.len() <= bytes.len() / 12);
    assert!(packets.is_sorted_by_key(|packet| packet.time));
    assert!(error.as_ref().is_none_or(|e| e.offset <= bytes.len() as u64));
    assert_eq!(read(OneByOne(bytes)), (packets.clone(), error));
    for most_flows in [2, 1000] {
        let options = Options { most_flows, ..Options::default() };
        let mut analysis = Analysis::new(&options);
        packets.iter().for_each(|packet| analysis.add(packet));
        let report = analysis.report();
        assert_eq!(report.packets + report.not_ip_packets, packets.len() as u64);
        let total: u64 = packets.iter().map(|packet| u64::from(packet.len)).sum();
        assert_eq!(report.bytes + report.not_ip_bytes, total);
        let Others { packets, bytes, .. } = report.others;
        assert!(report.flows.len() <= most_flows);
        assert_eq!(report.flows.iter().map(|f| f.packets).sum::<u64>() + packets, report.packets);
        assert_eq!(report.flows.iter().map(|f| f.bytes).sum::<u64>() + bytes, report.bytes);
        for row in &report.skew {
            let shares = [Some(row.bytes), Some(row.packets), row.next];
            assert!(shares.iter().flatten().all(|s| (0.0..=1.0 + 1e-9).contains(s)), "{row:?}");
        }
        assert!(report.persistence.iter().all(|row| (0.0..=1.0 + 1e-9).contains(&row.next)));
    }
}

fn read(bytes: impl Read) -> (Vec<Packet>, Option<Error>) {
    let mut packets = Vec::new();
    let mut capture = match Capture::new(bytes, "x") {
        Ok(capture) => capture,
        Err(e) => return (packets, Some(e)),
    };
    loop {
        match capture.next_packet() {
            Ok(Some(packet)) => packets.push(packet),
            Ok(None) => return (packets, None),
            Err(e) => return (packets, Some(e)),
        }
    }
}

/// A pipe that gives a byte at a time.
struct OneByOne<'a>(&'a [u8]);

impl Read for OneByOne<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let one = buffer.len().min(1);
        self.0.read(&mut buffer[..one])
    }
}

//! How bytes are spread over flows (Mahajan01 §3).
//!
//! - *Skew* (Figs. 3, 4): flows are sorted by their bytes; the first x % of them carry y % of the
//!   bytes and z % of the packets. Over the whole capture a flow ends when it is silent for the
//!   timeout (Mahajan01: 64 s); within a window it is whatever the 5-tuple sent in it.
//! - *Persistence* (Fig. 5): the flows that carry x % of the bytes of a window carry y % of those
//!   of the window after it.
//!
//! Windows follow each other from the first packet on. Each counts the same in a mean; one in which nothing
//! was sent is left out, and so is the last, which the capture's end cuts, unless it is the only one. A share
//! of flows that is no whole number of them takes the last flow in part. Packets other than IP belong to no
//! flow and are only counted. Where a table was full, the merged flows count as flows of equal size, and as
//! gone in the next window.

use std::hash::RandomState;

use wire::Flow;

use crate::Packet;
use crate::flows::{FlowTable, Others, Record};

/// The shares of flows for which skew is reported.
pub const SHARES: [f64; 16] =
    [1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0];
/// Persistence is reported for 1/20, 2/20 … of a window's bytes.
pub const LEVELS: usize = 20;

/// What is measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Lengths of windows, ns, at least 1.
    pub windows: Vec<u64>,
    /// Silence after which a flow has ended, ns; Mahajan01 §3: 64 s.
    pub timeout: u64,
    /// The most flows that are told apart, in all and in a window.
    pub most_flows: usize,
}

impl Default for Options {
    fn default() -> Self {
        let second = 1_000_000_000;
        Self {
            windows: vec![second, 5 * second, 20 * second],
            timeout: 64 * second,
            most_flows: 1 << 20,
        }
    }
}

/// What the flows with the most bytes carry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Skew {
    /// Length of the windows (ns) of which this is the mean; none for the whole capture.
    pub window: Option<u64>,
    /// So large a share of the flows.
    pub flows: f64,
    /// Their share of the bytes.
    pub bytes: f64,
    /// Their share of the packets.
    pub packets: f64,
    /// Their share of the bytes of the next window; none where no window follows another.
    pub next: Option<f64>,
}

/// What the flows that carried much go on to carry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Persistence {
    /// Length of the windows, ns.
    pub window: u64,
    /// The largest flows that carry so large a share of a window's bytes …
    pub share: f64,
    /// … carry this share of the next one's.
    pub next: f64,
}

/// The windows of one length.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Windows {
    /// Their length, ns.
    pub window: u64,
    /// How many count.
    pub count: u64,
    /// How many of them have one after them.
    pub pairs: u64,
    /// Mean number of flows in one.
    pub flows: f64,
}

/// Everything that a capture tells of its flows.
#[derive(Clone, Debug)]
pub struct Report {
    /// Packets of all flows.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that are not IP.
    pub not_ip_packets: u64,
    /// Their bytes.
    pub not_ip_bytes: u64,
    /// From the first packet to the last, ns.
    pub duration: u64,
    /// The flows, the one with the most bytes first.
    pub flows: Vec<Record>,
    /// Flows that are not told apart.
    pub others: Others,
    /// Of the whole capture, then of each length of windows.
    pub skew: Vec<Skew>,
    /// Of each length of windows.
    pub persistence: Vec<Persistence>,
    /// Each length of windows.
    pub windows: Vec<Windows>,
}

/// A capture that is being measured.
#[derive(Clone, Debug)]
pub struct Analysis {
    flows: FlowTable,
    windows: Vec<Window>,
    packets: [u64; 2],
    bytes: [u64; 2],
    last: u64,
}

impl Analysis {
    /// Nothing has been counted.
    pub fn new(options: &Options) -> Self {
        let keys = RandomState::new();
        let most = options.most_flows;
        let window = |&length: &u64| Window::new(keys.clone(), length.max(1), most);
        let windows = options.windows.iter().map(window).collect();
        let flows = FlowTable::new(keys, options.timeout, most);
        Self { flows, windows, packets: [0; 2], bytes: [0; 2], last: 0 }
    }

    /// Counts a packet, whose time is not before that of the last.
    pub fn add(&mut self, packet: &Packet) {
        self.last = packet.time;
        let flow = packet.headers.flow;
        let ip = flow != Flow::default();
        self.packets[usize::from(ip)] += 1;
        self.bytes[usize::from(ip)] += u64::from(packet.len);
        if ip {
            let hash = self.flows.hash(&flow);
            self.flows.add(hash, packet);
            for window in &mut self.windows {
                window.add(hash, packet);
            }
        }
    }

    /// What was found.
    pub fn report(self) -> Report {
        let whole = Ranked::of(self.flows);
        let mut skew = Vec::new();
        if !whole.flows.is_empty() {
            let Spread { bytes, packets } = whole.spread();
            skew.extend((0..SHARES.len()).map(|i| Skew {
                window: None,
                flows: SHARES[i],
                bytes: bytes[i],
                packets: packets[i],
                next: None,
            }));
        }
        let mut persistence = Vec::new();
        let mut windows = Vec::new();
        for mut window in self.windows {
            window.finish();
            skew.extend(window.skew());
            persistence.extend(window.persistence());
            windows.push(Windows {
                window: window.length,
                count: window.count,
                pairs: window.pairs,
                flows: window.flows / window.count.max(1) as f64,
            });
        }
        let [[not_ip_packets, packets], [not_ip_bytes, bytes]] = [self.packets, self.bytes];
        Report {
            packets,
            bytes,
            not_ip_packets,
            not_ip_bytes,
            duration: self.last,
            flows: whole.flows,
            others: whole.others,
            skew,
            persistence,
            windows,
        }
    }
}

/// The windows of one length: the present one, the one before, and sums over all that are past.
#[derive(Clone, Debug)]
struct Window {
    /// ns.
    length: u64,
    /// Number of the present window.
    number: u64,
    present: FlowTable,
    /// An empty table.
    empty: FlowTable,
    before: Option<(u64, Ranked)>,
    count: u64,
    pairs: u64,
    flows: f64,
    spread: Spread,
    /// What the largest flows carry in the next window, by their share of the flows …
    next: [f64; SHARES.len()],
    /// … and of the bytes.
    by_level: [f64; LEVELS],
}

impl Window {
    fn new(keys: RandomState, length: u64, most: usize) -> Self {
        let empty = FlowTable::new(keys, u64::MAX, most);
        Self {
            length,
            number: 0,
            present: empty.clone(),
            empty,
            before: None,
            count: 0,
            pairs: 0,
            flows: 0.0,
            spread: Spread::default(),
            next: [0.0; SHARES.len()],
            by_level: [0.0; LEVELS],
        }
    }

    fn add(&mut self, hash: u64, packet: &Packet) {
        let number = packet.time / self.length;
        if number != self.number {
            if !self.present.is_empty() {
                self.end();
            }
            self.number = number;
        }
        self.present.add(hash, packet);
    }

    /// The present window has ended.
    fn end(&mut self) {
        let table = std::mem::replace(&mut self.present, self.empty.clone());
        let before = self.before.take().filter(|(number, _)| number + 1 == self.number);
        if let Some((_, before)) = before {
            let total = table.total_bytes();
            let again = |record: &Record| table.bytes(&record.flow);
            add(&mut self.next, &before.carried(&before.shares(), again, 0, total));
            add(&mut self.by_level, &before.carried(&before.levels(), again, 0, total));
            self.pairs += 1;
        }
        let ranked = Ranked::of(table);
        let spread = ranked.spread();
        add(&mut self.spread.bytes, &spread.bytes);
        add(&mut self.spread.packets, &spread.packets);
        self.flows += ranked.count();
        self.count += 1;
        self.before = Some((self.number, ranked));
    }

    /// The capture has ended.
    fn finish(&mut self) {
        if self.count == 0 && !self.present.is_empty() {
            self.end();
        }
    }

    fn skew(&self) -> impl Iterator<Item = Skew> {
        let rows = if self.count > 0 { SHARES.len() } else { 0 };
        let n = self.count as f64;
        (0..rows).map(move |i| Skew {
            window: Some(self.length),
            flows: SHARES[i],
            bytes: self.spread.bytes[i] / n,
            packets: self.spread.packets[i] / n,
            next: (self.pairs > 0).then(|| self.next[i] / self.pairs as f64),
        })
    }

    fn persistence(&self) -> impl Iterator<Item = Persistence> {
        let rows = if self.pairs > 0 { LEVELS } else { 0 };
        (0..rows).map(|i| Persistence {
            window: self.length,
            share: level(i),
            next: self.by_level[i] / self.pairs as f64,
        })
    }
}

/// Shares of the bytes and packets, for each of [`SHARES`].
#[derive(Clone, Default, Debug)]
struct Spread {
    bytes: [f64; SHARES.len()],
    packets: [f64; SHARES.len()],
}

/// Flows, the largest first.
#[derive(Clone, Debug)]
struct Ranked {
    flows: Vec<Record>,
    others: Others,
    bytes: u64,
}

impl Ranked {
    fn of(table: FlowTable) -> Self {
        let bytes = table.total_bytes();
        let (flows, others) = table.into_sorted();
        Self { flows, others, bytes }
    }

    fn count(&self) -> f64 {
        self.flows.len() as f64 + self.others.flows as f64
    }

    /// The ranks at which [`SHARES`] of the flows end.
    fn shares(&self) -> [f64; SHARES.len()] {
        SHARES.map(|share| share * self.count())
    }

    /// The ranks at which 1/20, 2/20 … of the bytes end.
    fn levels(&self) -> [f64; LEVELS] {
        let mut ranks = [self.count(); LEVELS];
        let mut places = ranks.iter_mut().enumerate().peekable();
        let mut before = 0.0;
        let rest = (self.others.flows, self.others.bytes);
        let one_by_one = self.flows.iter().map(|record| (1, record.bytes));
        let mut rank = 0.0;
        for (flows, bytes) in one_by_one.chain([rest]) {
            let reached = |i| level(i) * self.bytes as f64 - before <= bytes as f64;
            while let Some((i, place)) = places.next_if(|(i, _)| reached(*i)) {
                let part = (level(i) * self.bytes as f64 - before) / (bytes as f64).max(1.0);
                *place = rank + part * flows as f64;
            }
            before += bytes as f64;
            rank += flows as f64;
        }
        ranks
    }

    fn spread(&self) -> Spread {
        let ranks = self.shares();
        let packets = self.flows.iter().map(|r| r.packets).sum::<u64>() + self.others.packets;
        Spread {
            bytes: self.carried(&ranks, |r| r.bytes, self.others.bytes, self.bytes),
            packets: self.carried(&ranks, |r| r.packets, self.others.packets, packets),
        }
    }

    /// The share of `total` that the flows up to each of the ascending `ranks` have, where `of`
    /// says what a flow has and `others` is what the others have.
    fn carried<const N: usize>(
        &self,
        ranks: &[f64; N],
        of: impl Fn(&Record) -> u64,
        others: u64,
        total: u64,
    ) -> [f64; N] {
        let mut shares = [0.0; N];
        let mut places = ranks.iter().zip(&mut shares).peekable();
        let mut before = 0.0;
        let mut start = 0.0;
        let one_by_one = self.flows.iter().map(|record| (1.0, of(record) as f64));
        // The last reaches all ranks, whatever was lost in rounding.
        let rest = [(self.others.flows as f64, others as f64), (f64::INFINITY, 0.0)];
        for (flows, has) in one_by_one.chain(rest) {
            while let Some((rank, share)) = places.next_if(|(rank, _)| **rank <= start + flows) {
                let part = if flows > 0.0 { (rank - start) / flows } else { 0.0 };
                *share = (before + part * has) / total.max(1) as f64;
            }
            before += has;
            start += flows;
        }
        shares
    }
}

fn add<const N: usize>(sums: &mut [f64; N], terms: &[f64; N]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}

fn level(i: usize) -> f64 {
    (i + 1) as f64 / LEVELS as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Headers;

    fn report(windows: &[u64], most_flows: usize, sends: &[(u64, u8, u32)]) -> Report {
        let options = Options { windows: windows.into(), timeout: u64::MAX, most_flows };
        let mut analysis = Analysis::new(&options);
        for &(time, flow, len) in sends {
            let flow = Flow { source: [flow; 16], ..Flow::default() };
            let headers = Headers { flow, ..Headers::default() };
            analysis.add(&Packet { time, len, headers, likeness: None });
        }
        analysis.report()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn at(report: &Report, window: Option<u64>, flows: f64) -> Skew {
        *report.skew.iter().find(|row| row.window == window && row.flows == flows).unwrap()
    }

    /// Flows of 600 (1 packet), 200 (2), 150 (1) and 50 (1) bytes: half of the flows carry 80 % in
    /// three of five packets; 30 % are 1.2 flows, which carry 600 + 0.2·200 bytes in 1 + 0.2·2
    /// packets.
    #[test]
    fn skew_of_four_flows() {
        let sends = [(0, 1, 600), (1, 2, 100), (2, 2, 100), (3, 3, 150), (4, 4, 50)];
        let report = report(&[], 10, &sends);
        let half = at(&report, None, 0.5);
        assert!(near(half.bytes, 0.8) && near(half.packets, 0.6), "{half:?}");
        let less = at(&report, None, 0.3);
        assert!(near(less.bytes, 0.64) && near(less.packets, 0.28), "{less:?}");
        let all = at(&report, None, 1.0);
        assert!(near(all.bytes, 1.0) && near(all.packets, 1.0) && all.next.is_none());
        assert_eq!((report.packets, report.bytes, report.duration), (5, 1000, 4));
    }

    /// Windows of 10: A 600 and B 400, then A 100 and B 300, then the end. Half of the first
    /// window's bytes are 0.833 of A, which has 83.3 of the next 400; all flows of the first have
    /// all of the second.
    #[test]
    fn persistence_of_two_flows() {
        let sends = [(0, 1, 600), (9, 2, 400), (10, 1, 100), (19, 2, 300), (20, 3, 1)];
        let report = report(&[10], 10, &sends);
        let [windows] = report.windows[..] else { panic!("{:?}", report.windows) };
        assert_eq!((windows.count, windows.pairs, windows.flows), (2, 1, 2.0));
        let next = |share: f64| {
            report.persistence.iter().find(|row| near(row.share, share)).map(|row| row.next)
        };
        assert!(near(next(0.5).unwrap(), 0.5 / 0.6 * 0.25));
        assert!(near(next(0.6).unwrap(), 0.25));
        assert!(near(next(1.0).unwrap(), 1.0));
        // Half of the flows: A in the first window, B in the second, 60 % and 75 % of the bytes.
        let half = at(&report, Some(10), 0.5);
        assert!(near(half.bytes, 0.675) && near(half.next.unwrap(), 0.25), "{half:?}");
    }

    #[test]
    fn an_idle_window_comes_between() {
        let report = report(&[10], 10, &[(0, 1, 100), (25, 1, 100), (1_000_000_000_000, 1, 100)]);
        assert_eq!((report.windows[0].count, report.windows[0].pairs), (2, 0));
        assert!(report.persistence.is_empty());
        assert_eq!(at(&report, Some(10), 1.0).next, None);
    }

    #[test]
    fn a_capture_shorter_than_a_window_is_one() {
        let report = report(&[100], 10, &[(0, 1, 300), (50, 2, 100)]);
        assert_eq!(report.windows[0].count, 1);
        assert!(near(at(&report, Some(100), 0.5).bytes, 0.75));
    }

    #[test]
    fn nothing_gives_nothing() {
        let report = report(&[100], 10, &[]);
        assert!(report.skew.is_empty() && report.persistence.is_empty());
        assert_eq!((report.windows[0].count, report.windows[0].flows), (0, 0.0));
    }

    /// Two places: the second flow (200) is merged when the third comes. Of three flows a third is
    /// the first, and the half of the second that follows it is one of 200 bytes, which here is the
    /// third.
    #[test]
    fn merged_flows_count_as_flows() {
        let report = report(&[], 2, &[(0, 1, 600), (1, 2, 200), (2, 3, 200)]);
        assert_eq!((report.others.flows, report.others.bytes), (1, 200));
        let half = at(&report, None, 0.5);
        assert!(near(half.bytes, 0.7), "{half:?}");
        assert!(near(at(&report, None, 1.0).bytes, 1.0));
    }

    #[test]
    fn what_is_not_ip_is_only_counted() {
        let mut analysis = Analysis::new(&Options::default());
        analysis.add(&Packet { time: 7, len: 60, headers: Headers::default(), likeness: None });
        let report = analysis.report();
        assert_eq!((report.not_ip_packets, report.not_ip_bytes, report.packets), (1, 60, 0));
        assert!(report.flows.is_empty());
    }
}

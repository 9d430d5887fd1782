//! How precisely packets were handed over.

use link::Histogram;

/// When packets were really handed over.
#[derive(Clone, Default, Debug)]
pub struct Pace {
    /// When the first and the last were, ns, and how late that last one was.
    first: u64,
    last: u64,
    late: u64,
    packets: u64,
    /// Bits of all but the first.
    bits: u64,
    gaps: Histogram,
}

impl Pace {
    /// No packet, and room for the gaps of all that come.
    pub(crate) fn reserved() -> Self {
        Self { gaps: Histogram::default().reserved(), ..Self::default() }
    }

    /// A packet of `len` bytes that was due at `due` was handed over at `now` (both ns, `due` first).
    pub(crate) fn delivered(&mut self, due: u64, now: u64, len: u32) {
        let late = now - due;
        if self.packets == 0 {
            self.first = now;
        } else {
            self.bits += 8 * u64::from(len);
            self.gaps.add(late.abs_diff(self.late), 1);
        }
        (self.last, self.late) = (now, late);
        self.packets += 1;
    }

    /// The rate from the first packet to the last; nothing if there were fewer than two.
    pub fn bits_per_second(&self) -> Option<f64> {
        let ns = self.last - self.first;
        (ns > 0).then(|| self.bits as f64 * 1e9 / ns as f64)
    }

    /// How much each gap between two packets differed from the exact one, ns.
    pub fn gaps(&self) -> &Histogram {
        &self.gaps
    }

    /// How many packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}

//! Whose turn it is on the air.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

/// Stations that have packets, in the order of their turns. With a quantum they share the airtime by deficits, as of
/// HKTHB17 §3.2 (Algorithm 3): new stations go first, and a station in debt waits. Without one each sends an
/// aggregate in its turn.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    /// What each station may send before others have their turn, ns; none that is in no list.
    deficits: Box<[Option<i64>]>,
    quantum: Option<i64>,
}

impl Turns {
    pub(super) fn new(stations: usize, quantum: Option<i64>) -> Self {
        let [new, old] = [(); 2].map(|()| VecDeque::with_capacity(stations));
        Self { new, old, deficits: vec![None; stations].into(), quantum }
    }

    /// A station has a packet.
    pub(super) fn came(&mut self, station: u16) {
        let deficit = &mut self.deficits[usize::from(station)];
        if deficit.is_none() {
            *deficit = Some(self.quantum.unwrap_or(0));
            let list = if self.quantum.is_some() { &mut self.new } else { &mut self.old };
            list.push_back(station);
        }
    }

    /// The station whose turn it is.
    pub(super) fn next(&mut self) -> Option<u16> {
        loop {
            let station = *self.new.front().or_else(|| self.old.front())?;
            let deficit = self.deficits[usize::from(station)].as_mut();
            match (deficit, self.quantum) {
                (Some(deficit), Some(quantum)) if *deficit <= 0 => *deficit += quantum,
                _ => return Some(station),
            }
            self.rotate();
        }
    }

    /// The station whose turn it was has used the air for so long, ns.
    pub(super) fn sent(&mut self, station: u16, airtime: u64) {
        if self.quantum.is_none() {
            return self.rotate();
        }
        if let Some(deficit) = &mut self.deficits[usize::from(station)] {
            *deficit -= airtime as i64;
        }
    }

    /// The station whose turn it was has nothing. A new one goes round once more, so that it does not go first again
    /// at its next packet.
    pub(super) fn had_nothing(&mut self, station: u16) {
        if self.new.is_empty() {
            self.old.pop_front();
            self.deficits[usize::from(station)] = None;
        } else {
            self.rotate();
        }
    }

    /// The station in front goes to the end of the old ones.
    fn rotate(&mut self) {
        let front = self.new.pop_front().or_else(|| self.old.pop_front());
        self.old.extend(front);
    }
}

//! When a burst is filled first (Linux 6.1, `tcp_tso_should_defer`).

use super::{Core, Rack, State};
use crate::transport::tcp::options::Options;

/// The longest wait after the last packet, ns.
const MOST_WAIT: u64 = 1_000_000;
/// A third of the window does not wait for more.
const WINDOW_DIVISOR: u32 = 3;

impl Rack {
    /// Whether the packets that may be sent wait for the next acknowledgement, since they are fewer than a
    /// `burst` and than a third of the window. They do not wait if nothing was sent for a millisecond, or if
    /// the next acknowledgement is far off: the oldest packet was sent less than half a round trip ago.
    /// Repairs and the end of the data never wait.
    pub(in super::super) fn fills_burst(
        &self,
        core: &Core,
        now: u64,
        burst: u64,
        o: &Options,
    ) -> bool {
        if core.state < State::Open || core.state >= State::Recovery || core.force {
            return false;
        }
        let pipe = self.pipe(core);
        let window = (core.cwnd as u32).min(o.window.receiver);
        let room = window.saturating_sub(pipe);
        pipe > 0
            && u64::from(room) < burst
            && room < core.given()
            && room * WINDOW_DIVISOR < window
            && now - core.last_sent <= MOST_WAIT
            && 2 * (now - self.sent_at(core.una).time().min(now)) >= core.rtt.srtt()
    }
}

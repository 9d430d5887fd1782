//! The filter of acknowledgements (HTM18 §III.E; tc-cake(8)): on a slow way back, a later
//! acknowledgement of a flow makes those before it needless.
//!
//! ```text
//! an acknowledgement comes:  of the flow's queued ones that it makes needless, the first two are found
//!                            two:  the first goes
//!                            one:  goes if the filter is aggressive and it is the last before the new one
//! another flag of ECN between two of them:  the search begins anew behind it
//! ```

use crate::packet::{Ack, FlowKey};
use crate::param::choice;

choice! {
    /// Whether acknowledgements that a later one makes redundant are dropped.
    pub enum AckFilter {
        /// All are sent.
        Off = "off",
        /// Two at least stay queued.
        On = "on",
        /// One at least stays queued.
        Aggressive = "aggressive",
    }
}

impl AckFilter {
    /// The position in a queue of what `new`, an acknowledgement that stands last in it, makes needless.
    pub(super) fn needless(
        self,
        queue: impl Iterator<Item = (FlowKey, Ack)>,
        new: (FlowKey, Ack),
    ) -> Option<usize> {
        let (mut first, mut last) = (None::<(usize, Ack)>, 0);
        for (position, (flow, ack)) in queue.enumerate() {
            if flow != new.0 || !ack.is_some() {
                continue;
            }
            first = first.filter(|&(_, needless)| ack.same_ecn(needless));
            if ack.is_told_by(new.1) {
                let Some((needless, _)) = first else {
                    first = Some((position, ack));
                    continue;
                };
                return Some(needless);
            }
            last = position;
        }
        let (needless, _) = first?;
        let alone = needless + 1 == last;
        (self == Self::Aggressive && alone).then_some(needless)
    }
}

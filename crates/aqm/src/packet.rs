//! What a queue discipline may know of a packet.

use crate::time::Instant;

/// The two ECN bits of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a congestion signal is a drop.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 01 (L4S, RFC 9331).
    Ect1 = 1,
    /// ECN-capable, codepoint 10.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint that a sender sets: [`Ecn::Ect0`] on what is ECN-capable.
    pub const fn ect(capable: bool) -> Self {
        if capable { Self::Ect0 } else { Self::NotEct }
    }

    /// Whether a congestion signal can be a mark on this packet.
    pub const fn capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Identity of a flow. In the gateway a keyed hash of the 5-tuple, in the simulator the flow's
/// number; algorithms that hash flows use their own secret key on top.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FlowKey(pub u64);

/// A packet as a queue sees it. The payload stays opaque.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Meta {
    /// When it arrived at this queue. Set by the queue.
    pub arrived: Instant,
    /// The flow that it belongs to.
    pub flow: FlowKey,
    /// Length on the wire in bytes.
    pub len: u32,
    /// ECN codepoint; a queue that marks sets [`Ecn::Ce`].
    pub ecn: Ecn,
}

const _: () = assert!(size_of::<Meta>() == 24, "a packet's metadata stays at three words");

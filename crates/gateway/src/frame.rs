//! What a frame tells (`wire`), and a flow's key.

use std::hash::{BuildHasher, RandomState};

use aqm::FlowKey;
pub use wire::{
    Flow, Headers, Layer, MAX_EXTENSIONS, MAX_TAGS, Network, network, parse, set_ce, stations,
};

/// Makes flow keys: SipHash with a key drawn from the operating system when it is made, so that
/// nobody can aim at collisions. 32 bits of it, as a flow's number in the simulator has: among
/// 10 000 flows two meet with a probability of 1 %.
#[derive(Clone, Default, Debug)]
pub struct Hasher(RandomState);

impl Hasher {
    /// The key of `flow`.
    pub fn key(&self, flow: &Flow) -> FlowKey {
        FlowKey(self.0.hash_one(flow) & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_flow_and_by_gateway() {
        let there = Flow { source: [1; 16], destination: [2; 16], protocol: 6, ports: [5001, 443] };
        let back = Flow { source: there.destination, destination: there.source, ..there };
        let (one, other) = (Hasher::default(), Hasher::default());
        assert_eq!(one.key(&there), one.key(&there));
        assert_ne!(one.key(&there), one.key(&back));
        assert_ne!(one.key(&there), other.key(&there));
    }
}

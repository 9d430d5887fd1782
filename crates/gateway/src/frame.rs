//! What a frame tells (`wire`), and a flow's key.

use std::hash::{BuildHasher, RandomState};

use aqm::{FlowKey, Label};
pub use wire::{
    Flow, Headers, Layer, MAX_EXTENSIONS, MAX_TAGS, Network, acknowledgement, clear_dscp, network,
    parse, set_ce, stations,
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

    /// The key of a packet's flow with its codepoint and its hosts, for a queue that asks for them. Of
    /// a host's hash there are 13 bits: among 50 some two meet in one gateway of seven.
    pub fn labelled(&self, headers: &Headers) -> FlowKey {
        let Headers { flow, dscp, .. } = headers;
        let host = |address: &[u8; 16]| (self.0.hash_one(address) % u64::from(Label::HOSTS)) as u16;
        let (host, peer) = (host(&flow.source), host(&flow.destination));
        FlowKey::labelled(self.key(flow).0 as u32, Label { dscp: *dscp, host, peer })
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
        let label = |flow| one.labelled(&Headers { flow, dscp: 46, ..Headers::default() }).label();
        let (out, home) = (label(there), label(back));
        assert_eq!((out.dscp, out.host, out.peer), (46, home.peer, home.host));
        assert_ne!(out.host, out.peer, "by chance in one of 8192");
        assert_eq!(label(Flow { ports: [1, 2], ..there }), out, "whatever the ports");
    }
}

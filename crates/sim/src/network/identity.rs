//! What queues take for the identity of a packet's flow.

use aqm::{FlowKey, Label};

use super::path::END;
use crate::packet::{Packet, Payload};

/// What queues take for the identity of a flow's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The first of the flows that share it.
    pub flow: u32,
    /// It changes so often, ns; 0 for never.
    pub rekey: u64,
    /// What its data tells beside, where a queue asks for it, and whether a client asks for the data.
    pub label: Option<(Label, bool)>,
}

/// Where the identities of packets are.
#[derive(Clone, PartialEq, Debug)]
pub enum Identities {
    /// Of each flow; and of each position in the table of paths, which bits of a key are seen there.
    Flows(Box<[Identity]>, Box<[u64]>),
    /// In each packet, [`Payload::Recorded`].
    Recorded,
}

impl Identities {
    /// Of each position in a table of paths, the bits of a key that are seen there: codepoints that a link
    /// before it on its path clears are not, nor hosts that are hidden from its own link.
    pub(crate) fn seen(
        paths: &[u32],
        clears: impl Fn(usize) -> bool,
        hides: impl Fn(usize) -> u64,
    ) -> Box<[u64]> {
        let [dscp, ..] = Label::FIELDS;
        let mut cleared = 0;
        let at = |entry: &u32| {
            let (link, before) = (*entry as usize, cleared);
            if *entry == END {
                cleared = 0;
                return !before;
            }
            cleared |= if clears(link) { dscp } else { 0 };
            !before & !hides(link)
        };
        paths.iter().map(at).collect()
    }

    /// A packet's flow at `now`, as queues see it.
    pub(super) fn key(&self, packet: &Packet, now: u64) -> FlowKey {
        match (self, packet.payload) {
            (Self::Recorded, Payload::Recorded { label, .. }) => {
                FlowKey(u64::from(label) << 32 | u64::from(packet.flow))
            }
            (Self::Recorded, _) => packet.identity(u64::from(packet.flow)),
            (Self::Flows(all, seen), _) => {
                let FlowKey(key) = all[packet.flow as usize].key(packet, now);
                FlowKey(key & seen.get(packet.hop as usize).unwrap_or(&u64::MAX))
            }
        }
    }
}

impl Identity {
    #[inline(never)]
    fn key(self, packet: &Packet, now: u64) -> FlowKey {
        let FlowKey(number) = packet.identity(self.at(now));
        let Some((Label { dscp, host, peer }, asked)) = self.label else { return FlowKey(number) };
        let back = packet.payload.goes_back(asked);
        let (host, peer) = if back { (peer, host) } else { (host, peer) };
        // Beside a label there are 32 bits: a change of ports, or the next connection, is another
        // number, which hardly ever is one of another flow.
        let other = ((number >> 32) as u32).wrapping_mul(0x9e37_79b1);
        FlowKey::labelled((number as u32).wrapping_add(other), Label { dscp, host, peer })
    }

    /// The identity at `now`, without that of the connection; changes are counted modulo 2²⁴.
    fn at(self, now: u64) -> u64 {
        let changes = now.checked_div(self.rekey).unwrap_or(0) & 0xff_ffff;
        u64::from(self.flow) | changes << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_changes_when_its_time_is_over() {
        let fixed = Identity { flow: 7, rekey: 0, label: None };
        assert_eq!([0, u64::MAX].map(|now| fixed.at(now)), [7; 2]);
        let moving = Identity { flow: 7, rekey: 100, label: None };
        assert_eq!([99, 100, 199].map(|now| moving.at(now) >> 32), [0, 1, 1]);
        assert_ne!(moving.at(100), Identity { flow: 8, ..moving }.at(100));
    }

    /// Link 2 clears codepoints: what comes after it on a path sees none, hosts stay. Before link 3 a
    /// translator has put its own address in place of the sender's.
    #[test]
    fn queues_see_no_codepoints_behind_a_wash_and_no_hosts_behind_a_translator() {
        let paths = [1, 2, 3, 4, END, 3, 2, END, 4, END];
        let [dscp, host, _] = Label::FIELDS;
        let seen =
            Identities::seen(&paths, |link| link == 2, |link| if link == 3 { host } else { 0 });
        let hidden: Vec<_> = seen.iter().map(|seen| !seen).collect();
        assert_eq!(hidden, [0, 0, dscp | host, dscp, dscp, host, 0, dscp, 0, 0]);
        let label = Label { dscp: 46, host: 3, peer: 5 };
        let identity = Identity { flow: 7, rekey: 0, label: Some((label, false)) };
        let all = Identities::Flows([identity].into(), seen);
        let key = |hop| all.key(&Packet { hop, ..Packet::default() }, 0);
        assert_eq!((key(1).label(), key(5).label()), (label, Label { host: 0, ..label }));
        assert_eq!(key(3), FlowKey::labelled(7, Label { dscp: 0, ..label }));
    }

    #[test]
    fn a_label_goes_with_every_packet_and_its_hosts_are_swapped_on_the_way_back() {
        let label = Label { dscp: 46, host: 3, peer: 5 };
        let identity = Identity { flow: 7, rekey: 100, label: Some((label, false)) };
        let key = |payload, now| identity.key(&Packet { payload, ..Packet::default() }, now);
        let datagram = Payload::Datagram { sent: 0.into() };
        let there = key(datagram, 0);
        assert_eq!((there.label(), there.0 as u32), (label, 7));
        let back = key(Payload::Answer, 0);
        assert_eq!((back.label(), back.0 as u32), (Label { dscp: 46, host: 5, peer: 3 }, 7));
        assert_ne!(key(datagram, 100), there, "other ports");
        assert_eq!(key(datagram, 100).label(), label);
        assert_eq!(key(Payload::Syn { tick: 0 }, 0).label(), label);
        let asked = Identity { label: Some((label, true)), ..identity };
        let opening =
            asked.key(&Packet { payload: Payload::Syn { tick: 0 }, ..Packet::default() }, 0);
        assert_eq!(opening.label(), back.label(), "the client is where the data goes");
    }
}

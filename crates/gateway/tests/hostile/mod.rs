//! What must hold for any bytes; shared by the property test and the fuzz target.

use std::cell::RefCell;

use aqm::{Duration, Limit, Rate};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use gateway::frame::Layer;
use gateway::io::vnet;
use gateway::link::{Link, Spec};

thread_local! {
    /// A link for each layer, and its time; they go on from frame to frame.
    static LINKS: RefCell<[(Link, u64); 2]> =
        RefCell::new([Layer::Ip, Layer::Ethernet].map(|layer| (link(layer), 0)));
}

fn link(layer: Layer) -> Link {
    let (delay, limit) = (Duration::from_millis(1), Limit::bytes(30_000).unwrap());
    let spec = Spec::new(Rate::from_mbit(10), delay, limit, "sfb");
    Link::new(&spec, layer, 1514).unwrap()
}

/// `bytes` as what the kernel hands over, the header about offloads before the frame: cut, judged,
/// delayed and sent. Every packet is accounted for, and none comes out that did not go in.
pub fn check_path(bytes: &[u8]) {
    LINKS.with_borrow_mut(|links| {
        for (i, layer) in [Layer::Ip, Layer::Ethernet].into_iter().enumerate() {
            let (link, now) = &mut links[i];
            *now += 300_000;
            let (mut came, mut went) = (0u64, 0u64);
            let on_way = |link: &Link| {
                let (c, b) = (link.counters(), link.beside());
                c.departed.packets - b.delivered + u64::from(link.backlog().packets)
            };
            let before = on_way(link);
            let known = |link: &Link| link.counters().all_dropped().packets + link.beside().refused;
            let lost = known(link);
            let mut frame = bytes.to_vec();
            // By AF_XDP there is no such header.
            vnet::complete_unsaid(&mut frame.clone(), layer);
            link.deliver(*now, |_| went += 1);
            // A flag of the kind is no cutting.
            let is_cut = frame.get(1).is_some_and(|kind| kind & !0x90 != 0);
            vnet::cut(&mut frame, layer, &mut |packet| {
                came += 1;
                if is_cut {
                    check_cut(packet, layer);
                }
                link.arrive(*now, packet);
            });
            assert_eq!(before + came, on_way(link) + went + known(link) - lost);
            assert!(link.check());
        }
    });
}

/// A packet of a super-packet, read by a parser that is not ours: it is whole, and its checksums are
/// right. Of tunnels that is the outer layer.
fn check_cut(packet: &[u8], layer: Layer) {
    let read = match layer {
        Layer::Ip => SlicedPacket::from_ip(packet),
        Layer::Ethernet => SlicedPacket::from_ethernet(packet),
    };
    // What is odd but can be cut, such as IPv6 extension headers that repeat.
    let Ok(SlicedPacket { net: Some(net), transport, .. }) = read else { return };
    if let NetSlice::Ipv4(ip) = &net {
        let header = ip.header();
        // Over the bytes as they are: etherparse's own sum leaves the reserved flag out.
        assert_eq!(sum(header.slice()) % 0xffff, 0, "header of {packet:x?}");
        assert_eq!(
            usize::from(header.total_len()),
            header.slice().len() + ip.payload().payload.len()
        );
    }
    let addresses = match &net {
        NetSlice::Ipv4(ip) => {
            [ip.header().source_addr().into(), ip.header().destination_addr().into()]
        }
        NetSlice::Ipv6(ip) => {
            [ip.header().source_addr().into(), ip.header().destination_addr().into()]
        }
        NetSlice::Arp(_) => return,
    };
    let (protocol, slice) = match &transport {
        Some(TransportSlice::Tcp(tcp)) => (6, tcp.slice()),
        Some(TransportSlice::Udp(udp)) if udp.checksum() != 0 => (17, udp.slice()),
        _ => return,
    };
    let pseudo = addresses.into_iter().flat_map(|address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(a) => a.octets().to_vec(),
        std::net::IpAddr::V6(a) => a.octets().to_vec(),
    });
    let length = (slice.len() as u32).to_be_bytes();
    let all: Vec<u8> =
        pseudo.chain([0, protocol]).chain(length).chain(slice.iter().copied()).collect();
    assert_eq!(sum(&all) % 0xffff, 0, "protocol {protocol} in {packet:x?}");
}

/// The sum of 16-bit words, the last filled up with 0: a multiple of 0xffff if a checksum is right.
fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum()
}

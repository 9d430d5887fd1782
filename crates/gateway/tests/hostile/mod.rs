//! What must hold for any bytes; shared by the property test and the fuzz target.

use std::cell::RefCell;

use aqm::{Duration, Limit, Rate};
use gateway::frame::Layer;
use gateway::link::{Link, Spec};
use gateway::vnet;

thread_local! {
    /// A link for each layer, and its time; they go on from frame to frame.
    static LINKS: RefCell<[(Link, u64); 2]> =
        RefCell::new([Layer::Ip, Layer::Ethernet].map(|layer| (link(layer), 0)));
}

fn link(layer: Layer) -> Link {
    let spec = Spec {
        rate: Rate::from_mbit(10),
        delay: Duration::from_millis(1),
        limit: Limit::bytes(30_000).unwrap(),
        aqm: "sfb".into(),
        params: Vec::new(),
        mean_packet: 1000,
        seed: 1,
    };
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
                c.departed.packets - b.delivered + b.passing + u64::from(link.backlog().packets)
            };
            let before = on_way(link);
            let known = |link: &Link| link.counters().all_dropped().packets + link.beside().refused;
            let lost = known(link);
            let mut frame = bytes.to_vec();
            // By AF_XDP there is no such header.
            vnet::complete_unsaid(&mut frame.clone(), layer);
            link.deliver(*now, |_| went += 1);
            vnet::cut(&mut frame, layer, &mut |packet| {
                came += 1;
                link.arrive(*now, packet);
            });
            assert_eq!(before + came, on_way(link) + went + known(link) - lost);
            assert!(link.check());
        }
    });
}

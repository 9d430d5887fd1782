//! A link takes no memory after it is built, whatever its queue discipline: packets under an
//! allocator that counts.

#[path = "../../aqm/tests/counting/mod.rs"]
mod counting;

use aqm::{CATALOG, Duration, Limit, Rate, Rng};
use counting::counted;
use gateway::frame::Layer;
use gateway::link::{Classes, Link, Spec};
use scenario::tree::TreeSpec;

#[test]
fn no_packet_takes_memory() {
    let (delay, limit) = (Duration::from_millis(3), Limit::bytes(30_000).unwrap());
    let plain = |aqm: &str| Spec::new(Rate::from_mbit(10), delay, limit, aqm);
    let tree = "default = 'b'\nclass = [{ name = 'a', rate = '10mbit' }, \
                { name = 'b', parent = 'a', rate = '5mbit', ceil = '10mbit' }]";
    let tree = Classes { tree: TreeSpec::from_toml(tree, "").unwrap(), down: false };
    let with_classes = Spec { classes: Some(tree.into()), ..plain("fq-codel") };
    for spec in CATALOG.iter().map(|entry| plain(entry.name)).chain([with_classes]) {
        let mut link = Link::new(&spec, Layer::Ip, 1500).unwrap();
        let mut rng = Rng::new(2, 0);
        let mut frame = [0; 1500];
        frame[0] = 0x45;
        frame[9] = 17;
        let (mut now, mut sent) = (0, 0);
        let ((), [taken, _]) = counted(|| {
            for i in 0..30_000 {
                now += rng.below([200_000, 2_000_000][i / 3000 % 2]) as u64;
                let len = [28, 40, 1000, 1500][rng.below(4)];
                frame[1] = rng.below(4) as u8;
                frame[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                frame[21] = rng.below(50) as u8;
                link.deliver(now, |_| sent += 1);
                link.arrive(now, &frame[..len]);
            }
        });
        assert_eq!(taken, 0, "{}", spec.aqm);
        assert!(sent > 0 && link.counters().all_dropped().packets > 0, "{}", spec.aqm);
    }
}

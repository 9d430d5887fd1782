//! A tree of classes on a link: a packet's class follows from the address of a customer, who is on the LAN.

use aqm::fair::htb::ClassCount;
use aqm::{AnyQdisc, Carried, Env, Rate, Rng};
use scenario::classes::ClassSpec;
use scenario::error::ScenarioError;
use scenario::tree::TreeSpec;

use super::Link;
use super::refused::SpecError;
use crate::frame::Flow;

/// The classes of one way.
#[derive(Clone, PartialEq, Debug)]
pub struct Classes {
    /// The classes.
    pub tree: TreeSpec,
    /// Whether customers are those that packets go to, and not those that they are from.
    pub down: bool,
}

impl Classes {
    /// The class of a packet. A frame without a sound IP header has no flow, and is the default's.
    #[inline]
    pub(super) fn class(&self, flow: &Flow) -> u16 {
        if *flow == Flow::default() {
            return self.tree.addresses().default_class();
        }
        self.tree.addresses().class(if self.down { flow.destination } else { flow.source })
    }

    /// The tree, empty; leaves without a discipline of their own have `aqm`.
    pub(super) fn queue<P: Carried>(
        &self,
        (aqm, params): (&str, &[(String, String)]),
        env: &Env,
        rng: &mut Rng,
    ) -> Result<AnyQdisc<P>, SpecError> {
        // A mistake in the options has the same message as without classes.
        let given: Vec<_> = params.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        AnyQdisc::<()>::build(aqm, &given, env, &mut rng.clone()).map_err(SpecError::Queue)?;
        self.tree.build(aqm, params, env, rng).map_err(|complaint| {
            let of = format!("the classes of the way {}", self.way());
            SpecError::Classes(ScenarioError::from_complaint(complaint, "", &of).to_string(), "")
        })
    }

    /// Refuses a link of `rate` that would decide in place of the classes.
    pub(super) fn below(&self, rate: Rate) -> Result<(), SpecError> {
        let ceil = self.tree.ceil();
        if ceil <= rate {
            return Ok(());
        }
        let root = &self.tree.class[0].name;
        Err(SpecError::Classes(
            format!("the class {root} may have {ceil}, and the link {} only {rate}", self.way()),
            "a higher --rate or --down-rate, or less for the class: else the link decides, which \
             knows no classes",
        ))
    }

    fn way(&self) -> &'static str {
        if self.down { "down" } else { "up" }
    }
}

/// Parameters of the disciplines of leaves, with their names; `own` are those of leaves without another one.
pub(crate) fn of_leaves<'a>(
    classes: Option<&'a Classes>,
    own: (&'a str, &'a [(String, String)]),
) -> Vec<(&'a str, Vec<(&'a str, String)>)> {
    let texts = |params: &'a [(String, String)]| {
        params.iter().map(|(name, text)| (name.as_str(), text.clone())).collect()
    };
    let Some(classes) = classes else { return vec![(own.0, texts(own.1))] };
    let of = |leaf: &'a ClassSpec| match &leaf.aqm {
        None => (own.0, texts(own.1)),
        Some(aqm) => {
            let params = leaf.params.iter().map(|(name, value)| (&name[..], value.to_string()));
            (aqm.as_str(), params.collect())
        }
    };
    classes.tree.leaves().map(of).collect()
}

impl Link {
    /// What each of its classes did since the queue discipline began, if it has some.
    pub fn classes(&self) -> Option<Vec<(&ClassSpec, ClassCount)>> {
        let classes = self.spec.classes.as_ref()?;
        let counts = self.queue.current().as_tree()?.counts();
        Some(classes.tree.class.iter().zip(counts).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aqm::{Duration, Limit};

    use super::*;
    use crate::frame::Layer;
    use crate::link::Spec;

    /// Anna has 10.0.0.0/24 all of IPv6 that begins with 0x20, and the addresses that stand for nothing.
    fn link(down: bool, layer: Layer) -> Link {
        let tree = r#"default = "rest"
            class = [
                { name = "line", rate = "8mbit" },
                { name = "anna", parent = "line", rate = "1mbit", address = ["10.0.0.0/24", "2000::/8", "::/120"] },
                { name = "rest", parent = "line", rate = "1mbit" },
            ]"#;
        let tree = TreeSpec::from_toml(tree, "x").unwrap();
        let limit = Limit::packets(1000).unwrap();
        let spec = Spec::new(Rate::from_mbit(10), Duration::ZERO, limit, "droptail");
        let classes = Some(Arc::new(Classes { tree, down }));
        Link::new(&Spec { classes, ..spec }, layer, 1500).unwrap()
    }

    fn came(link: &Link) -> [u64; 2] {
        let counts = link.classes().unwrap();
        [1, 2].map(|class: usize| counts[class].1.counters.arrived.packets)
    }

    fn v4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[3], packet[9]) = (0x45, 40, 17);
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn the_customer_is_who_is_on_the_lan() {
        let (anna, other) = ([10, 0, 0, 7], [192, 0, 2, 1]);
        let mut six = vec![0; 48];
        (six[0], six[6], six[24]) = (0x60, 17, 0x20);
        six[8] = 0xfd;
        for (down, expected) in [(false, [1, 2]), (true, [2, 1])] {
            let mut link = link(down, Layer::Ip);
            for packet in [v4(anna, other), v4(other, anna), six.clone()] {
                link.arrive(0, &packet).unwrap();
            }
            assert_eq!(came(&link), expected, "down: {down}");
        }
    }

    /// The file of `docs/last-mile.md`. For ten seconds each customer is sent more than the line carries: Anna and
    /// Bela borrow what Cem, whose ceil is his rate, and the others leave.
    #[test]
    fn customers_share_the_line_as_their_classes_say() {
        let page = include_str!("../../../../docs/last-mile.md");
        let (_, file) = page.split_once("title=\"customers.toml\"\n").unwrap();
        let tree = TreeSpec::from_toml(file.split_once("```").unwrap().0, "x").unwrap();
        let limit = Limit::packets(1000).unwrap();
        let spec = Spec::new(Rate::from_mbit(1000), Duration::ZERO, limit, "fq-codel");
        let classes = Some(Arc::new(Classes { tree, down: false }));
        let mut link = Link::new(&Spec { classes, ..spec }, Layer::Ip, 1500).unwrap();
        let mut packet = [v4([192, 0, 2, 0], [198, 51, 100, 1]), vec![0; 960]].concat();
        packet[2..4].copy_from_slice(&1000u16.to_be_bytes());
        for n in 0..400_000 {
            let now = n * 25_000;
            packet[15] = 1 + (n % 3) as u8;
            link.deliver(now, |_| ());
            link.arrive(now, &packet).unwrap();
        }
        let counts = link.classes().unwrap();
        let mbit = |class: usize| counts[class].1.counters.departed.bytes as f64 * 8.0 / 10e6;
        let rates = [0, 1, 2, 3, 4].map(mbit);
        for (rate, expected) in rates.into_iter().zip([100.0, 40.0, 40.0, 20.0, 0.0]) {
            assert!((rate - expected).abs() < 0.1, "{rates:?}");
        }
        let borrowed = |class: usize| counts[class].1.borrowed.bytes as f64 * 8.0 / 10e6;
        assert!((borrowed(1) - 20.0).abs() < 0.1 && borrowed(3) == 0.0, "{}", borrowed(1));
        assert!(link.check());
    }

    /// A frame without a sound IP header is the default's, whoever has the addresses that seem to be in it.
    #[test]
    fn what_has_no_address_is_the_default_s() {
        let good = v4([10, 0, 0, 7], [192, 0, 2, 1]);
        let mut link_of_ip = link(false, Layer::Ip);
        let mut bad = 0;
        for length in 1..20 {
            link_of_ip.arrive(0, &good[..length]).unwrap();
            bad += 1;
        }
        for first in [0x00, 0x44, 0x4f, 0x50, 0x60, 0xff] {
            let mut packet = good.clone();
            packet[0] = first;
            link_of_ip.arrive(0, &packet).unwrap();
            bad += 1;
        }
        assert_eq!(came(&link_of_ip), [0, bad]);
        let mut link_of_frames = link(false, Layer::Ethernet);
        for kind in [[0x08, 0x06], [0x88, 0xcc], [0x08, 0x00], [0x86, 0xdd]] {
            let frame = [&[2; 12][..], &kind, &[0; 28]].concat();
            link_of_frames.arrive(0, &frame).unwrap();
        }
        assert_eq!(came(&link_of_frames), [0, 4]);
    }
}

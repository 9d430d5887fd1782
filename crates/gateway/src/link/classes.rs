//! A tree of classes on a link: a packet's class follows from the address of a customer, who is on the LAN.

use std::sync::Arc;

use aqm::fair::htb::{self, ClassCount};
use aqm::{AnyQdisc, Carried, Env, Rate, Rng};
use scenario::classes::ClassSpec;
use scenario::error::Complaint;
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
        self.tree.build(aqm, params, env, rng).map_err(|e| SpecError::Classes(e.into()))
    }

    /// As [`Spec::fits`](super::Spec), of each leaf.
    pub(super) fn fits(
        &self,
        (aqm, params): (&str, &[(String, String)]),
        env: &Env,
        tuned: bool,
    ) -> Result<(), SpecError> {
        self.tree.fits(aqm, params, env, tuned).map_err(|e| SpecError::Classes(e.into()))
    }

    /// Refuses a link that would decide in place of the classes: its slowest rate, bit/s, is less than the root's
    /// ceil.
    pub(super) fn below(&self, slowest: u64) -> Result<(), SpecError> {
        let ceil = self.tree.ceil();
        if ceil.bits_per_second() <= slowest {
            return Ok(());
        }
        let rate = Rate::new(slowest).map_or_else(|| "0bit".into(), |rate| rate.to_string());
        let key = if self.tree.class[0].ceil.is_some() { "ceil" } else { "rate" };
        let more = Complaint::new(
            format!("class[0].{key}"),
            format!("at most {rate}, which the link {} has", if self.down { "down" } else { "up" }),
        );
        Err(SpecError::Classes(self.tree.refused(more.hint(
            "a higher --rate or --down-rate, a rate trace that stays above, or less for the class: else the link \
             decides, which knows no classes",
        )).into()))
    }

    /// A warning if classes are promised more than those above them have.
    pub(crate) fn overbooked(&self) -> Option<String> {
        let all = self.tree.overbooked();
        let ((class, sum), others) = all.split_first()?;
        let sum = Rate::new(*sum)?;
        let more = match others.len() {
            0 => String::new(),
            n => format!("; {n} more classes likewise"),
        };
        Some(format!(
            "warning: the rates of the classes below {} are {sum} together, and its own is {}{more}\nhint: \
             each class always gets its rate, so that together they exceed a class above: less for some, or \
             more for that one",
            class.name, class.rate.0
        ))
    }

    /// Whether a leaf has other parameters in `next`.
    pub(super) fn tunes_to(&self, next: &Self) -> bool {
        self.tree.class.iter().map(|class| &class.params).ne(next
            .tree
            .class
            .iter()
            .map(|class| &class.params))
    }

    /// What of the classes of a link may not become as in `next` while it runs; rates, addresses and parameters of
    /// [`About::live`](aqm::About::live) may.
    pub(super) fn stays(&self, next: &Self) -> Option<String> {
        let key = self.tree.shaped_otherwise(&next.tree)?;
        Some(next.tree.refused(Complaint::wrong(key, "not as before")).to_string())
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

/// What each class of a way did. With many classes they are asked a few at a time.
#[derive(Clone, Debug)]
pub struct ClassCounts {
    classes: Arc<Classes>,
    counts: Vec<ClassCount>,
}

impl ClassCounts {
    /// Adds up what all of them did.
    pub fn add_up(&mut self) {
        let classes = self.classes.tree.classes();
        htb::add_up(&mut self.counts, |class| classes[class].parent);
    }

    /// Each class with its counts, parents before children.
    pub fn iter(&self) -> impl Iterator<Item = (&ClassSpec, &ClassCount)> {
        self.classes.tree.class.iter().zip(&self.counts)
    }
}

impl Link {
    /// What each of its classes did since the queue discipline began, if it has some.
    pub fn classes(&self) -> Option<ClassCounts> {
        let mut all = self.no_classes_yet()?;
        self.count_classes(&mut all, usize::MAX);
        all.add_up();
        Some(all)
    }

    /// Room for what its classes did, if it has some.
    pub(crate) fn no_classes_yet(&self) -> Option<ClassCounts> {
        let classes = self.spec.classes.clone()?;
        let counts = Vec::with_capacity(classes.tree.class.len());
        Some(ClassCounts { classes, counts })
    }

    /// Asks `most` of the classes that have not been asked. Returns how many were.
    pub(crate) fn count_classes(&self, counts: &mut ClassCounts, most: usize) -> usize {
        let Some(tree) = self.queue.current().as_tree() else { return 0 };
        let from = counts.counts.len();
        let to = from.saturating_add(most).min(counts.classes.tree.class.len());
        counts.counts.extend(tree.own_counts(from..to));
        to - from
    }
}

#[cfg(test)]
mod tests {
    use aqm::{Duration, Limit};

    use super::*;
    use crate::frame::Layer;
    use crate::link::{Bucket, Spec};
    use crate::trouble::Trouble;
    use link::{Sending, Steps};

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
        [1, 2].map(|class: usize| counts.counts[class].counters.arrived.packets)
    }

    fn v4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[3], packet[9]) = (0x45, 40, 17);
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    /// At 8 Mb/s of the line Anna has a packet of 1000 bytes a ms. Her five packets stay when the file says 2 Mb/s,
    /// and leave 4 ms apart from then on.
    #[test]
    fn rates_and_addresses_of_classes_change_and_packets_stay() {
        let mut link = link(false, Layer::Ip);
        let mut packet = [v4([10, 0, 0, 7], [192, 0, 2, 1]), vec![0; 960]].concat();
        packet[2..4].copy_from_slice(&1000u16.to_be_bytes());
        let spec = |link: &Link, change: fn(String) -> String| {
            let tree = link.spec().classes.as_ref().unwrap().tree.to_toml();
            let tree = TreeSpec::from_toml(&change(tree), "x").unwrap();
            Spec { classes: Some(Arc::new(Classes { tree, down: false })), ..link.spec().clone() }
        };
        let slow = |text: String| text.replacen("1mbit", "8kbit", 1);
        let next = link.prepare(0, &spec(&link, slow)).unwrap();
        link.change(next);
        (0..6).for_each(|_| _ = link.arrive(0, &packet));
        link.deliver(5_000_000, |_| ());
        // The burst is 1600 bytes.
        assert_eq!(link.counters().departed.packets, 2, "the third is due after 1.4 s");
        let fast = |text: String| text.replacen("8kbit", "2mbit", 1).replace("10.0.0.", "10.0.1.");
        let next = link.prepare(5_000_000, &spec(&link, fast)).unwrap();
        link.change(next);
        assert_eq!((link.counters().arrived.packets, link.backlog().packets), (6, 4));
        link.deliver(5_000_000 + 16_500_000, |_| ());
        assert_eq!(link.backlog().packets, 0);
        assert!(link.check());
        // The packet of nobody is the default's now.
        link.arrive(30_000_000, &packet).unwrap();
        assert_eq!(came(&link), [6, 1]);
        let other =
            |text: String| text.replacen("8mbit", "9mbit", 1).replace("\"anna\"", "\"anne\"");
        let Err(why) = link.prepare(30_000_000, &spec(&link, other)) else {
            panic!("another tree")
        };
        assert!(matches!(why, SpecError::Classes(Trouble { what, .. })
                if what.contains(": class[1].name = \"anne\": not as before: no other queue")));
    }

    /// What comes is dropped once the probability is 1, in the leaves that have it from the options and in one of its
    /// own, each by its own parameters; what waits stays. A parameter that may not change is refused.
    #[test]
    fn parameters_of_leaves_change_and_packets_stay() {
        let tree = r#"default = "rest"
            class = [
                { name = "line", rate = "8mbit" },
                { name = "anna", parent = "line", rate = "1mbit", address = ["10.0.0.0/24"] },
                { name = "rest", parent = "line", rate = "1mbit", aqm = "bernoulli", params = { p = 0 } },
            ]"#;
        let tree = |change: &str| {
            let tree = TreeSpec::from_toml(&tree.replacen("p = 0", change, 1), "x").unwrap();
            Some(Arc::new(Classes { tree, down: false }))
        };
        let params = |p: &str| vec![("p".to_string(), p.to_string())];
        let limit = Limit::packets(1000).unwrap();
        let spec = Spec::new(Rate::from_mbit(10), Duration::ZERO, limit, "bernoulli");
        let spec = Spec { classes: tree("p = 0"), params: params("0"), ..spec };
        let mut link = Link::new(&spec, Layer::Ip, 1500).unwrap();
        let [anna, other] = [[10, 0, 0, 7], [192, 0, 2, 1]];
        let dropped = |link: &mut Link| {
            for source in [anna, other] {
                (0..3).for_each(|_| _ = link.arrive(0, &v4(source, [198, 51, 100, 1])));
            }
            let counts = link.classes().unwrap();
            [1, 2].map(|class: usize| counts.counts[class].counters.all_dropped().packets)
        };
        assert_eq!(dropped(&mut link), [0, 0]);
        let one = Spec { params: params("1"), ..spec.clone() };
        link.prepare(0, &one).map(|next| link.change(next)).unwrap();
        assert_eq!((link.backlog().packets, dropped(&mut link)), (5, [3, 0]), "one is being sent");
        let both = Spec { classes: tree("p = 1"), ..one.clone() };
        link.prepare(0, &both).map(|next| link.change(next)).unwrap();
        assert_eq!((link.backlog().packets, dropped(&mut link)), (8, [6, 3]));
        assert!(link.check() && link.spec() == &both);
        for (wrong, words) in [
            (Spec { classes: tree("p = 1, ecn = true"), ..both.clone() }, "class[2].params"),
            (Spec { params: params("2"), ..both.clone() }, "p"),
        ] {
            let Err(why) = link.prepare(0, &wrong) else { panic!("{words}") };
            assert!(format!("{why:?}").contains(words), "{why:?}");
        }
    }

    /// Its drops go on being counted.
    #[test]
    fn a_policer_before_classes_changes_its_rate() {
        let bucket = |kbit: u64| {
            let burst = "2kB".parse().unwrap();
            Some(Bucket { rate: Rate::new(kbit * 1000).unwrap(), burst })
        };
        let mut link = link(false, Layer::Ip);
        let policed = Spec { policer: bucket(8), ..link.spec().clone() };
        let none = link.spec().clone();
        assert!(link.prepare(0, &policed).is_err(), "a policer begins with another queue");
        link = Link::new(&policed, Layer::Ip, 1500).unwrap();
        let packet = [v4([10, 0, 0, 7], [192, 0, 2, 1]), vec![0; 960]].concat();
        let came = |link: &mut Link, now: u64| {
            link.deliver(now, |_| ());
            (0..10).for_each(|_| _ = link.arrive(now, &packet));
            link.counters().all_dropped().packets
        };
        assert_eq!(came(&mut link, 0), 8);
        let next =
            link.prepare(0, &Spec { policer: bucket(8_000_000), ..policed.clone() }).unwrap();
        link.change(next);
        assert_eq!(came(&mut link, 0), 16, "a burst more, and no tokens after it");
        assert_eq!(came(&mut link, 10_000_000), 24, "two again: its burst is the same");
        let wider = Bucket { burst: "20kB".parse().unwrap(), ..bucket(8000).unwrap() };
        let next =
            link.prepare(10_000_000, &Spec { policer: Some(wider), ..policed.clone() }).unwrap();
        link.change(next);
        assert_eq!(came(&mut link, 10_000_000), 24);
        assert!(link.check());
        let tiny = Bucket { burst: "10B".parse().unwrap(), ..wider };
        assert!(
            link.prepare(10_000_000, &Spec { policer: Some(tiny), ..policed.clone() }).is_err()
        );
        assert!(link.prepare(10_000_000, &none).is_err());
    }

    #[test]
    fn a_rate_trace_stays_above_the_root_s_ceil() {
        let spec = link(false, Layer::Ip).spec().clone();
        for (slowest, allowed) in [(8_000_000, true), (7_999_999, false), (0, false)] {
            let steps = [(0, 10_000_000), (1_000_000, slowest), (2_000_000, 10_000_000)];
            let rates = Some(Arc::new(Steps::new(&steps, true).unwrap()));
            let sending = Sending { rates, ..spec.sending.clone() };
            let link = Link::new(&Spec { sending, ..spec.clone() }, Layer::Ip, 1500);
            assert_eq!(link.is_ok(), allowed, "{slowest}");
        }
    }

    #[test]
    fn what_is_promised_twice_is_told() {
        let tree = link(true, Layer::Ip).spec().classes.as_ref().unwrap().tree.to_toml();
        let of = |text: String| {
            let tree = TreeSpec::from_toml(&text, "x").unwrap();
            Classes { tree, down: true }.overbooked()
        };
        assert_eq!(of(tree.clone()), None);
        let told = of(tree.replacen("1mbit", "8mbit", 1)).unwrap();
        let first = "warning: the rates of the classes below line are 9mbit together, and its own is 8mbit\n";
        assert!(told.starts_with(first), "{told}");
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
        let ClassCounts { counts, .. } = link.classes().unwrap();
        let mbit = |class: usize| counts[class].counters.departed.bytes as f64 * 8.0 / 10e6;
        let rates = [0, 1, 2, 3, 4].map(mbit);
        for (rate, expected) in rates.into_iter().zip([100.0, 40.0, 40.0, 20.0, 0.0]) {
            assert!((rate - expected).abs() < 0.1, "{rates:?}");
        }
        let borrowed = |class: usize| counts[class].borrowed.bytes as f64 * 8.0 / 10e6;
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

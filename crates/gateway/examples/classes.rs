//! What a packet costs in a link of the gateway with a tree of classes: `classes AQM LEAVES [PACKETS]`, without a
//! tree for 0 leaves.
//!
//! Packets of 1000 bytes come from random customers, as many as the link of 10 Gbit/s sends, after eight of each.
//! The root has all of the link, ten sites and the leaves are sure of half, and each may borrow all of it. A
//! packet is parsed, copied in, sorted, queued, chosen, and copied out.

use std::sync::Arc;

use aqm::{Duration, Limit, Rate, Rng};
use gateway::frame::Layer;
use gateway::link::{Classes, Link, Spec};
use gateway::report;
use nix::time::{ClockId, clock_gettime};
use scenario::tree::TreeSpec;

/// Time of a packet on the link, ns.
const APART: u64 = 800;
const LENGTH: u16 = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number =
        |n: usize, default| arguments.get(n).map_or(default, |n| n.parse().expect("a number"));
    let aqm = arguments.get(1).map_or("fq-codel", String::as_str);
    let (leaves, packets) = (number(2, 1000), number(3, 1_000_000));
    let limit = Limit::packets(if leaves == 0 { 20_000 } else { 64 }).expect("a limit");
    let classes = (leaves > 0).then(|| {
        let tree = TreeSpec::from_toml(&tree(leaves), "tree").expect("a tree");
        Arc::new(Classes { tree, down: false })
    });
    let spec = Spec { classes, ..Spec::new(Rate::from_mbit(10_000), Duration::ZERO, limit, aqm) };
    let mut link = Link::new(&spec, Layer::Ip, 1514).expect("a link");
    let customers = leaves.max(1000);
    let mut frame = vec![0; LENGTH.into()];
    (frame[0], frame[9]) = (0x45, 17);
    frame[2..4].copy_from_slice(&LENGTH.to_be_bytes());
    let mut rng = Rng::new(1, 0);
    let mut arrive = |link: &mut Link, now: u64, customer: u64| {
        frame[12..16].copy_from_slice(&(10 << 24 | customer as u32).to_be_bytes());
        frame[21] = rng.below(4) as u8;
        link.arrive(now, &frame);
        rng.below(customers as usize) as u64
    };
    let mut next = 0;
    for n in 0..8 * customers {
        next = arrive(&mut link, 0, n % customers);
    }
    let (began, mut sent) = (processor_time(), 0u64);
    for now in (1..=packets).map(|n| n * APART) {
        link.deliver(now, |_| sent += 1);
        next = arrive(&mut link, now, next);
    }
    let each = (processor_time() - began) / packets as f64;
    println!("{aqm}, {leaves} leaves: {each:.0} ns a packet, {sent} sent of {packets}");
    let began = processor_time();
    if let Some(counts) = link.classes() {
        let taken = processor_time();
        let written = report::classes(&counts, usize::MAX);
        let [first, second] = [taken - began, processor_time() - taken].map(|ns| ns / 1e3);
        println!(
            "counts of all classes: {first:.0} us to take, {second:.0} us to write, {} kinds",
            written.as_object().map_or(0, |all| all.len())
        );
    }
    assert!(link.check(), "not conserved");
}

/// Of this thread, ns.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

fn tree(leaves: u64) -> String {
    let mut text =
        String::from("default = \"c0\"\n[[class]]\nname = \"line\"\nrate = \"10gbit\"\n");
    for site in 0..10 {
        text += &format!(
            "[[class]]\nname = \"s{site}\"\nparent = \"line\"\nrate = \"500mbit\"\nceil = \"10gbit\"\n"
        );
    }
    for n in 0..leaves {
        let [_, b, c, d] = (n as u32).to_be_bytes();
        text += &format!(
            "[[class]]\nname = \"c{n}\"\nparent = \"s{}\"\nrate = \"{}kbit\"\nceil = \"10gbit\"\n\
             address = [\"10.{b}.{c}.{d}\"]\n",
            n % 10,
            (5_000_000 / leaves).max(1)
        );
    }
    text
}

//! How many packets this machine can forward, tried before the first of them.

use aqm::{Limit, Rate};

use super::begin::patiently;
use crate::clock::Clock;
use crate::frame::Layer;
use crate::io::port::Port;
use crate::link::{Link, Spec};

/// How long a try takes, ns, and how many there are. The best one counts: others may have been
/// interrupted by whatever else the machine does.
const LONG: u64 = 1_000_000;
const TRIES: usize = 5;
/// The share of the processor that may be needed; the rest is for the kernel's part and for others.
const SHARE: f64 = 0.7;

/// About how many packets of typical length this machine can forward a second now; nothing if it cannot be
/// tried.
pub fn ceiling(specs: &[Spec; 2]) -> Option<f64> {
    patiently(specs, "trying the speed", || capacity(&specs[0]))
}

/// What to warn of: rates at which both ways together take more packets of typical length than the
/// `possible` ones a second.
pub fn warning(specs: &[Spec; 2], possible: f64) -> Option<String> {
    let packets = |s: &Spec| s.rate.bits_per_second() as f64 / 8.0 / f64::from(s.mean_packet);
    let wanted: f64 = specs.iter().map(packets).sum();
    (wanted > SHARE * possible).then(|| {
        format!(
            "warning: full links both ways are {:.0} packets/s of {} bytes, and this machine now \
             forwards about {:.0}: the gateway, not the link, may be the bottleneck\n\
             hint: a lower --rate, a machine with less else to do, --realtime on, or --mean-packet \
             if packets are longer",
            wanted, specs[0].mean_packet, possible
        )
    })
}

/// Packets a second through a link of this queue discipline, each written to a socket and read from
/// it, as an interface would cost; nothing if it cannot be tried.
fn capacity(spec: &Spec) -> Option<f64> {
    let spec = Spec {
        delay: aqm::Duration::ZERO,
        limit: Limit::packets(100)?,
        sending: Default::default(),
        header: 0,
        impairments: Default::default(),
        told_rate: false,
        shaper: None,
        peak: None,
        ..spec.clone()
    };
    let length = spec.mean_packet.min(1500) as usize;
    let mut link = Link::new(&spec, Layer::Ip, 1500).ok()?;
    let (mut from, mut to) = Port::pair(Layer::Ip).ok()?;
    let mut frame = vec![0; length];
    frame[0] = 0x45;
    frame[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    // They have no address of a class.
    let rate = spec.classes.as_ref().map_or(spec.rate, |classes| classes.tree.default_ceil());
    let apart = transmission(rate, length);
    let (mut all, mut best) = (0u64, 0.0f64);
    for _ in 0..TRIES {
        let (clock, mut count) = (Clock::new(), 0u32);
        while clock.now() < LONG {
            for _ in 0..16 {
                from.send(&frame);
                to.receive(|packet| {
                    // The link's own time goes on as if packets came at its rate.
                    let now = all * apart;
                    link.deliver(now, |_| ());
                    link.arrive(now, packet);
                })
                .ok()?;
                (all, count) = (all + 1, count + 1);
            }
        }
        best = best.max(f64::from(count) * 1e9 / clock.now() as f64);
    }
    Some(best)
}

/// Time of a packet of `length` bytes at `rate`, at least 1 ns.
fn transmission(rate: Rate, length: usize) -> u64 {
    (8_000_000_000 * length as u64 / rate.bits_per_second()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(rate: u64) -> Spec {
        let (rate, limit) = (Rate::new(rate).unwrap(), Limit::packets(100).unwrap());
        Spec::new(rate, aqm::Duration::from_secs(1), limit, "blue")
    }

    /// 100 Gb/s both ways are 25 million packets a second, 40 ns each: two system calls take more.
    /// 1 kb/s is a packet in 8 s.
    #[test]
    fn what_no_machine_can_do_is_said() {
        let of = |rate| {
            let specs = [spec(rate), spec(rate)];
            warning(&specs, ceiling(&specs).unwrap())
        };
        assert!(of(Spec::MAX_RATE).unwrap().contains("25000000 packets/s of 1000 bytes"));
        assert_eq!(of(1000), None);
    }
}

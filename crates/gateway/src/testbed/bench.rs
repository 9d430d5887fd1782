//! How precise and how fast this machine is as a gateway, beside the kernel's own forwarding in the
//! same minute.
//!
//! **Precision**: datagrams fill a link of 10, 100 and 1000 Mb/s; its long-run rate is taken from when
//! packets were handed over, and so is each gap between two of them, less what it should have been.
//! Beside it is what a thread does that only sleeps as often: the machine's own part.
//! **Speed**: datagrams of 60 and 1442 bytes, as many as one thread can send, through the kernel's
//! router and through the gateway's planes. What arrives is counted at the receiver's interface.
//! The sender is part of all of them; how many it sends to somebody who throws them away is a row of
//! its own.

use std::io::{self, IoSlice};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use aqm::{Duration, Limit, Rate};
use link::Histogram;
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{LinkAddr, MsgFlags, MultiHeaders, sendmmsg};
use serde_json::{Value, json};

use crate::bridge::{self, Access, Plane};
use crate::clock::Clock;
use crate::io::port::Ports;
use crate::io::vnet;
use crate::link::{Pace, Spec};
use crate::namespace::ends::{DEVICE, Ends, Places};
use crate::namespace::{Namespace, enter_user_namespace};
use crate::netlink::{Interface, Netlink};
use crate::privilege::RealTime;
use crate::session::{Forwarding, Session};
use crate::signals::waker;
use crate::sys;
use crate::trouble::Trouble;

/// Where datagrams go; nobody reads them.
const SINK: u16 = 9;

/// Measures everything, each for `long`, and gives each row to `row`.
///
/// # Errors
/// What is missing here.
pub fn bench(long: Duration, mut row: impl FnMut(Value)) -> Result<(), Trouble> {
    enter_user_namespace()?;
    for mbit in RATES {
        row(sleeping(mbit, RealTime::Off, long)?);
        row(precision(mbit, RealTime::Off, Duration::ZERO, long)?);
    }
    for length in [60, 1442] {
        let alone = sent(length, long)?;
        let kernel = routed(length, long)?;
        let mut speed = |plane: &str, rate: f64| {
            row(json!({
                "plane": plane, "length": length, "packets_per_s": rate, "of_kernel": rate / kernel,
            }));
        };
        speed("none: sender alone", alone);
        speed("kernel", kernel);
        for aqm in ["droptail", "blue"] {
            speed(&format!("TUN, {aqm}"), tunnelled(length, aqm, long)?);
            for (name, plane) in [("AF_PACKET", Plane::Packet), ("AF_XDP", Plane::Xdp)] {
                match bridged(length, aqm, plane, long) {
                    Ok(rate) => speed(&format!("{name}, {aqm}"), rate),
                    // It takes rights that the others do not.
                    Err(why) if plane == Plane::Xdp => eprintln!("no AF_XDP: {why}"),
                    Err(why) => return Err(why),
                }
            }
        }
    }
    // Last, since a thread that has real-time priority keeps it, and the kernel's router has none.
    for mbit in RATES {
        row(sleeping(mbit, RealTime::Auto, long)?);
        row(precision(mbit, RealTime::Auto, Duration::ZERO, long)?);
        row(precision(mbit, RealTime::Auto, SPIN, long)?);
    }
    Ok(())
}

/// Rates of the links whose precision is measured, Mb/s.
const RATES: [u64; 3] = [10, 100, 1000];

/// How long before a departure the clock is looked at where that is tried.
const SPIN: Duration = Duration::from_micros(100);
/// Length of the packets whose gaps are measured, bytes.
const LENGTH: usize = 1000;

/// Gaps of a thread that sleeps from one packet of a link of `mbit` to the next, and does nothing.
fn sleeping(mbit: u64, realtime: RealTime, long: Duration) -> Result<Value, Trouble> {
    let granted = realtime.apply()?;
    set_timerslack(1).map_err(|e| Trouble::system("setting the timer slack", e))?;
    let step = 8_000 * LENGTH as u64 / mbit;
    let (mut late, mut pace, clock) = (Histogram::default(), Pace::default(), Clock::new());
    let mut now = 0;
    while now < long.as_nanos() {
        // A departure that is too late for its instant waits for the next one.
        let due = now.next_multiple_of(step).max(step);
        thread::sleep(std::time::Duration::from_nanos(due.saturating_sub(clock.now())));
        now = clock.now();
        late.add(now - due, 1);
        pace.delivered(due, now, LENGTH as u32);
    }
    Ok(json!({
        "mbit": mbit, "sleeping": true, "realtime": granted, "packets": pace.packets(),
        "lateness_p50_s": late.quantile(0.5) as f64 / 1e9,
        "lateness_p99_s": late.quantile(0.99) as f64 / 1e9,
        "gap_error_p50_s": pace.gaps().quantile(0.5) as f64 / 1e9,
        "gap_error_p99_s": pace.gaps().quantile(0.99) as f64 / 1e9,
    }))
}

/// Rate and gaps of a link of `mbit` that is never idle.
fn precision(
    mbit: u64,
    realtime: RealTime,
    spin: Duration,
    long: Duration,
) -> Result<Value, Trouble> {
    let (ends, ports) = Ends::new(&Places::new(0), 1500, false)?;
    let (waker, _wake) = waker()?;
    let how = Forwarding { realtime, spin: spin.as_nanos(), ..Forwarding::silent() };
    let spec = Spec { rate: Rate::from_mbit(mbit), ..spec("droptail")? };
    let mut session = Session::new(&[spec.clone(), spec.clone()], &how, ports)?;
    // Twice what the link takes, in bursts of a millisecond: it is never idle. The sender goes
    // before others if the gateway does.
    let burst =
        Burst { length: LENGTH, count: mbit as usize / 4 + 1, every_ns: 1_000_000, realtime };
    let blast = Blast::start(&ends.near, DEVICE, &TUNNEL, burst)?;
    session.forward(200_000_000, &waker)?;
    session.restart_measurement();
    session.forward(200_000_000 + long.as_nanos(), &waker)?;
    let [summary, _] = session.summaries([0; 2]);
    let [pace, _] = session.pace();
    blast.stop();
    // A link that had nothing to send has no rate.
    let busy = summary["idle_fraction"].as_f64().is_some_and(|idle| idle == 0.0);
    let rate = pace.bits_per_second().filter(|_| busy);
    Ok(json!({
        "mbit": mbit, "sleeping": false, "realtime": session.realtime(), "packets": pace.packets(),
        "spin_s": spin.as_secs_f64(),
        "rate_error": rate.map(|rate| rate / spec.rate.bits_per_second() as f64 - 1.0),
        "lateness_p50_s": summary["lateness_p50_s"],
        "lateness_p99_s": summary["lateness_p99_s"],
        "gap_error_p50_s": pace.gaps().quantile(0.5) as f64 / 1e9,
        "gap_error_p99_s": pace.gaps().quantile(0.99) as f64 / 1e9,
    }))
}

/// Packets a second through a TUN pair.
fn tunnelled(length: usize, aqm: &str, long: Duration) -> Result<f64, Trouble> {
    let (ends, ports) = Ends::new(&Places::new(0), 1500, false)?;
    let blast = Blast::start(&ends.near, DEVICE, &TUNNEL, Burst::flood(length))?;
    let rate = forwarded(ports, aqm, &ends.far, DEVICE, long)?;
    blast.stop();
    Ok(rate)
}

/// Between the addresses of a TUN pair; others would do as well.
const TUNNEL: Way =
    Way { addresses: [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)], stations: None };

/// Packets a second between two interfaces.
fn bridged(length: usize, aqm: &str, plane: Plane, long: Duration) -> Result<f64, Trouble> {
    let wires = Wires::new([Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 1, 3)])?;
    let access = Access { plane, open_host: false };
    let ports = wires.middle.run(move || bridge::open(["m0", "m1"], access))?;
    let blast = wires.blast(&wires.far, "b0", length)?;
    let rate = forwarded(ports, aqm, &wires.far, "b0", long)?;
    blast.stop();
    Ok(rate)
}

/// Packets a second through the kernel's router.
fn routed(length: usize, long: Duration) -> Result<f64, Trouble> {
    let wires = Wires::new([Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 2, 2)])?;
    wires
        .middle
        .run(|| {
            let mut netlink = Netlink::new()?;
            for (name, address) in [("m0", [10, 77, 1, 1]), ("m1", [10, 77, 2, 1])] {
                netlink.address(find(name)?.index, Ipv4Addr::from(address).into(), 24)?;
            }
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        })
        .map_err(|e| Trouble::system("setting a router up", e))?;
    wires.counted(&wires.middle, "m0", (&wires.far, "b0"), length, long)
}

/// Packets a second that come to an interface where nobody wants them.
fn sent(length: usize, long: Duration) -> Result<f64, Trouble> {
    let wires = Wires::new([Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 1, 3)])?;
    wires.counted(&wires.far, "b0", (&wires.middle, "m0"), length, long)
}

/// What arrives at `device` through links between `ports` that are faster than the machine.
fn forwarded(
    ports: Ports,
    aqm: &str,
    far: &Namespace,
    device: &'static str,
    long: Duration,
) -> Result<f64, Trouble> {
    let (waker, _wake) = waker()?;
    let how = Forwarding { realtime: RealTime::Off, ..Forwarding::silent() };
    let spec = Spec { rate: Rate::from_mbit(100_000), ..spec(aqm)? };
    let mut session = Session::new(&[spec.clone(), spec], &how, ports)?;
    counted(far, device, long, |ns| session.forward(session.now() + ns, &waker).map(drop))
}

/// Packets a second that arrive at `device` while `go_on` does what it does for so many ns.
fn counted(
    at: &Namespace,
    device: &'static str,
    long: Duration,
    mut go_on: impl FnMut(u64) -> Result<(), Trouble>,
) -> Result<f64, Trouble> {
    let count = || {
        at.run(move || find(device).map(|found| found.received))
            .map_err(|e| Trouble::system("counting", e))
    };
    go_on(200_000_000)?;
    let (before, clock) = (count()?, Clock::new());
    go_on(long.as_nanos())?;
    let (after, seconds) = (count()?, clock.now() as f64 / 1e9);
    Ok((after - before) as f64 / seconds)
}

fn spec(aqm: &str) -> Result<Spec, Trouble> {
    // More than 100 ms at 1 Gb/s: a sender that is kept from running leaves no gap.
    let limit = Limit::packets(20_000).ok_or_else(|| Trouble::new("no buffer", ""))?;
    Ok(Spec::new(Rate::from_mbit(10), Duration::ZERO, limit, aqm))
}

/// Three namespaces, and Ethernet between them: a0 - m0, m1 - b0.
struct Wires {
    near: Namespace,
    middle: Namespace,
    far: Namespace,
    /// Those of a0 and b0.
    addresses: [Ipv4Addr; 2],
}

impl Wires {
    /// The outer ends have these addresses, and each is the way to everywhere.
    fn new(addresses: [Ipv4Addr; 2]) -> Result<Self, Trouble> {
        let [near, middle, far] = ["near", "middle", "far"].map(Namespace::new);
        let new = Self { near: near?, middle: middle?, far: far?, addresses };
        let failed = |e: io::Error| Trouble::system("making veth interfaces", e);
        let ends = [(&new.near, "a0", "m0"), (&new.far, "b0", "m1")];
        for ((end, name, middle), address) in ends.into_iter().zip(addresses) {
            let inside: OwnedFd = end.run(Namespace::here).map_err(failed)?;
            new.middle
                .run(move || {
                    let mut netlink = Netlink::new()?;
                    netlink.veth(middle, name, inside.as_raw_fd())?;
                    netlink.up(find(middle)?.index, Vec::new())
                })
                .map_err(failed)?;
            end.run(move || {
                let mut netlink = Netlink::new()?;
                let index = find(name)?.index;
                netlink.up(index, Vec::new())?;
                netlink.address(index, address.into(), 24)?;
                netlink.default_route(index, address.into())
            })
            .map_err(failed)?;
        }
        Ok(new)
    }

    /// As many datagrams as there can be, from a0 to the address of b0, to the station `next`.
    fn blast(
        &self,
        there: &Namespace,
        next: &'static str,
        length: usize,
    ) -> Result<Blast, Trouble> {
        let station = |at: &Namespace, name: &'static str| {
            at.run(move || find(name).map(|found| found.address))
                .map_err(|e| Trouble::system("looking for an address", e))
        };
        let stations = Some([station(&self.near, "a0")?, station(there, next)?]);
        let way = Way { addresses: self.addresses, stations };
        Blast::start(&self.near, "a0", &way, Burst::flood(length))
    }

    /// Packets a second that arrive at an interface, sent to the station `next` `there`, while the
    /// kernel does what it does.
    fn counted(
        &self,
        there: &Namespace,
        next: &'static str,
        (at, device): (&Namespace, &'static str),
        length: usize,
        long: Duration,
    ) -> Result<f64, Trouble> {
        let blast = self.blast(there, next, length)?;
        let rate = counted(at, device, long, |ns| {
            thread::sleep(std::time::Duration::from_nanos(ns));
            Ok(())
        })?;
        blast.stop();
        Ok(rate)
    }
}

/// Bursts of datagrams with a given time between their starts.
#[derive(Clone, Copy)]
struct Burst {
    /// Length of the IP packet.
    length: usize,
    count: usize,
    every_ns: u64,
    realtime: RealTime,
}

impl Burst {
    fn flood(length: usize) -> Self {
        Self { length, count: AT_ONCE, every_ns: 0, realtime: RealTime::Off }
    }
}

/// Datagrams that the kernel is given with one call.
const AT_ONCE: usize = 64;

/// Whom a datagram is from and for.
struct Way {
    addresses: [Ipv4Addr; 2],
    /// Ethernet addresses, where there are any.
    stations: Option<[Vec<u8>; 2]>,
}

impl Way {
    /// The IPv4 packet of a UDP datagram without a checksum, with the Ethernet header before it.
    fn frame(&self, length: usize) -> Vec<u8> {
        let [from, to] = self.addresses.map(|a| a.octets());
        let mut ip = vec![0x45, 0];
        ip.extend((length as u16).to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        ip.extend(from.into_iter().chain(to));
        let sum = vnet::checksum(vnet::sum(0, &ip));
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        for word in [SINK, SINK, length as u16 - 20, 0] {
            ip.extend(word.to_be_bytes());
        }
        ip.resize(length, 0x42);
        let Some([from, to]) = &self.stations else { return ip };
        [to.as_slice(), from, &[8, 0], &ip].concat()
    }
}

/// A sender of datagrams at work: prebuilt frames by a packet socket, past the sender's own queue.
struct Blast {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Blast {
    fn start(
        near: &Namespace,
        device: &'static str,
        way: &Way,
        burst: Burst,
    ) -> Result<Self, Trouble> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let socket = near
            .run(move || sys::sending_socket(find(device)?.index))
            .map_err(|e: io::Error| Trouble::system("opening a socket", e))?;
        let frame = way.frame(burst.length);
        let thread = thread::spawn(move || {
            _ = burst.realtime.apply();
            let frames = vec![[IoSlice::new(&frame)]; AT_ONCE];
            let nobody = vec![None::<LinkAddr>; AT_ONCE];
            let mut headers = MultiHeaders::preallocate(AT_ONCE, None);
            let (clock, mut due) = (Clock::new(), 0);
            while !told.load(Ordering::Relaxed) {
                for begin in (0..burst.count).step_by(AT_ONCE) {
                    let frames = &frames[..AT_ONCE.min(burst.count - begin)];
                    // A datagram that the kernel does not take is not sent.
                    let (fd, now) = (socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
                    _ = sendmmsg(fd, &mut headers, frames, &nobody, [], now);
                }
                due += burst.every_ns;
                let early = due.saturating_sub(clock.now());
                if early > 0 {
                    thread::sleep(std::time::Duration::from_nanos(early));
                }
            }
        });
        Ok(Self { stop, thread })
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        _ = self.thread.join();
    }
}

/// An interface of the namespace that the calling thread is in.
fn find(name: &str) -> io::Result<Interface> {
    Ok(Netlink::new()?.interface(name)?.ok_or(io::ErrorKind::NotFound)?)
}

//! How precise and how fast this machine is as a gateway, beside the kernel's own forwarding in the
//! same minute.
//!
//! **Precision**: datagrams fill a link of 10, 100 and 1000 Mb/s; its long-run rate is taken from when
//! packets were handed over, and so is each gap between two of them, less what it should have been.
//! Beside it is what a thread does that only sleeps as often: the machine's own part.
//! **Speed**: datagrams of 60 and 1442 bytes, as many as one thread can send, through the kernel's
//! router and through the gateway's two planes. The sender is part of all of them. What arrives is
//! counted at the receiver's interface.

use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use aqm::{Duration, Limit, Rate};
use nix::sys::prctl::set_timerslack;
use serde_json::{Value, json};
use sim::metrics::histogram::Histogram;

use crate::bridge::{self, Plane};
use crate::clock::Clock;
use crate::link::{Pace, Spec};
use crate::namespace::{Namespace, enter_user_namespace};
use crate::netlink::Netlink;
use crate::port::Ports;
use crate::privilege::RealTime;
use crate::session::{Forwarding, Session};
use crate::shell::{DEVICE, Ends, FAR, waker};
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
        let kernel = routed(length, long)?;
        let planes = [
            ("TUN", tunnelled(length, "droptail", long)?),
            ("TUN, blue", tunnelled(length, "blue", long)?),
            ("AF_PACKET", bridged(length, "droptail", long)?),
            ("AF_PACKET, blue", bridged(length, "blue", long)?),
        ];
        for (plane, rate) in [("kernel", kernel)].into_iter().chain(planes) {
            row(json!({
                "plane": plane, "length": length, "packets_per_s": rate, "of_kernel": rate / kernel,
            }));
        }
    }
    // Last: who goes before others once stays there, and the kernel's router does not.
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
        // Who is too late for an instant waits for the next one.
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
    let (ends, ports) = Ends::new(1500, false)?;
    let (waker, _wake) = waker()?;
    let how = Forwarding { realtime, spin: spin.as_nanos(), ..Forwarding::silent() };
    let spec = Spec { rate: Rate::from_mbit(mbit), ..spec("droptail")? };
    let mut session = Session::new(&[spec.clone(), spec.clone()], &how, ports)?;
    // Twice what the link takes, in bursts of a millisecond: it is never idle.
    let burst = Burst { length: LENGTH, count: mbit * 250 / 1000 + 1, pause_ns: 1_000_000 };
    let blast = Blast::start(&ends.near, FAR[0], burst)?;
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
    let (ends, ports) = Ends::new(1500, false)?;
    let blast = Blast::start(&ends.near, FAR[0], Burst::flood(length))?;
    let rate = forwarded(ports, aqm, &ends.far, DEVICE, long)?;
    blast.stop();
    Ok(rate)
}

/// Packets a second between two interfaces by AF_PACKET.
fn bridged(length: usize, aqm: &str, long: Duration) -> Result<f64, Trouble> {
    let wires = Wires::new([Ipv4Addr::new(10, 77, 1, 2), Ipv4Addr::new(10, 77, 1, 3)])?;
    let ports = wires.middle.run(|| bridge::open(["m0", "m1"], Plane::Packet))?;
    let blast =
        Blast::start(&wires.near, Ipv4Addr::new(10, 77, 1, 3).into(), Burst::flood(length))?;
    let rate = forwarded(ports, aqm, &wires.far, "b0", long)?;
    blast.stop();
    Ok(rate)
}

/// Packets a second through the kernel's router.
fn routed(length: usize, long: Duration) -> Result<f64, Trouble> {
    let to = Ipv4Addr::new(10, 77, 2, 2);
    let wires = Wires::new([Ipv4Addr::new(10, 77, 1, 2), to])?;
    wires
        .middle
        .run(|| {
            let mut netlink = Netlink::new()?;
            for (name, address) in [("m0", [10, 77, 1, 1]), ("m1", [10, 77, 2, 1])] {
                let index = netlink.interface(name)?.ok_or(io::ErrorKind::NotFound)?.index;
                netlink.address(index, Ipv4Addr::from(address).into(), 24)?;
                fs::write(format!("/proc/sys/net/ipv4/conf/{name}/proxy_arp"), "1")?;
            }
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        })
        .map_err(|e| Trouble::system("setting a router up", e))?;
    let blast = Blast::start(&wires.near, to.into(), Burst::flood(length))?;
    let rate = counted(&wires.far, "b0", long, |ns| {
        thread::sleep(std::time::Duration::from_nanos(ns));
        Ok(())
    })?;
    blast.stop();
    Ok(rate)
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
        at.run(move || Netlink::new()?.interface(device))
            .map_err(|e| Trouble::system("counting", e))
            .map(|found| found.map_or(0, |i| i.received))
    };
    go_on(200_000_000)?;
    let (before, clock) = (count()?, Clock::new());
    go_on(long.as_nanos())?;
    let (after, seconds) = (count()?, clock.now() as f64 / 1e9);
    Ok((after - before) as f64 / seconds)
}

fn spec(aqm: &str) -> Result<Spec, Trouble> {
    Ok(Spec {
        rate: Rate::from_mbit(10),
        delay: Duration::ZERO,
        limit: Limit::packets(2000).ok_or_else(|| Trouble::new("no buffer", ""))?,
        aqm: aqm.into(),
        params: Vec::new(),
        mean_packet: 1000,
        seed: 1,
    })
}

/// Three namespaces, and Ethernet between them: a0 - m0, m1 - b0.
struct Wires {
    near: Namespace,
    middle: Namespace,
    far: Namespace,
}

impl Wires {
    /// The outer ends have these addresses, and each is the way to everywhere.
    fn new(addresses: [Ipv4Addr; 2]) -> Result<Self, Trouble> {
        let [near, middle, far] = ["near", "middle", "far"].map(Namespace::new);
        let new = Self { near: near?, middle: middle?, far: far? };
        let failed = |e: io::Error| Trouble::system("making veth interfaces", e);
        let ends = [(&new.near, "a0", "m0"), (&new.far, "b0", "m1")];
        for ((end, name, middle), address) in ends.into_iter().zip(addresses) {
            let inside: OwnedFd = end.run(Namespace::here).map_err(failed)?;
            new.middle
                .run(move || {
                    let mut netlink = Netlink::new()?;
                    netlink.veth(middle, name, inside.as_raw_fd())?;
                    let index = netlink.interface(middle)?.ok_or(io::ErrorKind::NotFound)?.index;
                    netlink.up(index, Vec::new())
                })
                .map_err(failed)?;
            end.run(move || {
                let mut netlink = Netlink::new()?;
                let index = netlink.interface(name)?.ok_or(io::ErrorKind::NotFound)?.index;
                netlink.up(index, Vec::new())?;
                netlink.address(index, address.into(), 24)?;
                netlink.default_route(index, address.into())
            })
            .map_err(failed)?;
        }
        Ok(new)
    }
}

/// Datagrams so many at a time, then a pause.
#[derive(Clone, Copy)]
struct Burst {
    /// Length of the IP packet.
    length: usize,
    count: u64,
    pause_ns: u64,
}

impl Burst {
    fn flood(length: usize) -> Self {
        Self { length, count: 64, pause_ns: 0 }
    }
}

/// A sender of datagrams at work.
struct Blast {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Blast {
    fn start(near: &Namespace, to: IpAddr, burst: Burst) -> Result<Self, Trouble> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let socket = near
            .run(move || {
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                socket.connect((to, SINK))?;
                Ok(socket)
            })
            .map_err(|e: io::Error| Trouble::system("opening a socket", e))?;
        let payload = vec![0x42; burst.length - 28];
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                // Nobody listens, and the kernel says so now and then.
                (0..burst.count).for_each(|_| _ = socket.send(&payload));
                if burst.pause_ns > 0 {
                    thread::sleep(std::time::Duration::from_nanos(burst.pause_ns));
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

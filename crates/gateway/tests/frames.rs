//! Frames of every kind through the gateway between two interfaces, in network namespaces, sent and
//! received by raw sockets: what comes out is read by a parser that is not ours.
//!
//! Where namespaces are not allowed these tests are skipped, and say so; under continuous integration
//! they fail.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use serde_json::Value;

use crate::planes::{has_xdp, is_there};

const GATEWAY: &str = env!("CARGO_BIN_EXE_bluewater-gateway");
/// Whose frames the receiver writes down.
const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
/// Nothing is left undone.
const DONE: [u8; 10] = [0; 10];

/// A file that nobody else uses.
fn scratch(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("bluewater-frames-{}-{number}-{name}", std::process::id()))
}

/// How frames come and go here. Nothing if there are no namespaces.
fn planes() -> Vec<&'static str> {
    let works = |flags: &str, plane: &str| {
        let script = format!(
            "ip link add lan type veth peer name x && ip link add wan type veth peer name y &&
             for i in lan wan x y; do ip link set $i up; done
             timeout -s INT 0.5 {GATEWAY} run --rate 1mbit --lan lan --wan wan --plane {plane}"
        );
        let output = Command::new("unshare").args([flags, "sh", "-c", &script]).output();
        match output {
            // 124: it ran until it was told to stop.
            Ok(output) if matches!(output.status.code(), Some(0 | 124)) => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(e) => Err(e.to_string()),
        }
    };
    let mut planes = Vec::new();
    match works("-rn", "packet") {
        Ok(()) => planes.push("packet"),
        Err(why) => {
            let ci = std::env::var_os("CI").is_some_and(|set| !set.is_empty());
            assert!(!ci, "namespaces and packet sockets have to be allowed: {why}");
            _ = writeln!(std::io::stderr(), "SKIPPED frames by packet: {why}");
        }
    }
    if has_xdp(|| works("-n", "xdp")) {
        planes.push("xdp");
    }
    planes
}

/// Runs a script of this folder with a gateway between two hosts; its summaries, up and down.
fn between(script: &str, plane: &str, options: &str, environment: &[(&str, &str)]) -> [Value; 2] {
    let log = scratch("log");
    let output: Output = Command::new("unshare")
        .arg(if plane == "xdp" { "-n" } else { "-rn" })
        .args(["sh", script, GATEWAY, log.to_str().unwrap(), "--plane", plane])
        .args(options.split_whitespace())
        .envs(environment.iter().copied())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{plane}: {errors}");
    let text = fs::read_to_string(&log).unwrap();
    _ = fs::remove_file(&log);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    [last["summary"][0].clone(), last["summary"][1].clone()]
}

/// What comes out when `frames`, each with the header of what is left undone, are sent, and the
/// summary of the way up. `how` is the sender's task.
fn through(plane: &str, options: &str, how: &str, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, Value) {
    let (sent, came) = (scratch("sent"), scratch("came"));
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let lines: Vec<String> = frames.iter().map(hex).collect();
    fs::write(&sent, lines.join("\n") + "\n").unwrap();
    let environment =
        [("FRAMES", how), ("SENT", sent.to_str().unwrap()), ("CAME", came.to_str().unwrap())];
    let [up, _] = between("frames.sh", plane, options, &environment);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let text = fs::read_to_string(&came).unwrap();
    let found = text.lines().map(|l| l.as_bytes().chunks(2).map(byte).collect()).collect();
    _ = (fs::remove_file(&sent), fs::remove_file(&came));
    (found, up)
}

fn ethernet(kinds: &[u16], inside: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x98];
    frame.extend(SENDER);
    for (i, kind) in kinds.iter().enumerate() {
        if i > 0 {
            frame.extend([0x60, 42 + i as u8]); // priority 3, VLAN 43
        }
        frame.extend(kind.to_be_bytes());
    }
    frame.extend(inside);
    frame
}

/// A checksum over words that are not it (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn v4(protocol: u8, inside: &[u8]) -> Vec<u8> {
    let mut p = vec![0x45, 2, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    p[2..4].copy_from_slice(&((20 + inside.len()) as u16).to_be_bytes());
    let sum = checksum(&p);
    p[10..12].copy_from_slice(&sum.to_be_bytes());
    p.extend(inside);
    p
}

fn v6(next: u8, inside: &[u8]) -> Vec<u8> {
    let mut p = vec![0x60, 0x20, 0, 0];
    p.extend((inside.len() as u16).to_be_bytes());
    p.extend([next, 64]);
    p.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    p.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    p.extend(inside);
    p
}

/// TCP with CWR and all of `payload`, checksum 0.
fn tcp(payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x13, 0x89, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x90, 1, 0, 0, 0, 0, 0];
    p.extend(payload);
    p
}

fn udp(port: u16, checksum: u16, inside: &[u8]) -> Vec<u8> {
    let mut p = vec![0x13, 0x89];
    p.extend(port.to_be_bytes());
    p.extend(((8 + inside.len()) as u16).to_be_bytes());
    p.extend(checksum.to_be_bytes());
    p.extend(inside);
    p
}

/// What is left undone: a checksum at `offset` from `start` on, and, if `size` is not 0, cutting of
/// `kind`.
fn undone(kind: u8, size: u16, start: usize, offset: u16) -> Vec<u8> {
    let mut header = vec![1, kind];
    for word in [if size == 0 { 0 } else { start as u16 + 20 }, size, start as u16, offset] {
        header.extend(word.to_ne_bytes());
    }
    header
}

/// Frames are as they were, in bytes and order: VLAN tags and QinQ, PPPoE, MPLS, LLDP, ARP, types that
/// nobody knows, IPv6 extension headers, fragments, options of IPv4, broken IP.
#[test]
fn frames_of_every_kind_are_kept_as_they_are() {
    let datagram = udp(9, 0, &[7; 30]);
    let [four, six] = [v4(17, &datagram), v6(17, &udp(9, 0x1234, &[7; 30]))];
    let hop = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let routing =
        |next: u8| [next, 2, 4, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 8, 8, 8];
    let chain = [&hop(43)[..], &routing(60), &hop(17), &udp(9, 0x1234, &[7; 30])].concat();
    let fragment = |more: u8| [&[17, 0, 0, more, 1, 2, 3, 4][..], &[5; 40]].concat();
    let mut cut = four.clone();
    cut[6] = 0x20;
    let mut options = v4(17, &datagram);
    options[0] = 0x46;
    options.splice(20..20, [1; 4]);
    let frames: Vec<Vec<u8>> = vec![
        ethernet(&[0x0800], &four),
        ethernet(&[0x8100, 0x0800], &four),
        ethernet(&[0x88a8, 0x8100, 0x0800], &four),
        ethernet(&[0x8100, 0x8100, 0x86dd], &six),
        ethernet(&[0x8100, 0x0806], &[1; 28]),
        ethernet(&[0x8864], &[&[0x11, 0, 0, 7, 0, 60, 0, 0x21][..], &four].concat()),
        ethernet(&[0x8863], &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]),
        ethernet(&[0x8847], &[&[0, 0x06, 0x41, 64][..], &four].concat()),
        ethernet(&[0x88cc], &[3; 50]),
        ethernet(&[0x0806], &[2; 28]),
        ethernet(&[0x1234], &[4; 60]),
        ethernet(&[40], &[0x42; 43]),
        ethernet(&[0x86dd], &six),
        ethernet(&[0x86dd], &v6(0, &chain)),
        ethernet(&[0x86dd], &v6(44, &fragment(1))),
        ethernet(&[0x86dd], &v6(44, &[&[17, 0, 0, 40][..], &[5; 44]].concat())),
        ethernet(&[0x86dd], &v6(51, &[&[17, 4][..], &[6; 22], &datagram].concat())),
        ethernet(&[0x0800], &cut),
        ethernet(&[0x0800], &options),
        ethernet(&[0x0800], &[0x45; 60]),
    ];
    let sent: Vec<Vec<u8>> = frames.iter().map(|f| [&DONE[..], f].concat()).collect();
    for plane in planes() {
        let (came, up) = through(plane, "--rate 100mbit --aqm droptail", "send", &sent);
        for (i, frame) in frames.iter().enumerate() {
            let there = came.get(i);
            assert_eq!(there, Some(frame), "{plane}: frame {i}: {came:x?}");
        }
        assert_eq!(came.len(), frames.len(), "{plane}");
        assert_eq!((&up["refused"], &up["conserved"]), (&0.into(), &true.into()), "{plane}");
    }
}

/// What is ECN-capable is marked: behind a tag and in PPPoE, in a tunnel the outer header alone. Below
/// MPLS labels the mark is not ours to make: such a packet is dropped.
#[test]
fn marks_are_made_where_they_may_be() {
    let four = v4(17, &udp(9, 0, &[7; 30]));
    let vxlan = [&[8, 0, 0, 0, 0, 0, 42, 0][..], &ethernet(&[0x0800], &four)].concat();
    let tunnel = v4(17, &udp(4789, 0, &vxlan));
    let frames = [
        (ethernet(&[0x88a8, 0x8100, 0x0800], &four), 22),
        (ethernet(&[0x8864], &[&[0x11, 0, 0, 7, 0, 60, 0, 0x21][..], &four].concat()), 22),
        (ethernet(&[0x0800], &tunnel), 14),
    ];
    let mut sent: Vec<Vec<u8>> = frames.iter().map(|(f, _)| [&DONE[..], f].concat()).collect();
    sent.push([&DONE[..], &ethernet(&[0x8847], &[&[0, 6, 0x41, 64][..], &four].concat())].concat());
    for plane in planes() {
        let options = "--rate 100mbit --aqm bernoulli --param p=1 --param ecn=true";
        let (came, up) = through(plane, options, "send", &sent);
        assert_eq!(came.len(), frames.len(), "{plane}: {came:x?}");
        for ((frame, ip), came) in frames.iter().zip(&came) {
            let mut expected = frame.clone();
            expected[ip + 1] |= 3;
            expected[ip + 10..ip + 12].fill(0);
            let sum = checksum(&expected[*ip..ip + 20]);
            expected[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
            assert_eq!(*came, expected, "{plane}");
        }
        assert!(up["drops"].as_u64().unwrap() >= 1, "{up}");
    }
}

/// ARP at full speed through a link of 1 Mb/s: what comes out in the time that the gateway ran is what
/// the link can carry, and the rest is dropped.
#[test]
fn arp_pays_for_its_way() {
    let arp = [&DONE[..], &ethernet(&[0x0806], &[0x55; 28])].concat();
    for plane in planes() {
        let options = "--rate 1mbit --buffer 20p --aqm droptail";
        let (came, up) = through(plane, options, "flood 1.5", std::slice::from_ref(&arp));
        let seconds = up["measured_s"].as_f64().unwrap();
        let bits: usize = came.iter().map(|f| 8 * f.len()).sum();
        assert!(bits as f64 <= 1e6 * seconds + 8.0 * 1514.0, "{plane}: {bits} bit in {seconds} s");
        assert!(bits as f64 >= 2e5, "{plane}: {bits} bit: the link was not kept busy");
        assert!(up["drops"].as_u64().unwrap() > 100, "{plane}: {up}");
    }
}

/// Reads a frame with etherparse, checks its checksums, and tells TCP's header and what it or UDP
/// carries.
fn payload_of(frame: &[u8]) -> (Option<etherparse::TcpHeader>, Vec<u8>) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let net = packet.net.as_ref().unwrap();
    if let NetSlice::Ipv4(ip) = net {
        let header = ip.header().to_header();
        assert_eq!(header.calc_header_checksum(), ip.header().header_checksum(), "IPv4");
    }
    match packet.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => {
            let header = tcp.to_header();
            let sum = match net {
                NetSlice::Ipv4(ip) => {
                    header.calc_checksum_ipv4(&ip.header().to_header(), tcp.payload())
                }
                NetSlice::Ipv6(ip) => {
                    header.calc_checksum_ipv6(&ip.header().to_header(), tcp.payload())
                }
                NetSlice::Arp(_) => unreachable!(),
            };
            assert_eq!(sum.unwrap(), tcp.checksum(), "TCP");
            (Some(header), tcp.payload().to_vec())
        }
        Some(TransportSlice::Udp(udp)) => {
            let header = udp.to_header();
            let sum = match net {
                NetSlice::Ipv4(ip) => {
                    header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
                }
                NetSlice::Ipv6(ip) => {
                    header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
                }
                NetSlice::Arp(_) => unreachable!(),
            };
            let unchecked = udp.checksum() == 0;
            assert!(unchecked || sum.unwrap() == udp.checksum(), "UDP");
            (None, udp.payload().to_vec())
        }
        other => panic!("{other:?}"),
    }
}

/// Super-packets as the kernel hands them over: what comes out is right, and is what was sent. CWR goes
/// with the first packet by RFC 3168, with all of them where it is part of a counter (RFC 9768). Those
/// in tunnels the kernel takes from its own tunnels alone, as below; `vnet`'s tests have all kinds.
#[test]
fn super_packets_are_cut_as_their_sender_would_have() {
    const CLASSIC: u8 = 0x80;
    let payload: Vec<u8> = (0..4500u32).map(|i| (i * 7 + i / 256) as u8).collect();
    let [four, six] = [v4(6, &tcp(&payload)), v6(6, &tcp(&payload))];
    let datagrams = v4(17, &udp(9, 0, &payload));
    // The frame, what stands before the payload in it, and the kind.
    let cases: Vec<(&str, Vec<u8>, usize, u8)> = vec![
        ("TCP by RFC 3168", ethernet(&[0x0800], &four), 20, 1 | CLASSIC),
        ("TCP by RFC 9768", ethernet(&[0x0800], &four), 20, 1),
        ("TCP over IPv6", ethernet(&[0x86dd], &six), 20, 4),
        ("UDP", ethernet(&[0x0800], &datagrams), 8, 5),
    ];
    let frames: Vec<Vec<u8>> = cases
        .iter()
        .map(|(_, frame, transport, kind)| {
            let start = frame.len() - payload.len() - transport;
            let offset = if *transport == 20 { 16 } else { 6 };
            [&undone(*kind, 1000, start, offset)[..], frame].concat()
        })
        .collect();
    if !planes().contains(&"packet") {
        return;
    }
    let (came, up) = through("packet", "--rate 100mbit --buffer 1000p", "send", &frames);
    assert_eq!(up["refused"], 0, "{up}");
    let mut came = came.into_iter();
    for (what, _, transport, kind) in &cases {
        let mut carried = Vec::new();
        for i in 0..5u32 {
            let frame = came.next().unwrap_or_else(|| panic!("{what}: packet {i} is not there"));
            let (header, part) = payload_of(&frame);
            assert_eq!(header.is_some(), *transport == 20, "{what}");
            if let Some(header) = header {
                assert_eq!(header.sequence_number, 1 + 1000 * i, "{what}");
                assert_eq!(header.cwr, i == 0 || kind & CLASSIC == 0, "{what}: packet {i}");
            }
            carried.extend(part);
        }
        assert_eq!(carried, payload, "{what}");
    }
    assert_eq!(came.next(), None);
}

/// Super-packets whose inside cannot be told are refused and counted.
#[test]
fn what_cannot_be_cut_is_counted() {
    if !planes().contains(&"packet") {
        return;
    }
    // A jumbogram's option, in a packet that is none.
    let options = [6, 0, 0xc2, 4, 0, 0, 0, 0];
    let frame = ethernet(&[0x86dd], &v6(0, &[&options[..], &tcp(&[7; 4500])].concat()));
    let sent = [&undone(4, 1000, frame.len() - 4520, 16)[..], &frame].concat();
    let (came, up) = through("packet", "--rate 100mbit", "send", &[sent.clone(), sent]);
    assert_eq!((came.len(), &up["refused"]), (0, &2.into()), "{up}");
}

/// SCTP's checksum, which the kernel leaves to be filled in like others, is a CRC.
#[test]
fn the_checksum_of_sctp_is_filled_in() {
    let chunk = [0x13, 0x89, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 8, 0, 0, 0, 0];
    let frame = ethernet(&[0x0800], &v4(132, &chunk));
    let start = frame.len() - chunk.len();
    let sent = [&undone(0, 0, start, 8)[..], &frame].concat();
    if !planes().contains(&"packet") {
        return;
    }
    let (came, _) = through("packet", "--rate 100mbit", "send", &[sent]);
    // CRC-32C bit by bit, from the least (RFC 9260 appendix A).
    let mut crc = !0u32;
    for byte in chunk {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    let mut expected = frame;
    expected[start + 8..start + 12].copy_from_slice(&(!crc).to_le_bytes());
    assert_eq!(came, [expected]);
}

/// The kernel's own VXLAN, with all its offloads: TCP gets the rate, where before it got next to
/// nothing.
#[test]
fn tcp_through_vxlan_gets_the_rate() {
    let vxlan = "ip link add v type vxlan id 1 remote 192.0.2.1 dstport 4789";
    let made = Command::new("unshare").args(["-rn", "sh", "-c", vxlan]).output();
    let lacking = match made {
        Ok(made) if made.status.success() => None,
        Ok(made) => Some(String::from_utf8_lossy(&made.stderr).into()),
        Err(e) => Some(format!("unshare: {e}")),
    };
    if !is_there("VXLAN", "BLUEWATER_NO_VXLAN", lacking) {
        return;
    }
    for plane in planes() {
        let [up, _] = between("vxlan.sh", plane, "--rate 20mbit --delay 5ms --buffer 100kB", &[]);
        let bits = 8.0 * up["departures_bytes"].as_f64().unwrap();
        // 4 s of sending.
        assert!(bits > 4.0 * 20e6 / 3.0, "{plane}: {bits} bit: {up}");
        assert_eq!((&up["refused"], &up["conserved"]), (&0.into(), &true.into()), "{plane}: {up}");
    }
}

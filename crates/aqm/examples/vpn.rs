//! One end of a VPN without encryption: `vpn LISTEN PEER RATE QUEUE`, with a TUN device as standard input.
//!
//! IP packets of the device wait in a queue and leave as datagrams to the peer, at the rate of a link; what
//! the peer sends goes to the device. As on phones, the system hands the open device over;
//! `scripts/embed.py` does so on Linux. `channel` in place of a discipline is a plain channel, for comparison.

mod hop;

use std::error::Error;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::thread;

use aqm::{Ecn, Rate};

use hop::Hop;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, peer, rate, queue] = &args[..] else {
        return Err("usage: vpn LISTEN PEER RATE channel|DISCIPLINE <TUN".into());
    };
    let rate: Rate = rate.parse().map_err(|_| "RATE: a rate such as 20mbit")?;
    let (hop, socket) = (Hop::new(queue, rate)?, UdpSocket::bind(listen)?);
    let tun = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    socket.connect(peer)?;
    thread::scope(|scope| {
        scope.spawn(|| {
            hop.run(|packet, ce| {
                if ce {
                    mark(packet);
                }
                // What the system does not take is lost, as on any link.
                let _ = socket.send(packet);
            })
        });
        scope.spawn(|| {
            let mut buffer = [0; 65_536];
            loop {
                if let Ok(len) = socket.recv(&mut buffer) {
                    let _ = (&tun).write(&buffer[..len]);
                }
            }
        });
        let flows = RandomState::new();
        let mut buffer = [0; 65_536];
        loop {
            let len = (&tun).read(&mut buffer)?;
            if let Some((flow, ecn)) = header(&buffer[..len]) {
                hop.put(flows.hash_one(flow), ecn, buffer[..len].to_vec());
            }
        }
    })
}

/// What identifies the flow of an IP packet (protocol, addresses, ports), and its ECN field; none if it is
/// too short. A packet with extension headers of IPv6 counts for its hosts alone.
fn header(packet: &[u8]) -> Option<(Vec<u8>, Ecn)> {
    let (protocol, addresses, ports, traffic_class) = match packet.first()? >> 4 {
        4 => {
            let begins = usize::from(packet[0] & 15) * 4;
            // Behind the first fragment there are no ports.
            let whole = *packet.get(6)? & 0x3f == 0 && *packet.get(7)? == 0;
            let ports = packet.get(begins..begins + 4).filter(|_| whole);
            (*packet.get(9)?, packet.get(12..20)?, ports, packet[1])
        }
        6 => (*packet.get(6)?, packet.get(8..40)?, packet.get(40..44), packet[1] >> 4),
        _ => return None,
    };
    let (tcp, udp) = (6, 17);
    let ports = ports.filter(|_| [tcp, udp].contains(&protocol)).unwrap_or_default();
    let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(traffic_class & 3)];
    Some(([&[protocol], addresses, ports].concat(), ecn))
}

/// Sets CE; IPv4 has a checksum over it (RFC 1624: it changes by what its word changes by).
fn mark(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= 3 << 4;
        return;
    }
    let added = u32::from(!packet[1] & 3);
    packet[1] |= 3;
    let sum = u32::from(!u16::from_be_bytes([packet[10], packet[11]])) + added;
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

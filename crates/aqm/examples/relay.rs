//! A relay of datagrams that sends at the rate of a link: `relay LISTEN TO RATE QUEUE`.
//!
//! ```text
//! relay 127.0.0.1:7000 127.0.0.1:8000 20mbit fq-codel
//! ```
//!
//! `channel` in place of a discipline is a plain channel, for comparison.

mod hop;

use std::error::Error;
use std::hash::{BuildHasher as _, RandomState};
use std::net::UdpSocket;
use std::thread;

use aqm::{Ecn, Rate};

use hop::Hop;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, to, rate, queue] = &args[..] else {
        return Err("usage: relay LISTEN TO RATE channel|DISCIPLINE".into());
    };
    let rate: Rate = rate.parse().map_err(|_| "RATE: a rate such as 20mbit")?;
    let (hop, socket) = (Hop::new(queue, rate)?, UdpSocket::bind(listen)?);
    thread::scope(|scope| {
        scope.spawn(|| {
            hop.run(|bytes, _| {
                // What the system does not take is lost, as on any link.
                let _ = socket.send_to(bytes, to);
            })
        });
        let flows = RandomState::new();
        let mut buffer = [0; 65_536];
        loop {
            let (len, from) = socket.recv_from(&mut buffer)?;
            // A sender is a flow. The standard library does not tell the ECN field of a datagram.
            hop.put(flows.hash_one(from), Ecn::NotEct, buffer[..len].to_vec());
        }
    })
}

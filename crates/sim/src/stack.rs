//! Protocol stacks of others, without their sockets and clocks: what they are given, and what they send.
//!
//! A stack keeps the bytes of its datagrams. The simulator carries their numbers and lengths over its links
//! and through its queues, and tells the stack what arrives, and when. A program that links this library
//! names one with [`register`]; `bluewater-quic` does so for the transports `quinn` and `noq`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aqm::{Ecn, Rng};
use scenario::TrafficSpec;
use scenario::error::Complaint;
use scenario::traffic::{QuicControl, Transport};

/// How a connection is set up.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its congestion controller.
    pub control: QuicControl,
    /// The longest datagram, bytes, without the headers of IP and UDP.
    pub datagram: u16,
    /// From which everything random is drawn.
    pub rng: Rng,
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It opens the connection, and sends what there is to send.
    Sender,
    /// It answers.
    Receiver,
}

/// A datagram leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The end that sends it.
    pub from: End,
    /// Its number among those of its end, from 0; wraps.
    pub number: u32,
    /// Its length, without the headers of IP and UDP.
    pub bytes: u16,
    /// What it asks of queues.
    pub ecn: Ecn,
}

/// What a connection has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Bytes that the receiver has got, in order.
    pub delivered: u64,
    /// Packets that the sender has found lost.
    pub lost: u32,
    /// How often its controller has learnt of marks.
    pub marked: u32,
    /// The sender's smoothed round trip, ns.
    pub srtt: u64,
    /// Its congestion window, bytes.
    pub window: u64,
}

/// Both ends of a connection. Times are in ns since the run began.
pub trait Pair: Send {
    /// The sender opens the connection.
    fn open(&mut self, now: u64);

    /// The sender has up to `most` bytes more; how many it takes now.
    fn write(&mut self, now: u64, most: u64) -> u64;

    /// Nothing comes after what was written: once all of it is acknowledged the sender closes the connection.
    fn finish(&mut self);

    /// A datagram comes to an end.
    fn arrive(&mut self, now: u64, at: End, number: u32, ecn: Ecn);

    /// [`Pair::timer`] has come.
    fn on_timer(&mut self, now: u64);

    /// The next datagram that leaves now. The simulator asks after each of the above, until there is none.
    fn next(&mut self, now: u64) -> Option<Datagram>;

    /// When [`Pair::on_timer`] is wanted; `u64::MAX`: not at all.
    fn timer(&self) -> u64;

    /// All that was written before [`Pair::finish`] is acknowledged.
    fn is_done(&self) -> bool;

    /// The round trip that the sender has measured since this was asked last, ns.
    fn take_sample(&mut self) -> Option<u64>;

    /// When the connection ended before its data did, ns, and in what words the stack says why.
    fn broken(&self) -> Option<(u64, &str)>;

    /// What it has done so far.
    fn tally(&self) -> Tally;
}

/// Makes connections.
pub type Make = fn(Start) -> Box<dyn Pair>;

static REGISTERED: Mutex<BTreeMap<&str, Make>> = Mutex::new(BTreeMap::new());

/// From now on the transport of this name is this stack.
pub fn register(name: &'static str, make: Make) {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).insert(name, make);
}

/// The stack of a transport.
pub(crate) fn named(name: &str) -> Option<Make> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied()
}

/// Whether group `number` can be run: its stack, if it needs one, is there.
pub(crate) fn check(spec: &TrafficSpec, number: usize) -> Result<(), Complaint> {
    let name = spec.group.transport.name();
    if !matches!(spec.transport, Transport::Quic(_)) || named(name).is_some() {
        return Ok(());
    }
    let refused =
        Complaint::wrong(format!("traffic[{number}].transport"), "it is not in this build");
    Err(refused.hint("build with the feature `quic` (crate bluewater-quic)"))
}

#[cfg(test)]
mod tests {
    use scenario::Scenario;

    use crate::Run;

    /// No stack is registered in this program.
    #[test]
    fn a_build_without_a_stack_says_how_to_get_it() {
        let text = "duration = \"1s\"\n[network]\npreset = \"dumbbell\"\n[[queue]]\naqm = \"red\"\n\
                    buffer = \"9p\"\n[[traffic]]\ntransport = \"quinn\"";
        let scenario = Scenario::from_toml(text, "x").unwrap();
        let refused = Run::new(scenario, text, "x").err().unwrap();
        assert_eq!((&refused.key[..], &refused.value[..]), ("traffic[0].transport", "\"quinn\""));
        assert!(refused.hint.contains("the feature `quic`"), "{refused}");
    }
}

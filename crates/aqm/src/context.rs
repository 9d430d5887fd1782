//! What algorithms and queues both speak of: time and randomness at an event, the surroundings at
//! construction, why a packet is dropped or marked, what is queued, what is remembered.

use core::ops::Add;

use crate::framing::Framing;
use crate::param::ConfigError;
use crate::rng::Rng;
use crate::time::Instant;
use crate::units::{Limit, Measure, Rate, Size};

/// All that the world may tell an algorithm at an event.
pub struct Cx<'a> {
    /// The time of the event; never goes back.
    pub now: Instant,
    /// The queue's own stream of random numbers.
    pub rng: &'a mut Rng,
}

/// All that the world may tell an algorithm when it is built.
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// The time of construction.
    pub now: Instant,
    /// The room of the buffer.
    pub limit: Limit,
    /// The rate of the link that the queue feeds.
    pub rate: Rate,
    /// The typical packet in bytes: translates between sizes in packets and in bytes, and tells
    /// how many packets an idle link could have sent.
    pub mean_packet: u32,
    /// What packets take on the wire beside their own bytes.
    pub framing: Framing,
}

impl Env {
    /// At time 0, with room for `limit`, before a link of `rate` without framing, for packets of 1000 bytes.
    pub fn new(limit: Limit, rate: Rate) -> Self {
        Self { now: Instant::ZERO, limit, rate, mean_packet: 1000, framing: Framing::default() }
    }

    /// The transmission time of a mean packet in nanoseconds.
    pub fn packet_time(&self) -> f64 {
        f64::from(self.mean_packet) * 8e9 / self.rate.bits_per_second() as f64
    }

    /// The length of the longest packet in bytes: `mtu` if given, else that of an Ethernet frame, or of the
    /// mean packet if it is longer.
    pub(crate) fn longest(&self, mtu: Option<u32>) -> u32 {
        mtu.unwrap_or(self.mean_packet.max(1514))
    }

    /// A mean packet in `measure`.
    pub fn unit(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Packets => 1.0,
            Measure::Bytes => f64::from(self.mean_packet),
        }
    }

    /// Most bytes that wait where the parameter `key` bounds memory.
    pub(crate) fn memory(&self, key: &'static str, most: Option<Size>) -> Result<u64, ConfigError> {
        let Some(size) = most else { return Ok(u64::MAX) };
        let bytes = self.resolve(key, size, Measure::Bytes)?;
        if bytes < Limit::MIN_PACKET as f64 {
            return Err(ConfigError { key, allowed: "room for a packet at least".into() });
        }
        Ok(bytes as u64)
    }

    /// A size in `measure`; the error names the parameter `key`.
    ///
    /// # Errors
    /// When the size is given in `bdp`, which a threshold cannot be.
    pub fn resolve(
        &self,
        key: &'static str,
        size: Size,
        measure: Measure,
    ) -> Result<f64, ConfigError> {
        size.in_measure(measure, self.limit, self.mean_packet).ok_or(ConfigError {
            key,
            allowed: "bytes (20kB), packets (20p) or a share of the buffer (20%)".into(),
        })
    }
}

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// There was no room.
    Overflow = 0,
    /// The algorithm's decision, with room or without.
    Early = 1,
    /// A rate limit or pre-filter on a flow that ignores congestion.
    Penalty = 2,
    /// A rate limit on all that arrives.
    Policed = 3,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = 4;
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Overflow, Self::Early, Self::Penalty, Self::Policed];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Early => "early",
            Self::Penalty => "penalty",
            Self::Policed => "policed",
        }
    }
}

/// A number of packets and of their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Tally {
    /// Counts one packet of `len` bytes.
    pub fn count(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    /// What was counted since `earlier`, a past value of the same tally.
    pub fn since(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, bytes: self.bytes - earlier.bytes }
    }
}

/// Both together.
impl Add for Tally {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// What is queued now, without the packet in transmission.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Both together.
impl Add for Backlog {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Backlog {
    /// A packet of `len` bytes comes.
    #[inline]
    pub(crate) fn add(&mut self, len: u32) {
        self.packets += 1;
        self.bytes += u64::from(len);
    }

    /// A packet of `len` bytes goes.
    #[inline]
    pub(crate) fn remove(&mut self, len: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(len);
    }

    /// Bytes that it takes on the wire, each packet as long as their mean.
    pub(crate) fn on_wire(self, framing: Framing) -> u64 {
        let packets = u64::from(self.packets);
        let mean = self.bytes.checked_div(packets).unwrap_or(0);
        u64::from(framing.on_wire(mean as u32)) * packets + (self.bytes - mean * packets)
    }
}

/// What an algorithm remembers, without the packets and the room for them, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// For the queue as a whole, whatever comes: averages, bins, tables of fixed size.
    pub queue: u64,
    /// For each flow that it distinguishes, 0 if it distinguishes none.
    pub per_flow: u64,
    /// The most flows that it distinguishes at a time.
    pub flows: u64,
    /// For each queued packet.
    pub per_packet: u64,
}

impl State {
    /// Of a `T` with `heap` bytes beyond itself, which tells no flows apart.
    pub(crate) const fn of<T>(heap: usize) -> Self {
        Self { queue: (size_of::<T>() + heap) as u64, per_flow: 0, flows: 0, per_packet: 0 }
    }
}

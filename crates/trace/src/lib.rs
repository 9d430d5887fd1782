//! Packet captures.
//!
//! ```text
//! file -> capture (packets) -> skew -> tables
//!                           -> the simulator's queues
//! generate (packets) -> write -> file
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`capture`] | reads pcap and pcapng, packet by packet |
//! | [`mod@write`] | writes them |
//! | [`pcapng`] | the blocks of a pcapng file, with ways and comments |
//! | [`flows`] | counts packets and bytes by flow, in bounded memory |
//! | [`skew`] | how bytes are spread over flows, in all and by window, and how far one window tells the next |
//! | [`headers`] | the headers of packets that nobody captured |
//! | [`generate`] | packets of flows with heavy-tailed sizes and rates |

pub mod capture;
pub mod flows;
pub mod generate;
pub mod headers;
pub mod pcapng;
pub mod skew;
pub mod write;

pub use capture::{Capture, Error, Packet};

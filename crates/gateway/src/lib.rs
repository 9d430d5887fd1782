//! Real packets through any queue discipline of the library.
//!
//! A packet's way:
//!
//! ```text
//! port -> Link::arrive -> queue -> transmitter -> wire -> Link::deliver -> the other port
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`vnet`] | super-packets of the kernel, cut |
//! | [`frame`] | from the bytes of a packet to its flow and its ECN field, and back: the mark |
//! | [`link`] | an emulated link: queue, transmitter, wire; time is handed in |
//! | [`port`], `xdp`, [`forward`] | where frames come from and go to; by AF_XDP; the loop |
//! | [`session`] | from the first packet to the last: log, recording, summaries |
//! | [`namespace`], [`shell`] | a command behind a link |
//! | [`bridge`], `wiring` | a link between two interfaces, and no way beside it |
//! | [`control`], [`place`], [`metrics`] | questions and changes while it runs |
//! | [`record`] | arrivals, recorded and replayed in the simulator |
//! | [`traffic`], [`datagrams`], [`testbed`], [`mod@bench`] | bulk TCP of the kernel's own,
//! datagrams at a constant rate; measurements with them, and of this machine |
//! | [`privilege`], `confine` | rights given up, the processor asked for; system calls given up |
//! | `writer` | what is written while packets go, by a thread of its own |
//! | [`capture`] | packets and what became of them, as pcapng |
//! | [`options`], [`config`], [`report`], [`trouble`] | command line, options from a file, results, what is wrong |
//! | [`clock`] | the one place that reads a clock |

mod arena;
pub mod bench;
pub mod bridge;
pub mod capture;
pub mod clock;
pub mod config;
mod confine;
pub mod control;
pub mod datagrams;
mod flows;
pub mod forward;
pub mod frame;
pub mod link;
pub mod metrics;
pub mod namespace;
mod netlink;
pub mod options;
pub mod place;
pub mod port;
pub mod privilege;
pub mod record;
pub mod report;
mod selftest;
pub mod session;
pub mod shell;
mod sys;
pub mod testbed;
pub mod traffic;
pub mod trouble;
pub mod vnet;
mod wiring;
mod writer;
mod xdp;

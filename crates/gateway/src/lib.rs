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
//! | [`frame`] | from the bytes of a packet to its flow and its ECN field, and back: the mark |
//! | [`link`] | an emulated link: queue, transmitter, wire; time is handed in |
//! | [`port`], [`forward`] | where frames come from and go to; the loop |
//! | [`namespace`], [`shell`] | a command behind a link |
//! | [`record`] | arrivals, recorded and replayed in the simulator |
//! | [`traffic`] | bulk TCP of the kernel's own |
//! | [`options`], [`report`], [`trouble`] | command line, results, what is wrong |
//! | [`clock`] | the one place that reads a clock |

mod arena;
pub mod clock;
pub mod forward;
pub mod frame;
pub mod link;
pub mod namespace;
mod netlink;
pub mod options;
pub mod port;
pub mod record;
pub mod report;
pub mod shell;
mod sys;
pub mod traffic;
pub mod trouble;

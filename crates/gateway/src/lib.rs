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
//! | [`frame`], [`io`] | a frame's flow and mark; where frames come from and go to, and the loop |
//! | [`link`] | an emulated link: queue, transmitter, wire; time is handed in |
//! | [`session`] | from the first packet to the last: log, recording, summaries; what is given up |
//! | [`control`] | questions and changes while it runs |
//! | [`renewal`], [`upgrade`] | new files and options while it runs; a new process that takes over |
//! | [`namespace`], [`shell`] | the ends of a link in network namespaces; a command behind it |
//! | [`bridge`], [`guard`] | a link between two interfaces, and no way beside it; what is done about them meanwhile |
//! | [`testbed`] | measurements with traffic of the kernel's own, and of this machine |
//! | [`record`] | arrivals, recorded and replayed in the simulator |
//! | [`output`] | what is written while packets go, by threads of its own |
//! | [`options`], [`config`], [`text`], [`report`], [`trouble`] | command line, options from a file, results, what is wrong |
//! | [`privilege`], `service`, `signals`, `netlink`, `messages`, `sys` | what the gateway asks of the system, and tells it |
//! | [`clock`] | the one place that reads a clock |

pub mod bridge;
pub mod clock;
pub mod config;
pub mod control;
pub mod direction;
pub mod frame;
pub mod guard;
pub mod io;
pub mod link;
mod messages;
pub mod namespace;
mod netlink;
pub mod options;
pub mod output;
pub mod privilege;
pub mod record;
pub mod renewal;
pub mod report;
mod service;
pub mod session;
pub mod shell;
mod signals;
mod sys;
pub mod testbed;
pub mod text;
pub mod trouble;
pub mod upgrade;

//! Real packets through any queue discipline of the library.
//!
//! | module | what it holds |
//! |---|---|
//! | [`link`] | an emulated link: queue, transmitter, wire; time is handed in |
//! | [`frame`] | from the bytes of a packet to its flow and its ECN field, and back: the mark |

mod arena;
pub mod frame;
pub mod link;

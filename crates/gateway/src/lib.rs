//! Real packets through any queue discipline of the library.
//!
//! | module | what it holds |
//! |---|---|
//! | [`frame`] | from the bytes of a packet to its flow and its ECN field, and back: the mark |

pub mod frame;

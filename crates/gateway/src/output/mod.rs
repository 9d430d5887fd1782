//! What is written while packets go, by threads of its own.

pub mod capture;
pub(crate) mod writer;

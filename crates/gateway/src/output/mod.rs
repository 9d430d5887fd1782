//! Output while packets flow, written by threads of its own.

pub mod capture;
pub(crate) mod writer;

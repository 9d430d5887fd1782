//! How data is carried: one module a transport.

pub mod tcp;
pub mod tfrc;

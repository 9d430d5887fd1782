//! TCP as packets of one MSS: Tahoe, Reno, NewReno (RFC 6582), SACK (RFC 6675), with RTO (RFC 6298),
//! limited transmit (RFC 3042), delayed acknowledgements and ECN (RFC 3168); congestion control as
//! Reno's, CUBIC (RFC 9438), DCTCP (RFC 8257), Prague's (RFC 9331) or BBR's.

pub mod bits;
pub mod control;
mod ends;
pub mod options;
pub mod receiver;
pub mod rtt;
mod runs;
pub mod sender;

pub(crate) use ends::Ends;
pub use options::Options;

#[cfg(test)]
mod tests;

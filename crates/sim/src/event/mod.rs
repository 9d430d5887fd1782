//! What happens next: packets in lanes, timers in a tree and a wheel.

#[cfg(test)]
mod heap;
mod lanes;
mod list;
mod ring;
mod tree;
mod wheel;

pub(crate) use lanes::{Flight, NO_LANE, Timetable, source_in_key};
pub(crate) use list::EventList;
pub(crate) use ring::Ring;

//! All tests of this folder in one program: each more would be linked, and compile what it shares, again.

mod packetdrill;
mod reference;
mod tfrc;
mod validation;

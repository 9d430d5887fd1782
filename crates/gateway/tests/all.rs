//! All tests of this folder in one program: each more would be linked, and compile what it shares, again.

mod frames;
mod hostile;
mod hostile_frames;
mod hostile_strangers;
mod no_alloc;
mod planes;
mod real;
mod strangers;

//! All tests of this folder in one program: each more would be linked, and compile what it shares, again.

mod acks;
mod bbr;
mod controllers;
mod delays;
mod determinism;
mod events;
mod fairness;
mod fuzz;
mod fuzz_scenario;
mod golden;
mod journal;
mod keys;
mod l4s;
mod ledbat;
mod memory;
mod naive;
mod pacing;
mod scenarios;
mod scream;
mod series;
mod tcp;
mod trace;
mod transfers;
mod varying;
mod watch;
mod window;

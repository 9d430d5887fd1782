//! Where frames come from and go to, and the loop between.
//!
//! **TUN, AF_PACKET** ([`port::Port::tun`], [`port::Port::interface`]): one file, a frame each read and
//! write, and before it what the kernel left undone, which is done here ([`vnet`]): offloads need not
//! be switched off. At an interface the kernel's own stack would have each frame, too, but for [`shut`].
//!
//! **AF_XDP** ([`xdp`]): there is no such header. Checksums that were left to be filled in are known by
//! what stands in their place; super-packets are lost.

mod bpf;
pub mod forward;
mod frames;
mod packet;
pub mod port;
pub(crate) mod shut;
mod tun;
pub mod vnet;
pub(crate) mod xdp;

//! An open interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::packet::Packet;
use super::shut::Shut;
use super::tun::Tun;
use super::vnet;
use super::xdp::Xdp;
use crate::frame::Layer;
use crate::sys;
use crate::trouble::Trouble;

/// The ends of two links, up from the first to the second and down back.
#[derive(Debug)]
pub struct Ports {
    /// Near and far, LAN and WAN.
    pub ends: [Port; 2],
    /// Longest frame of either, bytes.
    pub longest: usize,
    /// Why they are not on the plane that would be faster, if that was thought of.
    pub fallback: Option<String>,
    /// What may be spoilt on this one.
    pub warnings: Vec<Trouble>,
}

/// An open interface.
#[derive(Debug)]
pub struct Port {
    device: Device,
    layer: Layer,
    /// The number of an existing interface.
    index: Option<u32>,
    /// Keeps this machine's own stack from its frames.
    shut: Option<Shut>,
}

#[derive(Debug)]
enum Device {
    Tun(Tun),
    Packet(Packet),
    Rings(Box<Xdp>),
}

impl Port {
    /// A new TUN device `name` in the network namespace of the calling thread, which goes when the
    /// port does.
    ///
    /// # Errors
    /// Those of the system.
    pub fn tun(name: &str) -> io::Result<Self> {
        Ok(Self { device: Device::Tun(Tun::new(name)?), layer: Layer::Ip, index: None, shut: None })
    }

    /// Everything that comes in at the Ethernet interface with the number `index`; what is written
    /// goes out there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn interface(index: u32) -> io::Result<Self> {
        let device = Device::Packet(Packet::new(index)?);
        Ok(Self { device, layer: Layer::Ethernet, index: Some(index), shut: None })
    }

    /// Two ports that are connected to each other.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn pair(layer: Layer) -> io::Result<(Self, Self)> {
        let (one, other) = Tun::pair()?;
        let port = |tun| Self { device: Device::Tun(tun), layer, index: None, shut: None };
        Ok((port(one), port(other)))
    }

    /// The Ethernet interface with the number `index` by AF_XDP.
    pub(crate) fn rings(index: u32, rings: Xdp) -> Self {
        let device = Device::Rings(Box::new(rings));
        Self { device, layer: Layer::Ethernet, index: Some(index), shut: None }
    }

    /// As long as this is there this machine's own stack gets no frame that comes in at its interface,
    /// called `name`. By AF_XDP it gets none anyway.
    ///
    /// # Errors
    /// When that cannot be, with what mends it.
    pub(crate) fn shut(mut self, name: &str) -> Result<Self, Trouble> {
        if let (Device::Packet(_), Some(index)) = (&self.device, self.index) {
            self.shut = Some(Shut::new(index, name, &format!("bluewater-{index}"))?);
        }
        Ok(self)
    }

    /// What came in at the interface with the number `index` at a `socket` of another process, and what has
    /// `shut` it to this machine's own stack.
    ///
    /// # Errors
    /// When the socket is not one of that interface.
    pub(crate) fn taken_over(
        index: u32,
        socket: OwnedFd,
        shut: Option<OwnedFd>,
    ) -> io::Result<Self> {
        if sys::bound_to(&socket)? != Some(index) {
            return Err(io::Error::other("the running gateway forwards at another interface"));
        }
        let device = Device::Packet(Packet::of(socket.into()));
        Ok(Self { device, layer: Layer::Ethernet, index: Some(index), shut: shut.map(Shut::File) })
    }

    /// What [`Self::taken_over`] needs: nothing for a port that cannot be taken over.
    pub(crate) fn files(&self) -> Option<(BorrowedFd<'_>, Option<BorrowedFd<'_>>)> {
        match &self.device {
            Device::Packet(packet) => Some((packet.as_fd(), self.shut.as_ref().map(AsFd::as_fd))),
            Device::Tun(_) | Device::Rings(_) => None,
        }
    }

    /// Whether more of a super-packet is to come.
    pub(crate) fn is_cutting(&self) -> bool {
        match &self.device {
            Device::Packet(packet) => packet.is_cutting(),
            Device::Tun(_) | Device::Rings(_) => false,
        }
    }

    /// What its frames begin with.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// How it gets frames.
    pub fn plane(&self) -> &'static str {
        match &self.device {
            Device::Tun(_) => "tun",
            Device::Packet(_) => "packet",
            Device::Rings(_) => "xdp",
        }
    }

    /// Reads a frame, if one is there, and gives it or the packets of it to `each`. Whether one was
    /// there.
    ///
    /// # Errors
    /// Those of the system; an interface that is down has no frames.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        match &mut self.device {
            Device::Tun(tun) => tun.receive(self.layer, each),
            Device::Packet(packet) => packet.receive(self.layer, each),
            Device::Rings(rings) => Ok(rings.receive(|frame| {
                vnet::complete_unsaid(frame, self.layer);
                each(frame);
            })),
        }
    }

    /// Whether its interface exists, up or down: that one, not another that has its number or its name
    /// since.
    pub fn exists(&self) -> bool {
        let bound = match &self.device {
            Device::Tun(_) => return true,
            Device::Packet(packet) => sys::bound_to(packet),
            Device::Rings(rings) => sys::bound_to(rings.promiscuous()),
        };
        bound.is_ok_and(|index| index == self.index)
    }

    /// Writes a frame; whether there was room for it. It goes out with the next [`Self::flush`] at
    /// the latest.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.device {
            Device::Tun(tun) => tun.send(frame),
            Device::Packet(packet) => packet.send(frame),
            Device::Rings(rings) => rings.send(frame),
        }
    }

    /// Tells the kernel of what was read and written.
    pub fn flush(&mut self) {
        if let Device::Rings(rings) = &mut self.device {
            rings.flush();
        }
    }

    /// Super-packets that could not be cut, and were lost.
    pub fn uncut(&self) -> u64 {
        match &self.device {
            Device::Tun(tun) => tun.uncut(),
            Device::Packet(packet) => packet.uncut(),
            Device::Rings(_) => 0,
        }
    }

    /// Frames that were written and that the interface did not take after all.
    pub fn unsent(&self) -> u64 {
        match &self.device {
            Device::Tun(_) | Device::Packet(_) => 0,
            Device::Rings(rings) => rings.refused(),
        }
    }

    /// Frames that the kernel dropped because they were not read in time. Only for an existing
    /// interface.
    pub fn overrun(&mut self) -> u64 {
        match &mut self.device {
            Device::Tun(_) => 0,
            Device::Packet(packet) => packet.overrun(),
            Device::Rings(rings) => rings.lost(),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Tun(tun) => tun.as_fd(),
            Device::Packet(packet) => packet.as_fd(),
            Device::Rings(rings) => rings.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::unistd::write;

    use super::*;

    fn received(port: &mut Port) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while port.receive(|frame| frames.push(frame.to_vec())).unwrap() {}
        frames
    }

    #[test]
    fn what_is_written_at_one_end_is_read_at_the_other_once_and_in_order() {
        for layer in [Layer::Ip, Layer::Ethernet] {
            let (mut one, mut other) = Port::pair(layer).unwrap();
            assert_eq!((one.layer(), other.layer(), one.plane()), (layer, layer, "tun"));
            assert!(one.exists() && other.exists());
            let frames = [vec![1; 60], vec![2; 1514], vec![3; 9000]];
            assert!(frames.iter().all(|frame| one.send(frame)));
            one.flush();
            assert_eq!(received(&mut one), [[0u8; 0]; 0]);
            assert_eq!(received(&mut other), frames);
            assert!(!other.receive(|frame| panic!("{frame:?}")).unwrap());
            assert!(other.send(&frames[0]));
            assert_eq!(received(&mut one), frames[..1]);
            for port in [&mut one, &mut other] {
                assert_eq!([port.uncut(), port.unsent(), port.overrun()], [0; 3]);
            }
        }
    }

    /// However much the system lets wait: what is beyond that is refused until there is room again.
    #[test]
    fn a_full_port_says_so() {
        let (mut one, mut other) = Port::pair(Layer::Ip).unwrap();
        let taken = (0..1_000_000).take_while(|_| one.send(&[0x45; 1000])).count();
        assert!((1..1_000_000).contains(&taken));
        assert!(!one.send(&[0x45; 20]));
        assert!(other.receive(|_| ()).unwrap());
        assert!(one.send(&[0x46; 20]));
        let rest = received(&mut other);
        assert_eq!((rest.len(), rest.last().unwrap()), (taken, &vec![0x46; 20]));
    }

    /// A header that asks for the cutting of what is no TCP: something was there, and nothing comes of it.
    #[test]
    fn what_cannot_be_cut_is_counted_where_it_came() {
        let (mut one, other) = Port::pair(Layer::Ip).unwrap();
        let mut bytes = vec![0u8; vnet::HEADER + 3000];
        (bytes[0], bytes[1]) = (1, 1);
        bytes[4..6].copy_from_slice(&1000u16.to_ne_bytes());
        write(&other, &bytes).unwrap();
        assert!(one.receive(|frame| panic!("{} bytes", frame.len())).unwrap());
        assert_eq!((one.uncut(), other.uncut()), (1, 0));
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        assert!(Port::interface(u32::MAX).is_err());
    }
}

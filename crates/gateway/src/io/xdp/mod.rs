//! Frames by AF_XDP: a program at the interface hands them over, in memory that this process shares
//! with the kernel, before the kernel has done anything with them.
//!
//! The memory is cut into chunks of one size, a frame each. Four rings say whose a chunk is: *fill* gives
//! chunks to the kernel, it puts frames into them and gives them back by *received*; *sending* gives frames
//! to the kernel, and it gives their chunks back by *sent*. The kernel copies frames between these chunks and
//! its own memory (copy mode), as we request: it takes frames to send within a system call of ours, never at
//! another time.

mod shared;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::bpf::{Attachment, Mode};
use nix::errno::Errno;
use nix::libc;
use shared::{Giving, Memory, Ring, Taking};

use crate::sys;
use crate::trouble::Trouble;

/// Chunks for frames that come in: so many may wait to be read.
const RECEIVING: u32 = 4096;
/// Chunks for frames that go out.
const SENDING: u32 = 1024;
/// The most frames that are written before the kernel gets notice. It takes at most 32 of those that wait at
/// a time: fewer are added than it takes, so that none stay.
const BATCH: u32 = 16;
/// Bytes that the kernel keeps free before a frame that comes in (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// Bytes of a chunk: the kernel allows powers of two from 2 kB to a page.
const CHUNKS: [usize; 2] = [2048, 4096];
/// Options that no kernel knows: an entry of [`Xdp::sending`] that is skipped.
const VOID: u32 = u32::MAX;

/// An interface by AF_XDP.
#[derive(Debug)]
pub(crate) struct Xdp {
    // Dropped in this order: first no more frames come.
    _attachment: Attachment,
    promiscuous: OwnedFd,
    socket: OwnedFd,
    fill: Giving<1>,
    received: Taking<2>,
    sending: Giving<2>,
    sent: Taking<1>,
    memory: Memory,
    chunk: usize,
    mode: Mode,
    /// Chunks that can be sent from, and for each chunk of that kind whether the kernel has it.
    free: Vec<u32>,
    away: Box<[bool]>,
    /// Frames read or written of which the kernel does not know yet.
    read: u32,
    written: u32,
    /// Frames that the kernel did not take, or dropped.
    refused: u64,
}

impl Xdp {
    /// All frames that come in at the interface `index`, called `name`, by its first queue, of at
    /// most `longest` bytes; what is written goes out there. By the driver, or, if that cannot and
    /// `generic` is allowed, by the kernel for it.
    ///
    /// # Errors
    /// What is missing, with what mends it.
    pub(crate) fn open(
        index: u32,
        name: &str,
        longest: usize,
        generic: bool,
    ) -> Result<Self, Trouble> {
        let chunk = CHUNKS.into_iter().find(|chunk| longest + HEADROOM <= *chunk);
        let chunk = chunk.ok_or_else(|| {
            Trouble::new(
                format!("{name}: frames of {longest} bytes are too long for AF_XDP"),
                format!(
                    "up to {}: ip link set {name} mtu 1500, or --plane packet",
                    CHUNKS[1] - HEADROOM
                ),
            )
        })?;
        Self::with(index, chunk, generic).map_err(|e| missing(name, &e))
    }

    fn with(index: u32, chunk: usize, generic: bool) -> io::Result<Self> {
        let promiscuous = sys::promiscuous(index)?;
        let memory = Memory::new(chunk * (RECEIVING + SENDING) as usize)?;
        let socket = sys::xdp_socket()?;
        memory.register(&socket, chunk)?;
        sys::xdp_rings(&socket, RECEIVING, SENDING)?;
        let (fd, offsets) = (socket.as_fd(), sys::xdp_offsets(&socket)?);
        let mut fill = Giving::new(Ring::open(fd, FILL, &offsets.fr, RECEIVING)?);
        let received =
            Taking::new(Ring::open(fd, libc::XDP_PGOFF_RX_RING, &offsets.rx, RECEIVING)?);
        let sending = Giving::new(Ring::open(fd, libc::XDP_PGOFF_TX_RING, &offsets.tx, SENDING)?);
        let sent = Taking::new(Ring::open(fd, SENT, &offsets.cr, SENDING)?);
        (0..u64::from(RECEIVING)).for_each(|i| _ = fill.push([i * chunk as u64]));
        fill.publish();
        sys::xdp_bind(&socket, index)?;
        let attach = |mode| Attachment::new(index, fd, mode).map(|attachment| (attachment, mode));
        let (attachment, mode) = attach(Mode::Native).or_else(|e| match generic && cannot(&e) {
            true => attach(Mode::Generic),
            false => Err(e),
        })?;
        Ok(Self {
            _attachment: attachment,
            promiscuous,
            socket,
            fill,
            received,
            sending,
            sent,
            memory,
            chunk,
            mode,
            free: (RECEIVING..RECEIVING + SENDING).collect(),
            away: vec![false; SENDING as usize].into_boxed_slice(),
            read: 0,
            written: 0,
            refused: 0,
        })
    }

    /// A packet socket that is bound to its interface.
    pub(crate) fn promiscuous(&self) -> &OwnedFd {
        &self.promiscuous
    }

    /// Whether the driver hands frames over, not the kernel for it.
    pub(crate) fn native(&self) -> bool {
        self.mode == Mode::Native
    }

    /// Reads a frame, if one is there, and gives it to `each`. Whether one was there.
    pub(crate) fn receive(&mut self, each: impl FnOnce(&mut [u8])) -> bool {
        let Some([at, rest]) = self.received.pop() else { return false };
        let (at, (length, _)) = (at as usize, halves(rest));
        let begin = at - at % self.chunk;
        let inside = at % self.chunk + length as usize <= self.chunk;
        if inside && begin < self.chunk * RECEIVING as usize {
            if let Some(frame) = self.memory.frame(at, length as usize) {
                each(frame);
            }
            self.fill.push([begin as u64]);
        }
        self.read += 1;
        true
    }

    /// Writes a frame; whether there was room. It goes out with the next [`Self::flush`] at the
    /// latest.
    pub(crate) fn send(&mut self, frame: &[u8]) -> bool {
        let Some(&number) = self.free.last() else { return false };
        let at = number as usize * self.chunk;
        let Some(chunk) = self.memory.frame(at, frame.len().min(self.chunk)) else { return false };
        if chunk.len() < frame.len() {
            return false;
        }
        chunk.copy_from_slice(frame);
        if !self.sending.push([at as u64, whole(frame.len() as u32, 0)]) {
            return false;
        }
        self.free.pop();
        self.away[(number - RECEIVING) as usize] = true;
        self.written += 1;
        if self.written == BATCH {
            self.flush();
        }
        true
    }

    /// Tells the kernel what was read and written.
    pub(crate) fn flush(&mut self) {
        if self.read > 0 {
            self.fill.publish();
            self.received.publish();
            self.read = 0;
        }
        if self.written > 0 {
            self.sending.publish();
        }
        // A call makes at least one frame fewer wait, or two calls skip what is void.
        for call in 0..BATCH + 2 {
            if self.sending.waiting() == 0 {
                break;
            }
            match sys::xdp_send(&self.socket) {
                Ok(()) | Err(Errno::EINTR) => {}
                // It was taken and dropped.
                Err(Errno::EBUSY) => self.refused += 1,
                // The interface takes no more now; what is left waits in the ring.
                Err(Errno::EAGAIN | Errno::ENOBUFS) => break,
                // The interface is down or gone: nothing was looked at in this call.
                Err(_) => {
                    if call == 0 {
                        self.withdraw();
                    }
                    break;
                }
            }
        }
        self.written = 0;
        while let Some([at]) = self.sent.pop() {
            self.give_back(at);
        }
        self.sent.publish();
    }

    /// Frames that were written and could not be sent.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Frames that the kernel dropped because they were not read in time, or too long.
    pub(crate) fn lost(&self) -> u64 {
        // What finds no chunk to fill is among those dropped.
        sys::xdp_statistics(&self.socket).map_or(0, |s| s.rx_dropped + s.rx_ring_full)
    }

    /// Makes the frames that were written last void, so that they do not go out at some later time.
    fn withdraw(&mut self) {
        let mut void = [0; BATCH as usize];
        let mut places = void.iter_mut();
        self.sending.change_last(self.written, |[at, rest]| {
            places.next().into_iter().for_each(|place| *place = at);
            [at, whole(halves(rest).0, VOID)]
        });
        void[..self.written as usize].iter().for_each(|&at| self.give_back(at));
        self.refused += u64::from(self.written);
    }

    /// The chunk at `at` can be sent from again; only one that was away.
    fn give_back(&mut self, at: u64) {
        let number = at / self.chunk as u64;
        let away = number.checked_sub(RECEIVING.into()).and_then(|i| self.away.get_mut(i as usize));
        if away.is_some_and(std::mem::take) {
            self.free.push(number as u32);
        }
    }
}

impl AsFd for Xdp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const FILL: libc::off_t = libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t;
const SENT: libc::off_t = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;

/// The second word of a frame's entry: its length and its options.
fn halves(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

fn whole(length: u32, options: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (length.to_ne_bytes(), options.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Whether a driver says so that it has no AF_XDP, or not for this MTU.
fn cannot(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE))
}

/// What an error while opening means.
fn missing(name: &str, error: &io::Error) -> Trouble {
    if error.raw_os_error() == Some(libc::ERANGE) {
        return Trouble::new(
            format!("{name}: no AF_XDP: its driver does not have it at this MTU"),
            format!("ip link set {name} mtu 1500, or --plane packet"),
        );
    }
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run it as root, or: setcap cap_net_raw,cap_net_admin,cap_bpf+ep bluewater-gateway"
        }
        Some(libc::EBUSY | libc::EEXIST) => "another XDP program is there: ip -d link",
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            "allow it to lock memory: ulimit -l unlimited, or setcap \
             cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep bluewater-gateway"
        }
        Some(libc::EAFNOSUPPORT) => "a kernel with CONFIG_XDP_SOCKETS",
        Some(libc::EOPNOTSUPP | libc::EINVAL) => "its driver may not have it: --plane packet",
        _ => "",
    };
    Trouble::new(format!("{name}: no AF_XDP: {error}"), hint)
}

//! Programs at an interface: one that hands frames over to a socket, one that keeps them from the rest of
//! the kernel.
#![expect(unsafe_code, reason = "bpf(2) takes pointers to its own structures")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;

/// Where the program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// In the driver, before the kernel has made a packet of a frame.
    Native,
    /// After that, whatever the driver is.
    Generic,
}

/// A program at an interface, from when it is made until it is dropped, or the process ends in
/// whatever way.
#[derive(Debug)]
pub(crate) struct Attachment {
    link: OwnedFd,
}

impl AsFd for Attachment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

impl Attachment {
    /// From now on hands the frames that come in at the interface `index` by its first queue over
    /// to `socket`.
    pub(super) fn new(index: u32, socket: BorrowedFd<'_>, mode: Mode) -> io::Result<Self> {
        let sockets = map()?;
        let program = program(&sockets)?;
        put(&sockets, socket)?;
        let flags = match mode {
            Mode::Native => XDP_FLAGS_DRV_MODE,
            Mode::Generic => XDP_FLAGS_SKB_MODE,
        };
        Self::link(&program, index, BPF_XDP, flags)
    }

    /// From now on drops what comes in at the interface `index`, before all others that may take it but
    /// packet sockets.
    pub(super) fn dropping(index: u32) -> io::Result<Self> {
        Self::link(&load(BPF_PROG_TYPE_SCHED_CLS, &DROP)?, index, BPF_TCX_INGRESS, BPF_F_BEFORE)
    }

    fn link(program: &OwnedFd, index: u32, kind: u32, flags: u32) -> io::Result<Self> {
        let program = program.as_raw_fd() as u32;
        let request =
            LinkCreate { program, index, kind, flags, relative: 0, padding: 0, revision: 0 };
        Ok(Self { link: call(BPF_LINK_CREATE, &request)? })
    }
}

// From linux/bpf.h and linux/if_link.h.
const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_F_BEFORE: u32 = 8;
const XDP_FLAGS_SKB_MODE: u32 = 2;
const XDP_FLAGS_DRV_MODE: u32 = 4;

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    index: u32,
    kind: u32,
    flags: u32,
    /// Before which other program: the first.
    relative: u32,
    padding: u32,
    revision: u64,
}

/// A map from queue numbers to sockets, for the first queue alone.
fn map() -> io::Result<OwnedFd> {
    let size = size_of::<u32>() as u32;
    let request =
        MapCreate { kind: BPF_MAP_TYPE_XSKMAP, key_size: size, value_size: size, max_entries: 1 };
    call(BPF_MAP_CREATE, &request)
}

/// Puts the first queue's socket into the map.
fn put(map: &OwnedFd, socket: BorrowedFd<'_>) -> io::Result<()> {
    let (queue, socket) = (0u32, socket.as_raw_fd() as u32);
    let request = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: (&raw const queue) as u64,
        value: (&raw const socket) as u64,
        flags: 0,
    };
    // SAFETY: key and value are numbers of the sizes that the map was made with, and live until the
    // call returns.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &request) }.map(drop)
}

/// `return TCX_DROP`.
const DROP: [[u8; 8]; 2] = [instruction(0xb7, 0, 0, 0, 2), instruction(0x95, 0, 0, 0, 0)];

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_DROP)`: what has no socket, as what comes
/// by another queue that was opened meanwhile, does not go to the kernel either.
fn program(map: &OwnedFd) -> io::Result<OwnedFd> {
    const CONTEXT: u8 = 1;
    const RX_QUEUE_INDEX: i16 = 16;
    const PSEUDO_MAP_FD: u8 = 1;
    const XDP_DROP: i32 = 1;
    const REDIRECT_MAP: i32 = 51;
    let instructions = [
        instruction(0x61, 2, CONTEXT, RX_QUEUE_INDEX, 0), // r2 = *(u32 *)(r1 + 16)
        instruction(0x18, 1, PSEUDO_MAP_FD, 0, map.as_raw_fd()), // r1 = map, in two parts
        instruction(0, 0, 0, 0, 0),
        instruction(0xb7, 3, 0, 0, XDP_DROP), // r3 = XDP_DROP
        instruction(0x85, 0, 0, 0, REDIRECT_MAP), // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x95, 0, 0, 0, 0),        // return r0
    ];
    load(BPF_PROG_TYPE_XDP, &instructions)
}

fn load(kind: u32, instructions: &[[u8; 8]]) -> io::Result<OwnedFd> {
    let licence = c"Apache-2.0";
    let request = ProgramLoad {
        kind,
        count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
    };
    call(BPF_PROG_LOAD, &request)
}

/// An instruction as the kernel reads it: operation, registers, offset, number (RFC 9669 §3).
const fn instruction(operation: u8, to: u8, from: u8, offset: i16, number: i32) -> [u8; 8] {
    let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = number.to_ne_bytes();
    [operation, registers, a, b, c, d, e, f]
}

/// A call whose result is a file descriptor.
fn call<T>(command: libc::c_int, request: &T) -> io::Result<OwnedFd> {
    // SAFETY: the requests of this module that come here hold numbers, or pointers to arrays of the
    // caller that are as long as they say; these commands return a new descriptor, which nobody
    // else owns.
    unsafe { bpf(command, request).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// bpf(2).
///
/// # Safety
/// `request` is what `command` reads, and its pointers are valid.
unsafe fn bpf<T>(command: libc::c_int, request: &T) -> io::Result<libc::c_int> {
    let request: *const T = request;
    // SAFETY: the kernel reads `size` bytes of a structure of that size; the rest is the caller's
    // promise. What the structure does not have counts as 0.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, request, size_of::<T>()) };
    Ok(Errno::result(result)? as libc::c_int)
}

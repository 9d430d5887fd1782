//! The system calls for which there is no safe wrapper.
#![expect(unsafe_code, reason = "these system calls take pointers to their own structures")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use nix::unistd::Pid;

mod request {
    use nix::libc;

    nix::ioctl_write_ptr_bad!(
        /// Makes an open `/dev/net/tun` a device.
        set_device,
        nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
        libc::ifreq
    );
    nix::ioctl_write_int_bad!(
        /// Says which super-packets the reader of a TUN device can take.
        set_offload,
        nix::request_code_write!(b'T', 208, size_of::<libc::c_uint>())
    );
    nix::ioctl_write_ptr_bad!(
        /// Asks an interface's driver (`SIOCETHTOOL`).
        ask_driver,
        0x8946,
        libc::ifreq
    );
}

/// Checksums, and super-packets of TCP over IPv4 and IPv6 (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const OFFLOADS: libc::c_int = 1 | 2 | 4;

/// Makes `file`, an open `/dev/net/tun`, the TUN device `name` in the caller's network namespace:
/// one frame each read and write, a virtio header before it. It goes when the file is closed.
pub(crate) fn tun(file: &File, name: &str) -> io::Result<()> {
    let ifr_name = interface_name(name)?;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: flags };
    let request = libc::ifreq { ifr_name, ifr_ifru };
    // SAFETY: the first call reads one `ifreq`, which lives until it returns; the second takes a
    // number.
    unsafe {
        request::set_device(file.as_raw_fd(), &raw const request)?;
        request::set_offload(file.as_raw_fd(), OFFLOADS)?;
    }
    Ok(())
}

fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut array = [0; libc::IFNAMSIZ];
    if name.len() >= array.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in array.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(array)
}

/// How many queues for incoming frames an interface has; one if its driver does not say.
pub(crate) fn queues(name: &str) -> u32 {
    // `struct ethtool_channels`: what there may be, then what there is: in, out, other, combined.
    ask_driver(name, [0x3c, 0, 0, 0, 0, 0, 0, 0, 0]).map_or(1, |c| c[5] + c[8])
}

/// Whether an interface puts packets that come in together to larger ones (GRO).
pub(crate) fn merges(name: &str) -> bool {
    ask_driver(name, [0x2b, 0]).is_ok_and(|value| value[1] != 0)
}

/// Whether an interface takes VLAN tags out of the frames that come in.
pub(crate) fn takes_tags(name: &str) -> bool {
    ask_driver(name, [0x25, 0]).is_ok_and(|flags| flags[1] & 1 << 8 != 0)
}

/// Gives a driver a question (linux/ethtool.h): a command and room for its answer.
fn ask_driver<const N: usize>(name: &str, mut question: [u32; N]) -> io::Result<[u32; N]> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: question.as_mut_ptr().cast() };
    let request = libc::ifreq { ifr_name: interface_name(name)?, ifr_ifru };
    // SAFETY: the call reads one `ifreq`, and reads and writes a structure of numbers that begins
    // with the command; for each command above `question` is as long as that. Both live until it
    // returns.
    unsafe { request::ask_driver(socket.as_raw_fd(), &raw const request) }?;
    Ok(question)
}

/// The kernel's buffer for frames that this process has not read yet, bytes; without the right to this size,
/// as large as net.core.rmem_max allows. If more frames come than can be read it is always full, and no
/// discipline manages frames that wait here. The kernel counts 768 bytes for a short frame, so it holds 5500
/// of them: 10 ms at half a million a second.
const RECEIVE_BUFFER: usize = 2 << 20;

/// A socket for all frames that come in at the interface `index`, with a virtio header before each;
/// what is written to it goes out there. In promiscuous mode, as a bridge's port.
pub(crate) fn packet_socket(index: u32) -> io::Result<File> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    // Without a protocol nothing is received until it is bound to the interface.
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
    setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER))?;
    let on: libc::c_int = 1;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &on)?;
    make_promiscuous(&socket, index)?;
    bind(&socket, &at_interface(index, libc::ETH_P_ALL))?;
    Ok(socket.into())
}

/// Reads from a packet socket. How many bytes, and the VLAN tag that the kernel has taken out of the
/// frame.
pub(crate) fn read_tagged(
    socket: &File,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<[u8; 4]>)> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // Words, as the heads of control messages are aligned.
    let mut control = [0u64; 8];
    // SAFETY: all of these structures are plain numbers and pointers, for which 0 is a value. The
    // call writes at most as much as `message` says to `buffer` and `control`, which live until it
    // returns; the messages in `control` are walked by libc's own rules and within its bounds, and
    // what is read is as long as the message says and of plain numbers.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of_val(&control) as _;
        let length = Errno::result(libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0))?;
        let mut at = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(head) = at.as_ref() {
            let is_data = head.cmsg_level == libc::SOL_PACKET
                && head.cmsg_type == libc::PACKET_AUXDATA
                && head.cmsg_len >= libc::CMSG_LEN(AUXDATA) as _;
            if is_data {
                let data: libc::tpacket_auxdata =
                    libc::CMSG_DATA(at).cast::<libc::tpacket_auxdata>().read_unaligned();
                return Ok((length as usize, tag(&data)));
            }
            at = libc::CMSG_NXTHDR(&raw const message, at);
        }
        Ok((length as usize, None))
    }
}

const AUXDATA: libc::c_uint = size_of::<libc::tpacket_auxdata>() as libc::c_uint;

/// The tag as it stands in a frame: its type and what it says.
fn tag(data: &libc::tpacket_auxdata) -> Option<[u8; 4]> {
    let has = |flag| data.tp_status & flag != 0;
    let kind = if has(libc::TP_STATUS_VLAN_TPID_VALID) { data.tp_vlan_tpid } else { 0x8100 };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
    has(libc::TP_STATUS_VLAN_VALID).then_some([a, b, c, d])
}

/// A socket that sends frames from the interface `index`, past its queue, and receives nothing.
pub(crate) fn sending_socket(index: u32) -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    let on: libc::c_int = 1;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on)?;
    bind(&socket, &at_interface(index, 0))?;
    Ok(socket)
}

/// The address of an interface for packet sockets; frames of `protocol` come from there.
fn at_interface(index: u32, protocol: libc::c_int) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (protocol as libc::c_ushort).to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// As long as this is open the interface `index` takes all frames, whoever they are for. It is bound
/// there ([`bound_to`]) and receives nothing.
pub(crate) fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    make_promiscuous(&socket, index)?;
    bind(&socket, &at_interface(index, 0))?;
    Ok(socket)
}

fn make_promiscuous(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)
}

/// Packets that the kernel dropped because this process did not read them from a packet socket in
/// time, since the last call.
pub(crate) fn dropped(socket: &File) -> io::Result<u64> {
    let none = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let statistics = option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, none)?;
    Ok(statistics.tp_drops.into())
}

/// A socket for AF_XDP, without memory.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes numbers, and returns a new descriptor, which nobody else owns.
    let socket = unsafe {
        let fd = Errno::result(libc::socket(libc::AF_XDP, flags, 0))?;
        OwnedFd::from_raw_fd(fd)
    };
    // As much as may be under way: the rings are the bound.
    setsockopt(&socket, sockopt::SndBufForce, &SEND_BUFFER)
        .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &SEND_BUFFER))?;
    Ok(socket)
}

/// Gives it rings of these sizes for what comes in and for what goes out.
pub(crate) fn xdp_rings(socket: &OwnedFd, incoming: u32, outgoing: u32) -> io::Result<()> {
    for (ring, size) in [
        (libc::XDP_UMEM_FILL_RING, incoming),
        (libc::XDP_RX_RING, incoming),
        (libc::XDP_UMEM_COMPLETION_RING, outgoing),
        (libc::XDP_TX_RING, outgoing),
    ] {
        set_option(socket, libc::SOL_XDP, ring, &size)?;
    }
    Ok(())
}

/// The most bytes that the kernel holds of what was sent by a socket for AF_XDP.
const SEND_BUFFER: usize = 16 << 20;

/// Where the parts of its rings are.
pub(crate) fn xdp_offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    const NONE: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let none = libc::xdp_mmap_offsets { rx: NONE, tx: NONE, fr: NONE, cr: NONE };
    option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, none)
}

/// What the kernel could not hand over, since the socket was made.
pub(crate) fn xdp_statistics(socket: &OwnedFd) -> io::Result<libc::xdp_statistics> {
    let none = libc::xdp_statistics {
        rx_dropped: 0,
        rx_invalid_descs: 0,
        tx_invalid_descs: 0,
        rx_ring_full: 0,
        rx_fill_ring_empty_descs: 0,
        tx_ring_empty_descs: 0,
    };
    option(socket, libc::SOL_XDP, libc::XDP_STATISTICS, none)
}

/// Binds it to the first queue of the interface `index`; frames are copied.
pub(crate) fn xdp_bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as libc::__u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    bind(socket, &address)
}

/// Has the kernel send what is in the ring.
pub(crate) fn xdp_send(socket: &OwnedFd) -> Result<(), Errno> {
    nix::sys::socket::send(socket.as_raw_fd(), &[], MsgFlags::MSG_DONTWAIT).map(drop)
}

/// Runs the calling thread before all ordinary ones, at the lowest real-time priority. Threads and
/// processes that it starts do not inherit that.
pub(crate) fn real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads one `sched_param`, which lives until it returns.
    let result = unsafe {
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(0, policy, &raw const parameters)
    };
    Errno::result(result)?;
    Ok(())
}

/// How long the calling thread has been on a processor, ns.
pub(crate) fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which lives until it returns.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A process, as a file that is ready to be read once it has ended.
pub(crate) fn process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and gives a descriptor, which nobody else owns.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// Takes the lock of a file that is open for writing, until it is closed. Returns whether nobody else holds
/// it. A process that may only read can take at most a reader's lock, which does not hinder writing here.
/// File systems without locks always grant it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) | Err(Errno::EOPNOTSUPP | Errno::ENOLCK | Errno::ENOSYS | Errno::EINVAL) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => {
            fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))?;
            Ok(lock.l_type != libc::F_WRLCK as libc::c_short)
        }
        Err(e) => Err(e.into()),
    }
}

/// Sends `signal` to an open process, which has ended meanwhile or is still the same.
pub(crate) fn signal(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    let fd = process.as_raw_fd();
    // SAFETY: the call takes numbers, and a null pointer for nothing to send beside the signal.
    let result = unsafe {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        libc::syscall(libc::SYS_pidfd_send_signal, fd, signal as libc::c_int, nothing, 0)
    };
    Errno::result(result).map(drop)
}

/// The number of the interface that a packet socket is bound to; nothing once that is gone, whether
/// or not another has its number since.
pub(crate) fn bound_to(socket: &impl AsFd) -> io::Result<Option<u32>> {
    let mut address = at_interface(0, 0);
    let mut size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the call writes at most `size` bytes, the size of a structure of plain numbers.
    let result = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::getsockname(fd, (&raw mut address).cast(), &raw mut size)
    };
    Errno::result(result)?;
    Ok(u32::try_from(address.sll_ifindex).ok().filter(|&index| index > 0))
}

/// The next bytes of a connection, and the few open files that come with them.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut bytes = vec![0; 4096];
    let mut space = nix::cmsg_space!([RawFd; 16]);
    let mut parts = [io::IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut files = Vec::new();
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = part {
            // SAFETY: the kernel made these descriptors for the message; nobody else owns them.
            files.extend(received.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    let length = message.bytes;
    bytes.truncate(length);
    Ok((bytes, files))
}

/// The TOS byte of what is sent from an IPv4 socket.
pub(crate) fn send_tos(socket: &impl AsFd, tos: u8) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, &libc::c_int::from(tos))
}

/// From now on the kernel reports the TOS byte of each datagram that an IPv4 socket receives.
pub(crate) fn receive_tos(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &on)
}

/// A structure of numbers alone: the kernel may read and write it as bytes, any bytes are one, and
/// nothing in it is a place in memory.
///
/// # Safety
/// That has to be so.
pub(crate) unsafe trait Plain: Sized {}

// SAFETY: a number, or by their declarations structures of numbers without addresses.
unsafe impl Plain for libc::c_int {}
unsafe impl Plain for u32 {}
unsafe impl Plain for libc::packet_mreq {}
unsafe impl Plain for libc::tpacket_stats {}
unsafe impl Plain for libc::sockaddr_ll {}
unsafe impl Plain for libc::sockaddr_xdp {}
unsafe impl Plain for libc::xdp_mmap_offsets {}
unsafe impl Plain for libc::xdp_statistics {}

/// Makes `memory` that of the frames of a socket for AF_XDP.
///
/// # Safety
/// It has to be a mapping of anonymous memory, of which nothing is borrowed while the rings say
/// that the kernel has it. The kernel holds the pages itself, as long as it needs them.
pub(crate) unsafe fn xdp_register(socket: &OwnedFd, memory: &libc::xdp_umem_reg) -> io::Result<()> {
    // SAFETY: the call reads one structure of that size, which lives until it returns; what it says
    // about memory is the caller's word.
    let result = unsafe {
        let size = size_of::<libc::xdp_umem_reg>() as libc::socklen_t;
        let value = std::ptr::from_ref(memory).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, value, size)
    };
    Errno::result(result)?;
    Ok(())
}

fn bind<T: Plain>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    // SAFETY: the call reads `size` bytes of an address of that size, which lives until it returns.
    let result = unsafe {
        let size = size_of::<T>() as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), size)
    };
    Errno::result(result)?;
    Ok(())
}

/// An option's value; `value` is one of them.
fn option<T: Plain>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    mut value: T,
) -> io::Result<T> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the call writes at most `size` bytes, the size of a structure of plain numbers.
    let result = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::getsockopt(fd, level, option, (&raw mut value).cast(), &raw mut size)
    };
    Errno::result(result)?;
    Ok(value)
}

/// Sets an option to `value`.
fn set_option<T: Plain>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the call reads `size` bytes of a value of that size, which lives until it returns.
    let result = unsafe {
        let size = size_of::<T>() as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), size)
    };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
pub(crate) use attempts::{rebind, signal_thread, type_into};

/// Steps that an attacker inside a gateway must not be able to take.
#[cfg(test)]
mod attempts {
    use super::*;

    nix::ioctl_write_ptr_bad!(
        /// Puts a byte into what a terminal's reader reads next.
        put_input,
        libc::TIOCSTI,
        u8
    );

    pub(crate) fn type_into(terminal: &File, byte: u8) -> Result<(), Errno> {
        // SAFETY: the call reads one byte, which lives until it returns.
        unsafe { put_input(terminal.as_raw_fd(), &raw const byte) }.map(drop)
    }

    pub(crate) fn rebind(socket: &impl AsFd) -> Result<(), Errno> {
        let address = at_interface(1, 0);
        // SAFETY: the call reads an address of that size, which lives until it returns.
        let result = unsafe {
            let size = size_of_val(&address) as libc::socklen_t;
            libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), size)
        };
        Errno::result(result).map(drop)
    }

    pub(crate) fn signal_thread(process: Pid) -> Result<(), Errno> {
        // SAFETY: the call takes three numbers; 0 is no signal.
        let result =
            unsafe { libc::syscall(libc::SYS_tgkill, process.as_raw(), process.as_raw(), 0) };
        Errno::result(result).map(drop)
    }
}

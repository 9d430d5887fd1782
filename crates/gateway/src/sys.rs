//! The system calls for which there is no safe wrapper.
#![expect(unsafe_code, reason = "these system calls take pointers to their own structures")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};
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
}

/// Checksums, and super-packets of TCP over IPv4 and IPv6 (`TUN_F_CSUM`, `TUN_F_TSO4`, `TUN_F_TSO6`).
const OFFLOADS: libc::c_int = 1 | 2 | 4;

/// Makes `file`, an open `/dev/net/tun`, the TUN device `name` in the caller's network namespace:
/// one frame each read and write, a virtio header before it. It goes when the file is closed.
pub(crate) fn tun(file: &File, name: &str) -> io::Result<()> {
    let mut ifr_name = [0; libc::IFNAMSIZ];
    if name.len() >= ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
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

/// The kernel's buffer for frames that this process has not read yet, bytes; without the right to
/// have so much, as much as net.core.rmem_max allows.
const RECEIVE_BUFFER: usize = 16 << 20;

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
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::c_ushort,
        sll_protocol: (libc::ETH_P_ALL as libc::c_ushort).to_be(),
        sll_ifindex: index as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the call reads `size` bytes of an address of that size, which lives until it returns.
    let result = unsafe {
        let size = size_of_val(&address) as libc::socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size)
    };
    Errno::result(result)?;
    Ok(socket.into())
}

/// Packets that the kernel dropped because this process did not read them from a packet socket in
/// time, since the last call.
pub(crate) fn dropped(socket: &File) -> io::Result<u64> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut size = size_of_val(&statistics) as libc::socklen_t;
    // SAFETY: the call writes at most `size` bytes, the size of a structure of plain numbers.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut size,
        )
    };
    Errno::result(result)?;
    Ok(statistics.tp_drops.into())
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

/// A process, as a file that is ready to be read once it has ended.
pub(crate) fn process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and gives a descriptor, which nobody else owns.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

/// The TOS byte of what is sent from an IPv4 socket.
pub(crate) fn send_tos(socket: &impl AsFd, tos: u8) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_IP, libc::IP_TOS, &libc::c_int::from(tos))
}

/// From now on the kernel tells the TOS byte of each datagram that an IPv4 socket receives.
pub(crate) fn receive_tos(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTOS, &on)
}

fn set_option<T>(
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

//! Keeps frames that come in at an interface for the gateway alone. A packet socket only looks on: this
//! machine's own stack would answer, route, and believe claims from there. So everything is dropped at
//! ingress, after the packet sockets and before all else. The means vanish with the process however it ends:
//! a program at a link of its own (tcx), or, where that is missing or not permitted, a chain in a table of
//! nftables that belongs to an open socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::libc;

use super::bpf::Attachment;
use crate::trouble::Trouble;

/// An interface at which the kernel takes no frames, as long as this is there.
#[derive(Debug)]
pub(crate) enum Shut {
    Program(Attachment),
    Chain(Socket),
    /// Either, by another process.
    File(OwnedFd),
}

impl AsFd for Shut {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Program(program) => program.as_fd(),
            Self::Chain(socket) => socket.as_fd(),
            Self::File(file) => file.as_fd(),
        }
    }
}

impl Shut {
    /// Shuts the interface `index`, called `name`, by a `table` of that name if it takes one.
    ///
    /// # Errors
    /// When it cannot be done, with what mends it.
    pub(crate) fn new(index: u32, name: &str, table: &str) -> Result<Self, Trouble> {
        let program = match Attachment::dropping(index) {
            Ok(program) => return Ok(Self::Program(program)),
            Err(e) => e,
        };
        chain(table, name).map(Self::Chain).map_err(|chain| {
            let refused = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
            let what = format!(
                "{name}: this machine's own stack cannot be kept from what comes in there: {chain} \
                 (nftables), {program} (tcx)"
            );
            let mend = match refused(&chain) {
                true => "run it as root, or: setcap cap_net_raw,cap_net_admin+ep bluewater-gateway",
                false => "a kernel with CONFIG_NF_TABLES_NETDEV (5.12) or tcx (6.6)",
            };
            Trouble::new(what, format!("{mend}; --open-host lets it answer and route there"))
        })
    }
}

/// A table of nftables' that goes with the socket, with a chain that drops what comes in at an interface.
fn chain(table: &str, name: &str) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&batch(table, name), 0)?;
    // The kernel has answered by then: to each message, or why to none.
    for _ in 0..ANSWERS {
        let mut answer = Vec::with_capacity(1 << 13);
        socket.recv(&mut answer, libc::MSG_DONTWAIT)?;
        refused(&answer)?;
    }
    Ok(socket)
}

/// Both messages of [`batch`] that make something are answered.
const ANSWERS: usize = 2;

/// The error in an answer, if it is one: a header of 16 bytes, and its code.
fn refused(answer: &[u8]) -> io::Result<()> {
    let code = answer.get(16..20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

// From linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NF_TABLES: u16 = 10;
const NEW_TABLE: u16 = NF_TABLES << 8;
const NEW_CHAIN: u16 = NF_TABLES << 8 | 3;
const NETDEV: u8 = 5;
const NESTED: u16 = 1 << 15;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_IS_OWNED: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
const INGRESS: u32 = 0;
const DROP: u32 = 0;

/// `table netdev TABLE { flags owner; chain ingress { type filter hook ingress device NAME
/// priority …; policy drop; } }`, all or nothing.
fn batch(table: &str, name: &str) -> Vec<u8> {
    let hook = [
        attribute(HOOK_NUMBER, &INGRESS.to_be_bytes()),
        attribute(HOOK_PRIORITY, &i32::MIN.to_be_bytes()),
        attribute(HOOK_DEVICE, &text(name)),
    ];
    let new_table = [
        attribute(TABLE_NAME, &text(table)),
        attribute(TABLE_FLAGS, &TABLE_IS_OWNED.to_be_bytes()),
    ];
    let new_chain = [
        attribute(CHAIN_TABLE, &text(table)),
        attribute(CHAIN_NAME, &text("ingress")),
        attribute(CHAIN_HOOK | NESTED, &hook.concat()),
        attribute(CHAIN_POLICY, &DROP.to_be_bytes()),
        attribute(CHAIN_TYPE, &text("filter")),
    ];
    let flags =
        (libc::NLM_F_REQUEST | libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK) as u16;
    let request = libc::NLM_F_REQUEST as u16;
    [
        message(BATCH_BEGIN, request, (0, NF_TABLES), &[]),
        message(NEW_TABLE, flags, (NETDEV, 0), &new_table.concat()),
        message(NEW_CHAIN, flags, (NETDEV, 0), &new_chain.concat()),
        message(BATCH_END, request, (0, NF_TABLES), &[]),
    ]
    .concat()
}

/// A message: length, type, flags, number, sender; then family, version and resource.
fn message(kind: u16, flags: u16, (family, resource): (u8, u16), rest: &[u8]) -> Vec<u8> {
    let mut bytes = (20 + rest.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(rest);
    bytes
}

/// An attribute, with what fills it up to a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// As C has it.
fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

//! Interfaces, addresses and routes of the network namespace that the calling thread is in.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::RawFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType,
    LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage as Message};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// What is known of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) mtu: u32,
    pub(crate) up: bool,
    /// Whether it is up, and there is something at its other end.
    pub(crate) carrier: bool,
    /// What it is, if it is no hardware: veth, bridge, vlan.
    pub(crate) kind: Option<String>,
    /// The number of the bridge or bond that it is a port of.
    pub(crate) master: Option<u32>,
    /// The number of the interface in this namespace that is its other end, or that it lies upon.
    pub(crate) beside: Option<u32>,
    /// Whether it is a bridge whose ports may be in different VLANs.
    pub(crate) filters_vlans: bool,
    /// Whether its frames are Ethernet's.
    pub(crate) ethernet: bool,
    /// Its Ethernet address; empty if it has none.
    pub(crate) address: Vec<u8>,
    /// Packets that the kernel could not hand to the reader of the device in time.
    pub(crate) dropped: u64,
    /// Packets that came in.
    pub(crate) received: u64,
}

/// A conversation with the kernel.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The interface `name`; nothing if there is none.
    pub(crate) fn interface(&mut self, name: &str) -> io::Result<Option<Interface>> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        self.find(message)
    }

    /// The interface with the number `index`; nothing if there is none.
    pub(crate) fn numbered(&mut self, index: u32) -> io::Result<Option<Interface>> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.find(message)
    }

    fn find(&mut self, message: LinkMessage) -> io::Result<Option<Interface>> {
        let link = match self.ask(Message::GetLink(message), 0) {
            Ok(Some(Message::NewLink(link))) => link,
            Ok(_) => return Ok(None),
            Err(e) if e.raw_os_error() == Some(nix::libc::ENODEV) => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut found = Interface {
            name: String::new(),
            index: link.header.index,
            mtu: 0,
            up: link.header.flags.contains(LinkFlags::Up),
            carrier: link.header.flags.contains(LinkFlags::LowerUp),
            kind: None,
            master: None,
            beside: None,
            filters_vlans: false,
            ethernet: link.header.link_layer_type == LinkLayerType::Ether,
            address: Vec::new(),
            dropped: 0,
            received: 0,
        };
        let elsewhere = |a: &LinkAttribute| matches!(a, LinkAttribute::LinkNetNsId(_));
        let elsewhere = link.attributes.iter().any(elsewhere);
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::IfName(name) => found.name = name,
                LinkAttribute::Mtu(mtu) => found.mtu = mtu,
                LinkAttribute::Controller(index) => found.master = Some(index),
                LinkAttribute::Link(index) => found.beside = Some(index).filter(|_| !elsewhere),
                LinkAttribute::Address(address) => found.address = address,
                LinkAttribute::LinkInfo(infos) => {
                    let filters = |info: &LinkInfo| {
                        let LinkInfo::Data(InfoData::Bridge(about)) = info else { return false };
                        about.contains(&InfoBridge::VlanFiltering(true))
                    };
                    found.filters_vlans = infos.iter().any(filters);
                    found.kind = infos.into_iter().find_map(|info| match info {
                        LinkInfo::Kind(kind) => Some(kind.to_string()),
                        _ => None,
                    });
                }
                LinkAttribute::Stats64(stats) => {
                    found.dropped = stats.tx_dropped;
                    found.received = stats.rx_packets;
                }
                _ => {}
            }
        }
        Ok(Some(found))
    }

    /// Makes an Ethernet interface `name` here and its other end, `peer`, in the namespace `there`.
    pub(crate) fn veth(&mut self, name: &str, peer: &str, there: RawFd) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes = vec![LinkAttribute::IfName(peer.into()), LinkAttribute::NetNsFd(there)];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        self.ask(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Makes a bridge that passes multicast on to all ports, and what other bridges keep to themselves (LLDP,
    /// 802.1X), but for pause frames and LACP, which the kernel keeps.
    pub(crate) fn bridge(&mut self, name: &str) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Bridge),
                LinkInfo::Data(InfoData::Bridge(vec![
                    InfoBridge::MulticastSnooping(false),
                    InfoBridge::GroupFwdMask(0xfff8),
                ])),
            ]),
        ];
        self.ask(Message::NewLink(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Makes an interface a port of a bridge.
    pub(crate) fn join(&mut self, index: u32, bridge: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::Controller(bridge)];
        self.ask(Message::SetLink(message), 0).map(drop)
    }

    /// Takes an interface away that was made here.
    pub(crate) fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.ask(Message::DelLink(message), 0).map(drop)
    }

    /// Takes an interface up; `attributes` go with it.
    pub(crate) fn up(&mut self, index: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.ask(Message::SetLink(message), 0).map(drop)
    }

    /// Takes an interface down.
    pub(crate) fn down(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.change_mask = LinkFlags::Up;
        self.ask(Message::SetLink(message), 0).map(drop)
    }

    /// Adds an address.
    pub(crate) fn address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.header.family = family(address);
        // Without duplicate address detection, which would make an IPv6 address wait.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(Message::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Sends everything of the family of `address` by an interface.
    pub(crate) fn default_route(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        let message = to_everywhere(index, address);
        self.ask(Message::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Sends everything of the family of `gateway` to it, by an interface, and no longer elsewhere.
    pub(crate) fn gateway(&mut self, index: u32, gateway: IpAddr) -> io::Result<()> {
        let IpAddr::V4(address) = gateway else { return Err(io::ErrorKind::Unsupported.into()) };
        let mut message = to_everywhere(index, gateway);
        message.header.scope = RouteScope::Universe;
        message.attributes.push(RouteAttribute::Gateway(RouteAddress::Inet(address)));
        self.ask(Message::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE).map(drop)
    }

    /// Sends nothing of IPv4 to everywhere by an interface any more.
    pub(crate) fn no_default_route(&mut self, name: &str) -> io::Result<()> {
        let index = self.interface(name)?.ok_or(io::ErrorKind::NotFound)?.index;
        let message = to_everywhere(index, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.ask(Message::DelRoute(message), 0).map(drop)
    }

    /// One request and its answer.
    fn ask(&mut self, message: Message, flags: u16) -> io::Result<Option<Message>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<Message>::deserialize(rest)
                    .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
                let length = (message.header.length as usize).next_multiple_of(4).max(16);
                rest = rest.get(length..).unwrap_or_default();
                match message.payload {
                    NetlinkPayload::Error(e) if e.code.is_some() => return Err(e.to_io()),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answer),
                    NetlinkPayload::InnerMessage(message) => answer = Some(message),
                    _ => {}
                }
            }
        }
    }
}

/// The way of the family of `address` to everywhere by an interface.
fn to_everywhere(index: u32, address: IpAddr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(address);
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = RouteScope::Link;
    message.header.kind = RouteType::Unicast;
    message.attributes.push(RouteAttribute::Oif(index));
    message
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

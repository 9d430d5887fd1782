//! How both ends of a connection are set up, and what stands in place of TLS.
//!
//! This file is a module of each stack's, as `pair.rs` is.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use scenario::traffic::QuicControl;
use sim::stack::{End, Start};

use super::proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use super::proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys, PacketKey, Session,
};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, NoneTokenLog,
    NoneTokenStore, ServerConfig, Side, TimeSource, TransportConfig, TransportError,
    ValidationTokenConfig, VarInt,
};
use super::{Id, Plain, Watched, make_ids};
use crate::plain::{Handshake, seed, sign};
use crate::seen::Seen;

/// Bytes that flow control lets through beyond what was read: more than any window.
const ROOM: VarInt = VarInt::from_u32(1 << 30);
/// The stacks' own initial window, bytes.
const INITIAL_WINDOW: u64 = 12_000;
/// The length of a connection's first id, which its client draws, bytes.
const FIRST_ID: usize = 20;

/// Both endpoints, and how the first opens the connection.
pub(super) fn endpoints(mut start: Start, seen: &Arc<Seen>) -> ([Endpoint; 2], ClientConfig) {
    let transport = Arc::new(transport(&start, seen));
    let key = Arc::new(Key(start.rng.bits()));
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0).log(Arc::new(NoneTokenLog));
    let mut server = ServerConfig::new(Arc::new(Plain), key);
    server.transport_config(transport.clone());
    server.time_source(Arc::new(Begin)).validation_token_config(tokens);
    let mut first = [0; FIRST_ID];
    first.copy_from_slice(&seed(&mut start.rng)[..FIRST_ID]);
    let mut client = ClientConfig::new(Arc::new(Plain));
    client.transport_config(transport).token_store(Arc::new(NoneTokenStore));
    client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
    let receiver = super::endpoint(endpoint(&mut start, End::Receiver), Some(Arc::new(server)));
    let sender = super::endpoint(endpoint(&mut start, End::Sender), None);
    ([sender, receiver], client)
}

fn endpoint(start: &mut Start, end: End) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::new(Key(start.rng.bits())));
    config.rng_seed(Some(seed(&mut start.rng))).grease_quic_bit(false);
    make_ids(&mut config, (end as u64 + 1) << 56);
    // Only lengths that no datagram has are refused.
    let _ = config.max_udp_payload_size(start.datagram);
    Arc::new(config)
}

/// The stack's own defaults, but for what would hide them: datagrams have one length from the beginning,
/// nobody waits for an application that reads, and a connection that has nothing to send stays.
fn transport(start: &Start, seen: &Arc<Seen>) -> TransportConfig {
    let (mut cubic, mut newreno) = (CubicConfig::default(), NewRenoConfig::default());
    // RFC 9002 §7.2: two datagrams at least, where the stacks' own window has no room for one.
    let window = INITIAL_WINDOW.max(2 * u64::from(start.datagram));
    cubic.initial_window(window);
    newreno.initial_window(window);
    let controllers: Arc<dyn ControllerFactory + Send + Sync> = match start.control {
        QuicControl::Cubic => Arc::new(cubic),
        QuicControl::NewReno => Arc::new(newreno),
    };
    let watched = Watched { what: controllers, seen: seen.clone() };
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(Arc::new(watched))
        .initial_mtu(start.datagram)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .allow_spin(false)
        .max_idle_timeout(None)
        .stream_receive_window(ROOM)
        .receive_window(ROOM);
    config
}

/// The address of an end.
pub(super) fn address(end: End) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1 + end as u8), 443).into()
}

/// The keys of a packet space.
pub(super) fn keys() -> Keys {
    let header =
        KeyPair { local: Box::new(Plain) as Box<dyn HeaderKey>, remote: Box::new(Plain) as _ };
    Keys { header, packet: packet_keys() }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Plain), remote: Box::new(Plain) }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}
    fn encrypt(&self, _: usize, _: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        16
    }
}

/// One end of a handshake.
pub(super) struct Talk {
    side: Side,
    messages: Handshake,
    peer: Option<TransportParameters>,
}

impl Talk {
    pub(super) fn begin(side: Side, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut own = Vec::new();
        parameters.write(&mut own);
        Box::new(Self { side, messages: Handshake::new(side.is_client(), own), peer: None })
    }
}

impl Session for Talk {
    fn initial_keys(&self, _: Id<'_>, _: Side) -> Keys {
        keys()
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }
    fn is_handshaking(&self) -> bool {
        self.messages.goes_on()
    }
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Some(found) = self.messages.read(bytes) {
            self.peer = Some(TransportParameters::read(self.side, &mut &found[..])?);
        }
        Ok(false)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        self.messages.write(out).then(keys)
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }
    fn is_valid_retry(&self, _: Id<'_>, _: &[u8], _: &[u8]) -> bool {
        false
    }
    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// The key of stateless resets. There are no tokens.
pub(super) struct Key(u64);

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        sign(self.0, data, signature);
    }
    fn signature_len(&self) -> usize {
        32
    }
    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut right = [0; 32];
        sign(self.0, data, &mut right);
        if right == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Connection ids, one after another.
pub(super) struct Counter(pub(super) u64);

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The time that tokens would carry.
struct Begin;

impl TimeSource for Begin {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

//! quinn-proto: what it has in a form of its own.

#[path = "config.rs"]
mod config;
#[path = "pair.rs"]
mod pair;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use proto::crypto::{
    AeadKey, ClientConfig, CryptoError, HandshakeTokenKey, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use proto::transport_parameters::TransportParameters;
use proto::{
    ConnectError, Connection, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    RttEstimator, Side, StreamId, Transmit,
};
use quinn_proto as proto;
use sim::stack::{End, Pair, Start};

use crate::plain::{LIMITS, TAG, tag, untagged};
use crate::seen::Seen;
use config::{Counter, Key, Talk, address, keys};

/// Makes a connection.
pub fn connection(start: Start) -> Box<dyn Pair> {
    Box::new(pair::Both::new(start))
}

/// How ids are passed on.
type Id<'a> = &'a ConnectionId;

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<proto::ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false, None)
}

fn make_ids(config: &mut EndpointConfig, first: u64) {
    config.cid_generator(move || Box::new(Counter(first)));
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: End,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, address(from), None, ecn, data, answer)
}

fn transmit(connection: &mut Connection, now: Instant, data: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, data)
}

/// Bytes that the stack takes; `None`: no more now.
fn write(connection: &mut Connection, stream: StreamId, data: Bytes) -> Option<usize> {
    connection.send_stream(stream).write_chunks(&mut [data]).ok().map(|written| written.bytes)
}

/// The window, bytes.
fn window(connection: &Connection) -> u64 {
    connection.congestion_state().window()
}

/// The smoothed round trip, and packets lost so far.
fn path(connection: &mut Connection) -> (Duration, u64) {
    (connection.rtt(), connection.stats().path.lost_packets)
}

/// In place of all keys.
struct Plain;

impl PacketKey for Plain {
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        let (header, rest) = packet.split_at_mut(header);
        if let Some((payload, end)) = rest.split_last_chunk_mut() {
            *end = tag(0, number, header, payload);
        }
    }
    fn decrypt(
        &self,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        payload.truncate(untagged(0, number, header, payload).ok_or(CryptoError)?);
        Ok(())
    }
    fn tag_len(&self) -> usize {
        TAG
    }
    fn confidentiality_limit(&self) -> u64 {
        LIMITS[0]
    }
    fn integrity_limit(&self) -> u64 {
        LIMITS[1]
    }
}

impl ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Talk::begin(Side::Client, parameters))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; TAG] {
        [0; TAG] // nobody is sent away to try again
    }
    fn start_session(
        self: Arc<Self>,
        _: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        Talk::begin(Side::Server, parameters)
    }
}

impl HandshakeTokenKey for Key {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Plain)
    }
}

impl AeadKey for Plain {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

/// Controllers, or one of them, and what they see.
struct Watched<T> {
    what: T,
    seen: Arc<Seen>,
}

impl ControllerFactory for Watched<Arc<dyn ControllerFactory + Send + Sync>> {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched { what: self.what.clone().build(now, mtu), seen: self.seen.clone() })
    }
}

impl Controller for Watched<Box<dyn Controller>> {
    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.what.on_sent(now, bytes, last);
    }
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.seen.acknowledged(now - sent);
        self.what.on_ack(now, sent, bytes, app_limited, rtt);
    }
    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.what.on_end_acks(now, in_flight, app_limited, largest);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        // Marks come as losses of nothing.
        if lost == 0 {
            self.seen.marked.fetch_add(1, Relaxed);
        }
        self.what.on_congestion_event(now, sent, persistent, lost);
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.what.on_mtu_update(mtu);
    }
    fn window(&self) -> u64 {
        self.what.window()
    }
    fn metrics(&self) -> ControllerMetrics {
        self.what.metrics()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { what: self.what.clone_box(), seen: self.seen.clone() })
    }
    fn initial_window(&self) -> u64 {
        self.what.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.what.into_any()
    }
}

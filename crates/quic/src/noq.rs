//! noq-proto: what it has in a form of its own.

#[path = "config.rs"]
mod config;
#[path = "pair.rs"]
mod pair;

use std::any::Any;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use proto::crypto::{
    ClientConfig, CryptoError, HandshakeTokenKey, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use proto::transport_parameters::TransportParameters;
use proto::{
    ConnectError, Connection, ConnectionId, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    FourTuple, PathId, RttEstimator, Side, StreamId, Transmit,
};
use sim::stack::{End, Pair, Start};

use crate::plain::{LIMITS, TAG, tag, untagged};
use crate::seen::Seen;
use config::{Counter, Key, Talk, address, keys};

/// Makes a connection.
pub fn connection(start: Start) -> Box<dyn Pair> {
    Box::new(pair::Both::new(start))
}

/// How ids are passed on.
type Id<'a> = ConnectionId;

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<proto::ServerConfig>>) -> Endpoint {
    Endpoint::new(config, server, false)
}

fn make_ids(config: &mut EndpointConfig, first: u64) {
    config.cid_generator(Arc::new(move || Box::new(Counter(first))));
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    from: End,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(address(from), None), ecn, data, answer)
}

fn transmit(connection: &mut Connection, now: Instant, data: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, data)
}

/// Bytes that the stack takes; `None`: no more now.
fn write(connection: &mut Connection, stream: StreamId, data: Bytes) -> Option<usize> {
    connection.send_stream(stream).write_chunks(&mut &mut [data][..]).ok()
}

/// The window, bytes.
fn window(connection: &Connection) -> u64 {
    connection.congestion_state(PathId::ZERO).map_or(0, |control| control.window())
}

/// The smoothed round trip, and packets lost so far.
fn path(connection: &mut Connection) -> (Duration, u64) {
    let stats = connection.path_stats(PathId::ZERO).unwrap_or_default();
    (stats.rtt, stats.lost_packets)
}

/// In place of all keys.
struct Plain;

impl PacketKey for Plain {
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], header: usize) {
        let (header, rest) = packet.split_at_mut(header);
        if let Some((payload, end)) = rest.split_last_chunk_mut() {
            *end = tag(0, number, header, payload);
        }
    }
    fn decrypt(
        &self,
        _: PathId,
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
        &self,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Talk::begin(Side::Client, parameters))
    }
}

impl ServerConfig for Plain {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }
    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; TAG] {
        [0; TAG] // nobody is sent away to try again
    }
    fn start_session(&self, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        Talk::begin(Side::Server, parameters)
    }
}

impl HandshakeTokenKey for Key {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
    fn open<'a>(&self, _: u128, _: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Err(CryptoError)
    }
}

/// Controllers, or one of them, and what they see.
#[derive(Debug)]
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
    fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
        self.what.on_sent(now, bytes, largest);
    }
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.what.on_packet_sent(now, bytes, number);
    }
    fn on_cwnd_limited(&mut self) {
        self.what.on_cwnd_limited();
    }
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.seen.acknowledged(now - sent);
        self.what.on_ack(now, sent, bytes, number, app_limited, rtt);
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
    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        marked: bool,
        lost: u64,
        largest: u64,
    ) {
        self.seen.marked.fetch_add(u32::from(marked), Relaxed);
        self.what.on_congestion_event(now, sent, persistent, marked, lost, largest);
    }
    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.what.on_packet_lost(bytes, number, now);
    }
    fn on_spurious_congestion_event(&mut self) {
        self.what.on_spurious_congestion_event();
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.what.on_mtu_update(mtu);
    }
    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.what.on_ack_frequency_update(threshold, delay);
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

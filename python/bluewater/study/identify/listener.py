"""The far end of a probe: notes when each datagram arrives, and tells the sender."""

from __future__ import annotations

import secrets
import selectors
import socket
import struct
import sys
import time
from array import array
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError
from bluewater.study.identify import wire
from bluewater.study.identify.wire import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SESSIONS = 8
"""Senders at once; of one address only one."""
MOST_ROUNDS = 20
"""Plans of a session."""
_SESSION_S = 400.0
_IDLE_S = 60.0
"""A sender that says nothing for so long, beyond the time of its plan, is left."""
QUIET_S = 1.0
"""Behind the last datagram the listener waits for so long for others."""
_AT_ONCE = 1000
"""Datagrams that are read before anything else has its turn."""
_LINES = 30
"""Lines about one address in a minute."""
_REST_S = 1.0
"""Without descriptors the listener accepts nobody for so long."""
_STAMPED = 35
"""Linux: SO_TIMESTAMPNS, the kernel's time of a datagram's arrival."""
_OVERFLOW = 40
"""Linux: SO_RXQ_OVFL, how many datagrams the socket has lost."""
_FORCED = 33
"""Linux: SO_RCVBUFFORCE, which needs root."""
_ROOM = 8 << 20
"""Bytes of the socket's buffer, as far as the system grants them."""
_SPACES = 128
"""Bytes for what the kernel says beside a datagram."""


@dataclass(eq=False)
class _Session:
    """A sender's connection, with its present plan."""

    link: socket.socket
    address: str
    token: bytes
    ends: float
    idle: float
    inbox: bytes = b""
    outbox: memoryview = field(default_factory=lambda: memoryview(b""))
    rounds: int = 0
    arrived: array[int] = field(default_factory=lambda: array("q"))
    fields: bytearray = field(default_factory=bytearray)
    count: int = 0
    lost_before: int = 0
    last: float = 0.0
    is_open: bool = False
    is_done: bool = False


class Listener:
    """Serves senders of probes at a port of TCP and UDP, in one thread.

    Args:
        address: Where to listen; empty for all addresses.
        port: The port; 0 for any.
        told: Called with a line for each plan that was carried out or refused, of one address a few
            times a minute at most.

    Raises:
        InputError: The address or port cannot be used.
    """

    def __init__(
        self, address: str, port: int, told: Callable[[str], object] = lambda _: None
    ) -> None:
        if sys.platform != "linux":
            raise InputError("the listener needs Linux, whose kernel stamps arrivals")
        self._told = told
        self._lines: Counter[str] = Counter()
        self._minute = self._rest = 0.0
        self._sessions: dict[bytes, _Session] = {}
        self._lost = 0
        self._server = _bound(address, port, socket.SOCK_STREAM)
        self._datagrams: socket.socket | None = None
        try:
            self._server.listen(MOST_SESSIONS)
            self._datagrams = _bound(address, self.port, socket.SOCK_DGRAM)
        except BaseException:
            self.close()
            raise
        _prepare(self._datagrams)
        self._ready = selectors.DefaultSelector()
        for each in (self._server, self._datagrams):
            each.setblocking(False)
            self._ready.register(each, selectors.EVENT_READ)

    @property
    def port(self) -> int:
        """The port."""
        return int(self._server.getsockname()[1])

    def close(self) -> None:
        """Ends all sessions."""
        for each in [*self._sessions.values()]:
            self._end(each)
        for link in (self._server, self._datagrams):
            if link is not None:
                link.close()

    def step(self, most_s: float = 1.0) -> None:
        """Waits for something to happen, but not longer than this, and does it."""
        for key, events in self._ready.select(min(most_s, 0.05) if self._sessions else most_s):
            if key.fileobj is self._datagrams:
                self._read_datagrams(self._datagrams)
            elif key.fileobj is self._server:
                self._accept()
            elif key.data.token in self._sessions:
                self._serve(key.data, events)
        now = time.monotonic()
        if 0 < self._rest < now:
            self._rest = 0.0
            self._ready.register(self._server, selectors.EVENT_READ)
        for each in [*self._sessions.values()]:
            if now > min(each.ends, each.idle):
                self._end(each)
            elif each.is_done and (each.count == len(each.arrived) or now - each.last > QUIET_S):
                self._answer(each)

    def _accept(self) -> None:
        try:
            link, peer = self._server.accept()
        except BlockingIOError:  # the sender has gone
            return
        except OSError:  # there are no descriptors left
            self._ready.unregister(self._server)
            self._rest = time.monotonic() + _REST_S
            return
        link.setblocking(False)
        address = peer[0].removeprefix(wire.MAPPED)
        others = [each.address for each in self._sessions.values()]
        busy = address in others or len(others) >= MOST_SESSIONS
        token = secrets.token_bytes(16)
        try:
            link.send(wire.HELLO.pack(wire.NAME, Verdict.BUSY if busy else Verdict.GO, token))
        except OSError:
            busy = True
        if busy:
            link.close()
            return
        now = time.monotonic()
        made = _Session(link, address, token, now + _SESSION_S, now + _IDLE_S)
        self._sessions[token] = made
        self._ready.register(link, selectors.EVENT_READ, made)

    def _end(self, session: _Session) -> None:
        self._sessions.pop(session.token, None)
        with suppress(KeyError, ValueError):
            self._ready.unregister(session.link)
        session.link.close()

    def _serve(self, session: _Session, events: int) -> None:
        """Reads what a sender says, and writes what it has not got yet."""
        try:
            if events & selectors.EVENT_WRITE:
                self._write(session)
            if events & selectors.EVENT_READ and not self._read(session):
                self._end(session)
        except BlockingIOError:
            pass
        except OSError:
            self._end(session)

    def _read(self, session: _Session) -> bool:
        """Takes a plan or its end; False if the connection is to be closed."""
        wanted = len(wire.DONE) if session.is_open else wire.PLAN.size
        data = session.link.recv(wanted - len(session.inbox))
        session.inbox += data
        if not data or session.outbox or session.is_done:  # it speaks out of its turn
            return False
        if len(session.inbox) < wanted:
            return True
        told, session.inbox = session.inbox, b""
        if session.is_open:
            session.is_done, session.last = True, time.monotonic()
            return told == wire.DONE
        return self._plan(session, *wire.PLAN.unpack(told))

    def _plan(self, session: _Session, packets: int, milliseconds: int, size: int) -> bool:
        session.rounds += 1
        seconds = milliseconds / 1000
        fits = wire.is_modest(packets, seconds, size) and session.rounds <= MOST_ROUNDS
        session.link.send(wire.VERDICT.pack(Verdict.GO if fits else Verdict.TOO_MUCH))
        if not fits:
            self._tell(session, f"refused a plan of {packets} packets in {seconds:g} s")
            return False
        session.arrived = array("q", [wire.LOST]) * packets
        session.fields = bytearray(packets)
        session.count, session.lost_before = 0, self._lost
        session.is_open = True
        session.idle = time.monotonic() + seconds + _IDLE_S
        return True

    def _tell(self, session: _Session, text: str) -> None:
        now = time.monotonic()
        if now > self._minute:
            self._minute, self._lines = now + 60, Counter()
        self._lines[session.address] += 1
        if self._lines[session.address] <= _LINES:
            self._told(f"{session.address}: {text}")

    def _answer(self, session: _Session) -> None:
        """Tells a sender what arrived."""
        packets = len(session.arrived)
        missed = (self._lost - session.lost_before) & 0xFFFFFFFF
        self._tell(session, f"{session.count} of {packets} packets arrived")
        if sys.byteorder == "little":
            session.arrived.byteswap()
        reply = wire.REPLY.pack(packets, missed) + session.arrived.tobytes() + session.fields
        session.outbox = memoryview(reply)
        session.is_open = session.is_done = False
        session.arrived, session.fields = array("q"), bytearray()
        session.idle = time.monotonic() + _IDLE_S
        self._serve(session, selectors.EVENT_WRITE)

    def _write(self, session: _Session) -> None:
        try:
            session.outbox = session.outbox[session.link.send(session.outbox) :]
        finally:
            writes = selectors.EVENT_WRITE if session.outbox else 0
            self._ready.modify(session.link, selectors.EVENT_READ | writes, session)

    def _read_datagrams(self, link: socket.socket) -> None:
        offset = _offset()
        for _ in range(_AT_ONCE):
            try:
                data, beside, _, _ = link.recvmsg(wire.HEAD.size, _SPACES)
            except BlockingIOError:
                return
            except OSError:
                continue
            self._take(data, beside, offset)

    def _take(self, data: bytes, beside: list[Any], offset: int) -> None:
        """Notes a datagram that belongs to a plan; a second one of its number changes nothing."""
        at, ecn = 0, 0
        for level, kind, value in beside:
            if level == socket.SOL_SOCKET and kind == _STAMPED and len(value) == _TIME.size:
                seconds, rest = _TIME.unpack(value)
                at = seconds * 10**9 + rest + offset
            elif level == socket.SOL_SOCKET and kind == _OVERFLOW:
                self._lost = int.from_bytes(value, sys.byteorder)
            elif (level, kind) in _FIELDS:
                ecn = value[0 if sys.byteorder == "little" else -1] & 3
        if len(data) < wire.HEAD.size:
            return
        token, plan, number = wire.HEAD.unpack(data)
        session = self._sessions.get(token)
        if session is None or plan != session.rounds or number >= len(session.arrived):
            return
        if session.arrived[number] == wire.LOST:
            session.arrived[number] = max(at, 0)
            session.fields[number] = ecn
            session.count += 1
            session.last = time.monotonic()


def _offset() -> int:
    """From the kernel's clock, which somebody may set, to the monotonic one, ns."""
    found = []
    for _ in range(3):  # the process may lose the processor in between
        before, there, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, (before + after) // 2 - there))
    return min(found)[1]


_TIME = struct.Struct("@ll")
_FIELDS = {
    (socket.IPPROTO_IP, socket.IP_TOS),
    (socket.IPPROTO_IPV6, socket.IPV6_TCLASS),
}


def _bound(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """A socket at an address; at all of IPv4 and IPv6 if there is none."""
    try:
        both = not address and socket.has_dualstack_ipv6()
        family, *_, place = (
            (socket.AF_INET6, ("::", port))
            if both
            else socket.getaddrinfo(address or "0.0.0.0", port, type=kind)[0]
        )
        link = socket.socket(family, kind)
        try:
            if family == socket.AF_INET6:
                link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if both else 1)
            if kind == socket.SOCK_STREAM:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            link.bind(place)
        except BaseException:
            link.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"cannot listen: {getattr(error, 'strerror', None) or error}",
            key="--listen", value=wire.place(address, port), allowed="[ADDRESS:]PORT",
        ) from error  # fmt: skip
    return link


def _prepare(link: socket.socket) -> None:
    """Asks for time stamps, ECN fields, a count of losses, and room."""
    link.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
    link.setsockopt(socket.SOL_SOCKET, _OVERFLOW, 1)
    link.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    if link.family == socket.AF_INET6:
        link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    try:
        link.setsockopt(socket.SOL_SOCKET, _FORCED, _ROOM)
    except OSError:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)

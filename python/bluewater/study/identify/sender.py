"""The near end of a probe: finds the path's rate, sends the probe, and makes its recording."""

from __future__ import annotations

import gc
import os
import socket
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bluewater.errors import InputError
from bluewater.study.identify import probe, wire
from bluewater.study.identify.clocks import MOST as MOST_SKEW
from bluewater.study.identify.clocks import aligned
from bluewater.study.identify.recording import ECN, Recording, check_length
from bluewater.study.identify.recording import LEAST as FEWEST
from bluewater.study.identify.wire import Verdict
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from bluewater.study.identify.probe import Packets

LEAST, MOST = 200e3, 100e6
"""Rates of bottlenecks that can be probed, bit/s."""
SHORTEST_S, LONGEST_S = 20.0, 120.0
"""Lengths of a probe. With 15 s, drop-tail of a kernel was not always recognised."""
_CONNECTS_S, _PATIENCE_S = 10.0, 60.0
"""A listener that does not answer for so long is given up: at first, and behind packets, which may
wait in a queue."""
_LOOK_NS = 200_000_000
"""How often a sender looks whether the listener is still there."""
_SLACK_NS = 50e6
"""Clocks may be set, or read late, by this."""
_CLOSED = "the listener closed the connection"
_NONSENSE = "the listener's answer makes no sense"
_ROUND_S, _LONG_S, _TRAINS = 0.5, 2.0, 18
"""Lengths of the trains by which the rate is looked for and confirmed, and their largest number."""
_SAME = 0.05
"""Two rates are the same if they differ by less than this share."""
_APART = 0.2
"""The rates of two trains that find the same differ by more than this."""
_FULL = 0.9
"""A path that passes less than this share of a train is overloaded."""
_LATE_S = 0.02
"""A sender that is later than this on average is too slow."""


@dataclass(frozen=True)
class Fates:
    """What became of packets that were to be sent, in their order.

    Attributes:
        sent: When each was sent, s; NaN if this machine refused to.
        arrived: When it arrived, s, by another clock; NaN if it did not.
        ecn: Its codepoint on arrival, as bits.
        missed: Datagrams that the listener itself lost.
    """

    sent: NDArray[Any]
    arrived: NDArray[Any]
    ecn: NDArray[Any]
    missed: int


class Far:
    """The connection to a listener.

    Args:
        host: Its name or address.
        port: Its port.

    Raises:
        InputError: There is no listener, or it serves somebody else.
    """

    def __init__(self, host: str, port: int) -> None:
        self._name = wire.place(host, port)
        try:
            self._link = socket.create_connection((host, port), _CONNECTS_S)
        except (OSError, UnicodeError, OverflowError) as error:
            raise self._failed(f"cannot connect: {getattr(error, 'strerror', None) or error}",
                               "start `bluewater probe --listen PORT` there; firewalls have to let "
                               "TCP and UDP pass") from error  # fmt: skip
        self._flows: dict[int, socket.socket] = {}
        try:
            hello = self._get(wire.HELLO.size, _CONNECTS_S)
            name, verdict, self._token = wire.HELLO.unpack(hello)
            if name != wire.NAME:
                raise self._failed("no listener of this version of `bluewater probe`")
            if verdict != Verdict.GO:
                raise self._failed("the listener is busy", "try again later")
            self._family, self._peer = self._link.family, self._link.getpeername()
        except BaseException:
            self.close()
            raise
        if self._peer[0].startswith(wire.MAPPED):
            self._family = socket.AF_INET
            self._peer = (self._peer[0].removeprefix(wire.MAPPED), port)
        over_ipv6 = self._family == socket.AF_INET6
        self._round = 0
        self._headers = 48 if over_ipv6 else 28
        self._traffic_class = (
            (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
            if over_ipv6
            else (socket.IPPROTO_IP, socket.IP_TOS)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all sockets."""
        for link in (self._link, *self._flows.values()):
            link.close()

    def send(self, packets: Packets) -> Fates:
        """Sends packets and asks what became of them.

        Raises:
            InputError: The listener refuses, has gone, or does not speak its protocol.
        """
        count, seconds = len(packets.sent), float(packets.sent[-1])
        size = int(packets.size.sum())
        if not wire.is_modest(count, seconds, size):
            raise self._failed("this is more than a listener takes", "lower --rate or --duration")
        try:
            self._link.settimeout(_PATIENCE_S)
            self._link.sendall(wire.PLAN.pack(count, round(1000 * seconds), size))
            if self._get(wire.VERDICT.size) != wire.VERDICT.pack(Verdict.GO):
                raise self._failed("the listener refuses so many packets")
            self._round += 1
            begin, sent = self._paced(packets)
            self._link.settimeout(_PATIENCE_S)
            self._link.sendall(wire.DONE)
        except OSError as error:
            raise self._gone(error) from error
        told, missed = wire.REPLY.unpack(self._get(wire.REPLY.size))
        end = time.monotonic_ns() - begin
        if told != count:
            raise self._failed(_NONSENSE)
        arrived = np.frombuffer(self._get(8 * count), ">i8").astype(np.int64)
        ecn = np.frombuffer(self._get(count), np.uint8).astype(np.int64)
        there = (arrived >= 0) & (sent >= 0)
        if (ecn > 3).any() or not _is_possible(sent[there], arrived[there], end):
            raise self._failed(_NONSENSE)
        first = arrived[there].min(initial=np.iinfo(np.int64).max)
        return Fates(
            np.where(sent < 0, np.nan, sent * 1e-9),
            np.where(there, (arrived - first) * 1e-9, np.nan),
            np.where(there, ecn, 0),
            min(missed, int((arrived < 0).sum())),
        )

    def _paced(self, packets: Packets) -> tuple[int, NDArray[Any]]:
        """Sends each packet at its time.

        Gives the begin, ns, and the times since then, or -1 if a packet could not be sent.
        """
        self._open(packets)
        pad = os.urandom(int(packets.size.max()))
        stamps = np.full(len(packets.sent), -1, np.int64)
        rows = list(
            zip(
                (packets.sent * 1e9).astype(np.int64).tolist(),
                (packets.size - self._headers - wire.HEAD.size).tolist(),
                packets.flow.tolist(),
                strict=True,
            )
        )
        with _undisturbed():
            begin = time.monotonic_ns() + 20_000_000
            look = begin + _LOOK_NS
            for k, (at, rest, flow) in enumerate(rows):
                data = wire.HEAD.pack(self._token, self._round, k) + pad[:rest]
                wait = begin + at - time.monotonic_ns()
                if wait > 0:
                    time.sleep(wait * 1e-9)
                now = time.monotonic_ns()
                if now > look:
                    self._check_silence()
                    look = now + _LOOK_NS
                try:
                    self._flows[flow].send(data)
                except ConnectionRefusedError:  # of an earlier datagram; this one is not sent
                    continue
                except OSError:  # the socket's buffer is full, or there is no route for a moment
                    continue
                stamps[k] = now - begin
        return begin, stamps

    def _check_silence(self) -> None:
        """Refuses to go on if the listener has ended, or speaks out of its turn."""
        self._link.settimeout(0)
        with suppress(BlockingIOError):
            raise self._failed(_NONSENSE if self._link.recv(1) else _CLOSED)

    def _open(self, packets: Packets) -> None:
        """A socket for each flow, with the ECN field of its packets."""
        for flow, ecn in {*zip(packets.flow.tolist(), packets.ecn.tolist(), strict=True)}:
            if flow not in self._flows:
                link = socket.socket(self._family, socket.SOCK_DGRAM)
                self._flows[flow] = link
                link.setblocking(False)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
                link.connect(self._peer)
            self._flows[flow].setsockopt(*self._traffic_class, ecn)

    def _get(self, size: int, patience: float | None = None) -> bytes:
        """So many bytes from the listener, which may take this long and as a slow path needs."""
        data = bytearray()
        end = time.monotonic() + (patience or _PATIENCE_S) + size * 8 / LEAST
        try:
            while len(data) < size:
                self._link.settimeout(max(end - time.monotonic(), 1e-3))
                part = self._link.recv(min(size - len(data), 1 << 16))
                if not part:
                    raise self._failed(_CLOSED)
                if time.monotonic() > end:
                    raise TimeoutError("it takes too long")
                data += part
        except OSError as error:
            raise self._gone(error) from error
        return bytes(data)

    def _gone(self, error: OSError) -> InputError:
        return self._failed(f"no answer: {error.strerror or error}")

    def _failed(self, problem: str, hint: str | None = None) -> InputError:
        return InputError(f"{self._name}: {problem}", hint=hint)


def _is_possible(sent: NDArray[Any], arrived: NDArray[Any], end: int) -> bool:
    """Whether packets may have arrived at these times, between their sending and the end, ns.

    The clocks may differ by any constant, and by some skew.
    """
    if not sent.size:
        return True
    sent, arrived = sent.astype(float), arrived.astype(float)
    slack = 2 * MOST_SKEW * end + _SLACK_NS
    return bool((sent - arrived).max() <= end - arrived.max() + slack)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without the pauses of garbage collection."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def find_rate(far: Far) -> float:
    """The rate of a path's bottleneck, bit/s, by trains of growing rates.

    The rate is that at which the latter half of a train arrives that overloads the path. Longer
    trains of another rate confirm it, because a token bucket may have passed the first one, a pause
    of a host have stretched it, or losses without a bottleneck have thinned it.

    Raises:
        InputError: No train overloads the path, or its rate is too low.
    """
    rate, seconds, before = LEAST, _ROUND_S, 0.0
    for _ in range(_TRAINS):
        found = _passed(far, rate, seconds)
        other = 2 * rate
        if found is not None:
            if abs(found - before) < _SAME * found:
                return _allowed(found)
            other, seconds, before = 2 * max(found, LEAST), _LONG_S, found
            if abs(other - rate) < _APART * rate:
                other = (1 + _APART) * rate
        if rate == (other := min(other, MOST / _FULL)):
            break
        rate = other
    raise InputError(
        f"no bottleneck of a steady rate below {number(_FULL * MOST / 1e6)} Mb/s is on the path",
        hint="a faster one cannot be probed; --rate probes at a rate of yours",
    )


def _allowed(rate: float) -> float:
    """A rate within the bounds, which a rate at their ends may pass a little."""
    if rate < _FULL * LEAST:
        raise InputError(
            f"the bottleneck's rate is {number(rate / 1e6)} Mb/s",
            allowed=f"{number(LEAST / 1e6)} … {number(MOST / 1e6)} Mb/s",
        )
    return min(max(rate, LEAST), MOST)


def _passed(far: Far, rate: float, seconds: float) -> float | None:
    """The rate at which a train arrives, bit/s; None if the path is not overloaded."""
    train = probe.steady(rate, seconds)
    fates = far.send(train)
    if fates.missed:
        raise InputError(
            "the listener is too slow to find the rate",
            hint="name the bottleneck's rate with --rate",
        )
    there = np.sort(fates.arrived[~np.isnan(fates.arrived)])
    sent = fates.sent[~np.isnan(fates.sent)]
    _check_any(fates)
    half = there.size // 2
    span = there[-1] - there[half]
    through = (there.size - 1 - half) * probe.FULL * 8 / max(span, 1e-9)
    offered = (sent.size - 1) * probe.FULL * 8 / max(sent[-1] - sent[0], 1e-9)
    return float(through) if through < _FULL * offered else None


def _check_any(fates: Fates) -> None:
    """Refuses a path that no packets pass."""
    if np.isfinite(fates.arrived).sum() < 4:
        raise InputError(
            "no packets arrive", hint="firewalls have to let UDP pass to the listener's port"
        )


def probed(
    far: Far,
    rate: float | None,
    seconds: float | None,
    told: Callable[[str], object] = lambda _: None,
) -> Recording:
    """Probes a path.

    Args:
        far: The connection to the listener.
        rate: Of the bottleneck, bit/s; found if it is not known.
        seconds: About how long to probe; if not given, as long as the rate needs.
        told: Called with what the user should know.

    Raises:
        InputError: The path cannot be probed.
    """
    if rate is None:
        told("looking for the bottleneck's rate")
        rate = find_rate(far)
        told(f"rate: {number(rate / 1e6)} Mb/s")
    length = None if seconds is None else seconds - probe.END_S
    packets = probe.with_end(probe.packets(rate, seconds=length))
    if packets.sent.size < FEWEST:
        raise InputError(
            f"at this rate the probe has {packets.sent.size} packets",
            key="--duration", allowed=f"as long as {FEWEST} packets take",
        )  # fmt: skip
    told(f"probing for {float(packets.sent[-1]):.0f} s")
    fates = far.send(packets)
    _check_any(fates)
    for each in _remarks(packets, fates):
        told(each)
    return recording(packets, fates)


def _remarks(packets: Packets, fates: Fates) -> Iterator[str]:
    """What makes a recording worse."""
    there = ~np.isnan(fates.arrived)
    if fates.missed:
        yield (
            f"the listener itself lost up to {fates.missed} packets, which count as lost on the "
            "path; datagrams of others may be among them"
        )
    if unsent := int(np.isnan(fates.sent).sum()):
        yield f"{unsent} packets could not be sent: the queue may be on this machine"
    if (late := float(np.nanmean(fates.sent - packets.sent))) > _LATE_S:
        yield f"this machine is slow: packets leave {number(1e3 * late)} ms late on average"
    for before, after in product(range(4), range(4)):
        count = int((there & (packets.ecn == before) & (fates.ecn == after)).sum())
        if count and before != after and (before == 0 or after != 3):
            yield f"the path changes {ECN[before]} to {ECN[after]} in {count} packets"


def recording(packets: Packets, fates: Fates) -> Recording:
    """The recording of a probe: without skew, and with 0 as the least delay.

    Raises:
        InputError: Too few packets were sent, or arrived.
    """
    some = ~np.isnan(fates.sent)
    order = np.argsort(fates.sent[some], kind="stable")
    sent, arrived, after, size, ecn, flow = (
        each[some][order]
        for each in (
            fates.sent, fates.arrived, fates.ecn, packets.size, packets.ecn, packets.flow,
        )
    )  # fmt: skip
    check_length(sent, arrived)
    sent = sent - sent[0]
    return aligned(
        Recording(sent, size, ecn, flow, arrived, np.where(np.isnan(arrived), ecn, after))
    )

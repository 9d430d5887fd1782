"""The near end of a probe: finds the path's rate, sends the probe, and makes its recording."""

from __future__ import annotations

import gc
import os
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bluewater.errors import InputError
from bluewater.study.identify import probe, wire
from bluewater.study.identify.clocks import skew
from bluewater.study.identify.features import throughput
from bluewater.study.identify.recording import Recording, check_length
from bluewater.study.identify.wire import Verdict
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from bluewater.study.identify.probe import Packets

LEAST, MOST = 200e3, 100e6
"""Rates of bottlenecks that can be probed, bit/s."""
SHORTEST_S, LONGEST_S = 10.0, 120.0
"""Lengths of a probe."""
_CONNECTS_S, _PATIENCE_S = 10.0, 60.0
"""A listener that says nothing for so long is given up: at first, and behind packets, which may
wait in a queue."""
_ROUND_S, _LONG_S, _TRAINS = 0.5, 2.0, 18
"""Lengths of the trains by which the rate is looked for and confirmed, and their largest number."""
_SAME = 0.05
"""Two rates are the same if they differ by less than this share."""
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
        self._name = f"{host}:{port}"
        try:
            self._link = socket.create_connection((host, port), _CONNECTS_S)
        except (OSError, UnicodeError, OverflowError) as error:
            raise self._failed(f"cannot connect: {getattr(error, 'strerror', None) or error}",
                               "start `bluewater probe --listen PORT` there; firewalls have to let "
                               "TCP and UDP pass") from error  # fmt: skip
        self._flows: dict[int, socket.socket] = {}
        try:
            name, verdict, self._token = wire.HELLO.unpack(self._get(wire.HELLO.size))
            if name != wire.NAME:
                raise self._failed("no listener of this version of `bluewater probe`")
            if verdict != Verdict.GO:
                raise self._failed("the listener is busy", "try again later")
            self._link.settimeout(_PATIENCE_S)
        except BaseException:
            self.close()
            raise
        over_ipv6 = self._link.family == socket.AF_INET6
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
            self._link.sendall(wire.PLAN.pack(count, round(1000 * seconds), size))
            if self._get(wire.VERDICT.size) != wire.VERDICT.pack(Verdict.GO):
                raise self._failed("the listener refuses so many packets")
            sent = self._paced(packets)
            self._link.sendall(wire.DONE)
        except OSError as error:
            raise self._gone(error) from error
        told, missed = wire.REPLY.unpack(self._get(wire.REPLY.size))
        if told != count:
            raise self._failed("the listener's answer makes no sense")
        arrived = np.frombuffer(self._get(8 * count), ">i8").astype(np.int64)
        ecn = np.frombuffer(self._get(count), np.uint8).astype(np.int64)
        if (ecn > 3).any():
            raise self._failed("the listener's answer makes no sense")
        there = (arrived >= 0) & (sent >= 0)
        first = arrived[there].min(initial=np.iinfo(np.int64).max)
        return Fates(
            np.where(sent < 0, np.nan, sent * 1e-9),
            np.where(there, (arrived - first) * 1e-9, np.nan),
            np.where(there, ecn, 0),
            missed,
        )

    def _paced(self, packets: Packets) -> NDArray[Any]:
        """Sends each packet at its time; gives the times, ns, or -1 if it could not be sent."""
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
            for k, (at, rest, flow) in enumerate(rows):
                data = wire.HEAD.pack(self._token, k) + pad[:rest]
                wait = begin + at - time.monotonic_ns()
                if wait > 0:
                    time.sleep(wait * 1e-9)
                now = time.monotonic_ns()
                try:
                    self._flows[flow].send(data)
                except ConnectionRefusedError:  # of an earlier datagram; this one is not sent
                    continue
                except OSError:  # the socket's buffer is full, or there is no route for a moment
                    continue
                stamps[k] = now - begin
        return stamps

    def _open(self, packets: Packets) -> None:
        """A socket for each flow, with the ECN field of its packets."""
        for flow, ecn in {*zip(packets.flow.tolist(), packets.ecn.tolist(), strict=True)}:
            if flow not in self._flows:
                link = socket.socket(self._link.family, socket.SOCK_DGRAM)
                self._flows[flow] = link
                link.setblocking(False)
                link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
                link.connect(self._link.getpeername())
            self._flows[flow].setsockopt(*self._traffic_class, ecn)

    def _get(self, size: int) -> bytes:
        """So many bytes from the listener."""
        data = bytearray()
        try:
            while len(data) < size:
                part = self._link.recv(min(size - len(data), 1 << 16))
                if not part:
                    raise self._failed("the listener closed the connection")
                data += part
        except OSError as error:
            raise self._gone(error) from error
        return bytes(data)

    def _gone(self, error: OSError) -> InputError:
        return self._failed(f"no answer: {error.strerror or error}")

    def _failed(self, problem: str, hint: str | None = None) -> InputError:
        return InputError(f"{self._name}: {problem}", hint=hint)


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
    trains of twice that rate confirm it, because a token bucket may have passed the first one, or a
    pause of a host have stretched it.

    Raises:
        InputError: No train overloads the path.
    """
    rate, seconds, before = LEAST, _ROUND_S, 0.0
    for _ in range(_TRAINS):
        found = _passed(far, rate, seconds)
        if found is None:
            rate *= 2
            if rate >= 2 * MOST:
                break
        elif abs(found - before) < _SAME * found:
            return min(found, MOST)
        else:
            rate, seconds, before = 2 * found, _LONG_S, found
    raise InputError(
        f"no bottleneck of a steady rate below {number(MOST / 1e6)} Mb/s is on the path",
        hint="a faster one cannot be probed; --rate probes at a rate of yours",
    )


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
    if there.size < 4:
        raise InputError(
            "no packets arrive", hint="firewalls have to let UDP pass to the listener's port"
        )
    half = there.size // 2
    span = there[-1] - there[half]
    through = (there.size - 1 - half) * probe.FULL * 8 / max(span, 1e-9)
    offered = (sent.size - 1) * probe.FULL * 8 / max(sent[-1] - sent[0], 1e-9)
    return float(through) if through < _FULL * offered else None


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
    told(f"probing for {float(packets.sent[-1]):.0f} s")
    fates = far.send(packets)
    for each in _remarks(packets, fates):
        told(each)
    return recording(packets, fates)


def _remarks(packets: Packets, fates: Fates) -> Iterator[str]:
    """What makes a recording worse."""
    there = ~np.isnan(fates.arrived)
    if fates.missed:
        yield f"the listener itself lost {fates.missed} packets, which count as lost on the path"
    if unsent := int(np.isnan(fates.sent).sum()):
        yield f"{unsent} packets could not be sent: the queue may be on this machine"
    if (late := float(np.nanmean(fates.sent - packets.sent))) > _LATE_S:
        yield f"this machine is slow: packets leave {number(1e3 * late)} ms late on average"
    cleared = there & (packets.ecn > 0) & (fates.ecn == 0)
    if cleared.any():
        yield "the path clears ECN fields, so that marks cannot be seen"


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
    sent, there = sent - sent[0], ~np.isnan(arrived)
    made = Recording(sent, size, ecn, flow, arrived, (after == 3) & (ecn != 3))
    through = arrived - sent - size * 8 / throughput(made)
    arrived = arrived - skew(sent[there], through[there]) * sent
    return replace(made, arrived=arrived - float(np.nanmin(arrived - sent)))

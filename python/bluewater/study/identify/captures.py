"""Two packet captures, one from each end of a path, as a recording."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bluewater import _core
from bluewater.errors import InputError
from bluewater.files import check
from bluewater.study.identify.clocks import aligned
from bluewater.study.identify.recording import LEAST, MOST, Recording, check_length
from bluewater.trace import input_error

if TYPE_CHECKING:
    from pathlib import Path

_PAYLOAD = 32
"""So many bytes of the payload tell packets apart, beside IPv4's identification and the length."""
_ALIKE = 0.001
"""A recording may hold this share of packets that look like another one."""


class _Datagram(NamedTuple):
    """A UDP packet of a capture.

    Attributes:
        time: Since the capture's first packet, ns.
        size: Bytes of the IP packet.
        ecn: Codepoint, as bits.
        ends: Addresses, source first, 16 bytes each.
        ports: Of source and destination.
        key: What it has at both ends, even behind a translation of addresses.
    """

    time: int
    size: int
    ecn: int
    ends: bytes
    ports: tuple[int, ...]
    key: bytes

    @property
    def flow(self) -> tuple[bytes, tuple[int, ...]]:
        """Addresses and ports."""
        return self.ends, self.ports


def read(sent: Path, arrived: Path) -> Recording:
    """The recording of a path from a capture at either end (pcap or pcapng).

    UDP packets count whose flow passes the path, from the first one that arrived to the last one.

    Raises:
        InputError: A file is no capture, or the packets of the two cannot be matched.
    """
    near, far = _datagrams(sent), _datagrams(arrived)
    times: dict[bytes, list[tuple[int, int]]] = {}
    for each in far:
        times.setdefault(each.key, []).append((each.time, each.ecn))
    back = _backward(near, times)
    passing = {each.flow for each in near if each.key in times and each.ends not in back}
    near = [each for each in near if each.flow in passing]
    matched = [k for k, each in enumerate(near) if each.key in times]
    if len(matched) < LEAST // 2:
        raise InputError(
            f"{len(matched)} UDP packets are in both captures",
            file=str(arrived), allowed=f"{LEAST // 2} or more that {sent} has too",
            hint=f"capture at both ends at once, the first {_PAYLOAD} bytes of each payload or "
            "more, without segmentation offload at the sender",
        )  # fmt: skip
    near = near[matched[0] : matched[-1] + 1]
    counts = Counter(each.key for each in near)
    alike = sum(count for key, count in counts.items() if count > 1 and key in times)
    if alike > _ALIKE * len(near):
        raise InputError(
            f"{alike} of {len(near)} packets look like another one",
            file=str(sent),
            allowed=f"packets that differ in IP identification, length or first {_PAYLOAD} bytes",
            hint="let your program number its datagrams",
        )
    flows = {flow: number for number, flow in enumerate(sorted(passing))}
    fates = [times[each.key].pop(0) if times.get(each.key) else None for each in near]
    made = Recording(
        sent=(np.array([each.time for each in near]) - near[0].time) * 1e-9,
        size=np.array([each.size for each in near]),
        ecn=np.array([each.ecn for each in near]),
        flow=np.array([flows[each.flow] for each in near]),
        arrived=np.array(
            [np.nan if fate is None else (fate[0] - near[0].time) * 1e-9 for fate in fates]
        ),
        after=np.array(
            [each.ecn if fate is None else fate[1] for each, fate in zip(near, fates, strict=True)]
        ),
    )
    check_length(made.sent, made.arrived, str(sent))
    return aligned(made)


def _backward(near: list[_Datagram], times: dict[bytes, list[tuple[int, int]]]) -> set[bytes]:
    """Addresses of packets that go the other way: they are at the far end earlier.

    The clocks may differ, so it shows only beside packets from their destination to their source.
    """
    delays: dict[bytes, list[int]] = {}
    for each in near:
        if each.key in times:
            delays.setdefault(each.ends, []).append(times[each.key][0][0] - each.time)
    means = {ends: sum(each) / len(each) for ends, each in delays.items()}
    return {
        ends
        for ends, mean in means.items()
        if mean < means.get(ends[len(ends) // 2 :] + ends[: len(ends) // 2], mean)
    }


def _datagrams(path: Path) -> list[_Datagram]:
    """The UDP packets of a capture, without fragments."""
    check(path)
    path.open("rb").close()  # raises an error that names the file
    try:
        rows = _core.datagrams(path, MOST)
    except ValueError as error:
        raise input_error(error) from error
    return [
        _Datagram(time, _size(key, source), ecn, source + destination, tuple(ports), key)
        for time, _, ecn, key, source, destination, ports in rows
    ]


def _size(key: bytes, source: bytes) -> int:
    """Bytes of the IP packet of a datagram, whose length is in its key."""
    return int.from_bytes(key[2:4], "big") + (20 if source.startswith(_MAPPED) else 40)


_MAPPED = bytes(10) + b"\xff\xff"
"""An IPv4 address as one of IPv6 begins so."""

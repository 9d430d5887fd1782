"""Two packet captures, one from each end of a path, as a recording."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from struct import Struct, error, unpack_from
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bluewater.errors import InputError
from bluewater.files import check
from bluewater.study.identify.clocks import aligned
from bluewater.study.identify.recording import LEAST, MOST, Recording, check_length

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

_PAYLOAD = 32
"""So many bytes of the payload tell packets apart, beside IPv4's identification and the length."""
_ALIKE = 0.001
"""A recording may hold this share of packets that look like another one."""
_LARGEST = 1 << 20
"""Bytes of a block of a file; a larger one is damage."""


class _Datagram(NamedTuple):
    """A UDP packet of a capture.

    Attributes:
        time: ns.
        size: Bytes of the IP packet.
        ecn: Codepoint, as bits.
        ends: Addresses, source first.
        ports: Of source and destination.
        key: What it has at both ends, even behind a translation of addresses.
    """

    time: int
    size: int
    ecn: int
    ends: bytes
    ports: bytes
    key: bytes

    @property
    def flow(self) -> bytes:
        """Addresses and ports."""
        return self.ends + self.ports


def read(sent: Path, arrived: Path) -> Recording:
    """The recording of a path from a capture at either end (pcap or pcapng).

    UDP packets count whose flow passes the path, from the first one that arrived to the last one.

    Raises:
        InputError: A file is no capture, or the packets of the two cannot be matched.
    """
    near, far = (sorted(_datagrams(each), key=attrgetter("time")) for each in (sent, arrived))
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


def _datagrams(path: Path) -> Iterator[_Datagram]:
    """The UDP packets of a capture, without fragments."""
    check(path)
    count = 0
    with path.open("rb") as file:
        try:
            for time, link, frame in _frames(file):
                found = _datagram(time, _network(link, frame))
                if found is not None:
                    count += 1
                    yield found
                if count > MOST:
                    raise InputError(
                        "too many packets", file=str(path), allowed=f"up to {MOST} of UDP"
                    )
        except (error, ValueError, IndexError) as damage:
            raise InputError(
                f"not a capture, or damaged near byte {file.tell()}",
                file=str(path), allowed="pcap or pcapng",
            ) from damage  # fmt: skip


_CLASSIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Begin of a pcap file: byte order, and the unit of fractions of a second in ns."""
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
"""Blocks of pcapng."""


def _frames(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Time in ns, link layer and bytes of each packet of a file."""
    magic = file.read(4)
    if magic in _CLASSIC:
        order, unit = _CLASSIC[magic]
        link = unpack_from(order + "16xI", file.read(20))[0] & 0xFFFF
        head = Struct(order + "IIII")
        while begin := file.read(head.size):
            seconds, fraction, kept, _ = head.unpack(begin)
            yield seconds * 10**9 + fraction * unit, link, _exactly(file, kept)
        return
    order, links = "<", list[tuple[int, int]]()
    while magic:
        if unpack_from("<I", magic)[0] == _SECTION:
            length = file.read(4)
            order = "<" if (start := file.read(4)) == b"\x4d\x3c\x2b\x1a" else ">"
            if unpack_from(order + "I", start)[0] != 0x1A2B3C4D:
                raise ValueError(start)
            _exactly(file, unpack_from(order + "I", length)[0] - 12)
            links = []
        else:
            kind = unpack_from(order + "I", magic)[0]
            block = _exactly(file, unpack_from(order + "I", file.read(4))[0] - 8)
            if kind == _INTERFACE:
                links.append((unpack_from(order + "H", block)[0], _ticks(order, block)))
            elif kind == _PACKET:
                interface, high, low, kept = unpack_from(order + "IIII", block)
                link, ticks = links[interface]
                yield ((high << 32) + low) * 10**9 // ticks, link, block[20 : 20 + kept]
        magic = file.read(4)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size) if 0 <= size <= _LARGEST else b""
    if len(data) != size:
        raise ValueError(size)
    return data


def _ticks(order: str, block: bytes) -> int:
    """Units of time in a second, by the option if_tsresol of an interface."""
    at = 8
    while at + 4 <= len(block) - 4:
        code, length = unpack_from(order + "HH", block, at)
        if code == 9:
            power = block[at + 4]
            return int(2 ** (power & 0x7F) if power & 0x80 else 10**power)
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return 10**6


_RAW = (12, 14, 101, 228, 229)
_ETHERNET, _COOKED, _COOKED_2, _LOOPBACK = 1, 113, 276, (0, 108)
"""Link layers by their numbers of tcpdump.org."""


def _network(link: int, frame: bytes) -> bytes:
    """The IP packet of a frame; empty if it holds none."""
    if link in _RAW:
        return frame
    if link in _LOOPBACK:
        return frame[4:]
    if link == _COOKED_2:
        return frame[20:] if frame[:2] in (b"\x08\x00", b"\x86\xdd") else b""
    if link not in (_ETHERNET, _COOKED):
        raise ValueError(link)
    at = 12 if link == _ETHERNET else 14
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return frame[at + 2 :] if frame[at : at + 2] in (b"\x08\x00", b"\x86\xdd") else b""


def _datagram(time: int, packet: bytes) -> _Datagram | None:
    """The UDP packet that an IP packet is, if it is one and whole."""
    if len(packet) < 28:
        return None
    if packet[0] >> 4 == 4:
        head, ends, code = (packet[0] & 15) * 4, packet[12:20], packet[1] & 3
        size, number, fragment = unpack_from(">HHH", packet, 2)
        is_udp, number = packet[9] == 17 and not fragment & 0x3FFF, packet[4:6]
    else:
        head, ends, code = 40, packet[8:40], packet[1] >> 4 & 3
        size, is_udp, number = unpack_from(">H", packet, 4)[0] + 40, packet[6:7] == b"\x11", b""
    if not is_udp or len(packet) < head + 8:
        return None
    length = unpack_from(">H", packet, head + 4)[0]
    datagram = packet[head : head + min(length, 8 + _PAYLOAD)]  # a short frame is padded
    key = number + datagram[4:6] + datagram[8:]
    return _Datagram(time, size, code, ends, datagram[:4], key)

"""The Ethernet frames of a setting's packets, which the kernel sends and our capture holds.

Only the standard library is imported here: the kernel's first process reads this file, too.
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bluewater.kernel.settings import Flow, Setting, flow, schedule, splitmix
else:
    # As in `inside.py`.
    try:
        from bluewater.kernel.settings import Flow, Setting, flow, schedule, splitmix
    except ImportError:
        from settings import Flow, Setting, flow, schedule, splitmix

ETHERNET = b"\2\0\0\0\0\1\2\0\0\0\0\2"
SEGMENT = 1448
"""Bytes that an acknowledgement acknowledges."""
UDP, TCP, IPV6 = 17, 6, 41
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << n for n in range(8))


def frames(setting: Setting) -> Sequence[tuple[int, int, bytes]]:
    """The packets of a setting: when each comes, ns, its flow, and its frame."""
    is_spread = setting.module.startswith("sch_cake")
    return _frames(setting.phases, setting.flows, setting.seed, setting.byte, is_spread=is_spread)


@functools.lru_cache(maxsize=4)
def _frames(
    phases: str, flows: str, seed: int, byte: int, *, is_spread: bool
) -> Sequence[tuple[int, int, bytes]]:
    of_each = [flow(text) for text in flows.split()]
    if is_spread:
        # CAKE's own clock does not say which is first, a packet that comes or one that leaves: all
        # leave at the grid's distance from an arrival, and no two arrivals are at the same place.
        lengths = (256, 512, 1024, 1280, 1280)
        found = schedule(phases, len(of_each), seed, byte, lengths, 256 * byte)
        shifts = (n * 4051 % 8192 * (byte // 32) for n in range(len(found)))
        found = [
            (at + by, which, size) for by, (at, which, size) in zip(shifts, found, strict=True)
        ]
    else:
        found = schedule(phases, len(of_each), seed, byte)
    tcp = {n: _acknowledgements(seed * 1000 + n) for n in range(len(of_each))}
    made = []
    for n, (at, which, length) in enumerate(found):
        of = of_each[which]
        if of.kind.startswith("udp"):
            frame = datagram(of, which, n, length)
        elif of.kind.endswith("gso"):
            frame = segment(of, which, n, (ACK, 1, b"", 2 * length))
        else:
            frame = segment(of, which, n, next(tcp[which]))
        made.append((at, which, frame))
    return tuple(made)


def packets(setting: Setting) -> list[tuple[int, int, int]]:
    """The packets of a setting: when each comes, ns, its flow and length."""
    return [(at, which, len(frame)) for at, which, frame in frames(setting)]


def held(number: int) -> int:
    """How long after it comes a packet of a flow with times may leave, ns."""
    return number * 7 % 40 * 1_000_000 if number % 50 else 20_000_000_000


def datagram(of: Flow, which: int, number: int, length: int) -> bytes:
    """The frame of a datagram with its number in it; of several, if segments are offloaded."""
    size = length - 14 - (40 if of.kind == "udp6" else 20)
    data = struct.pack("!I", number << 16).ljust(size - 8, b"\0")
    if of.kind == "udp-gso":
        data = b"".join(
            struct.pack("!I", number << 16 | part).ljust(PART, b"\0") for part in range(4)
        )[: 2 * length]
    return _framed(of, UDP, struct.pack("!HHHH", 6000 + which, 5000, 8 + len(data), 0) + data)


def segment(of: Flow, which: int, number: int, text: tuple[int, int, bytes, int]) -> bytes:
    """The frame of a segment with its number in the sequence number."""
    flags, acknowledged, options, data = text
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    head = struct.pack("!HHII", 6000 + which, 5000, number << 16, acknowledged)
    head += struct.pack("!HHHH", (20 + len(options)) // 4 << 12 | flags, 1000, 0, 0)
    return _framed(of, TCP, head + options + bytes(data))


PART = 400
"""Bytes of data in each segment of those that a frame has if segments are offloaded."""


def offload(of: Flow, frame: bytes) -> bytes:
    """What a packet socket takes before the frame of a flow with offload (virtio_net_hdr)."""
    start = 54 if of.kind == "tcp6-gso" else 34
    if of.kind == "udp-gso":
        return struct.pack("=BBHHHH", 1, 5, start + 8, PART, start, 6)
    head = start + (frame[start + 12] >> 4) * 4
    return struct.pack("=BBHHHH", 1, 4 if start == 54 else 1, head, PART, start, 16)


def _framed(of: Flow, protocol: int, inside: bytes) -> bytes:
    """The frame of what is in an IP packet of a flow."""
    if "6" not in of.kind:
        return ETHERNET + b"\x08\0" + _ipv4(of, protocol, inside)
    sender, peer = (struct.pack("!Q6xH", 0xFD00 << 48, part) for part in (of.host, 256 + of.peer))
    head = struct.pack("!IHBB", 6 << 28 | of.byte << 20, len(inside), protocol, 64)
    inside = head + sender + peer + inside
    if of.kind.endswith("in4"):
        return ETHERNET + b"\x08\0" + _ipv4(of, IPV6, inside)
    return ETHERNET + b"\x86\xdd" + inside


def _ipv4(of: Flow, protocol: int, inside: bytes) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, of.byte, 20 + len(inside), 0, 0x4000, 64, protocol, 0)
    peer = bytes([10, 0, 2, of.peer] if of.peer else [10, 0, 1, 1])
    return head + bytes([10, 0, 1, 2 + of.host]) + peer + inside


def left(frame: bytes) -> tuple[int, int]:
    """The number of a packet of which all or a segment left, and the byte with DSCP and ECN."""
    if frame[12] == 8:
        byte, protocol, at = frame[15], frame[23], 34
    else:
        byte, protocol, at = (frame[14] & 15) << 4 | frame[15] >> 4, frame[20], 54
    if protocol == IPV6:
        protocol, at = frame[at + 6], at + 40
    (number,) = struct.unpack_from("!I", frame, at + (8 if protocol == UDP else 4))
    return number >> 16, byte


def _acknowledgements(seed: int) -> Iterator[tuple[int, int, bytes, int]]:
    """Flags, number, options and data of a connection's segments, mostly acknowledgements.

    They are what a receiver of much data with losses sends, now and then something else: data, a
    duplicate or late acknowledgement, DSACK, another flag, an option that is rare or wrong.
    """
    draw = splitmix(seed)

    def once_in(n: int) -> bool:
        return next(draw) % n == 0

    number, clock, echo = 1 << 31, 1 << 20, 0
    blocks: list[tuple[int, int]] = []
    while True:
        clock += next(draw) % 2
        if once_in(12):
            echo ^= ECE
        if blocks and once_in(3):
            # More of the same has come, or a further piece.
            start, end = blocks.pop(0)
            blocks.insert(0, (start, end + SEGMENT))
        elif once_in(8) and len(blocks) < 3:
            start = (blocks[-1][1] if blocks else number) + SEGMENT
            blocks.append((start, start + SEGMENT))
        elif blocks and once_in(2):
            number, blocks = number + SEGMENT, []
        elif not blocks and not once_in(4):
            number += SEGMENT * (1 + next(draw) % 2)
        sacked = [(number - SEGMENT, number), *blocks] if once_in(24) else blocks
        options = (b"" if once_in(6) else _stamped(clock, next(draw))) + _selective(sacked)
        flags, said, data = ACK | echo, number, 0
        rare = next(draw) % 96
        if rare == 0:
            flags |= (FIN, SYN, RST, PSH, URG, CWR, 256, 0)[next(draw) % 8]
        elif rare == 1:
            flags ^= ACK
        elif rare == 2:
            data = 1 + next(draw) % 400
        elif rare == 3:
            said -= SEGMENT
        elif rare < 6:
            odd = _odd(next(draw))
            options = odd + options if rare == 4 else options + odd
        yield flags, said & 0xFFFFFFFF, options[:40], data


def _stamped(clock: int, draw: int) -> bytes:
    """The option with timestamps, now and then of a time before."""
    late, other = draw % 24 == 0, draw // 24 % 24 == 0
    return struct.pack("!BBBBII", 1, 1, 8, 10, clock - late, clock - other)


def _selective(blocks: list[tuple[int, int]]) -> bytes:
    """The option with blocks of data that came."""
    if not blocks:
        return b""
    head = struct.pack("!BBBB", 1, 1, 5, 2 + 8 * len(blocks))
    return head + b"".join(struct.pack("!II", *block) for block in blocks)


def _odd(draw: int) -> bytes:
    """An option that is rare, or wrong."""
    return (
        b"\x13\x12".ljust(18, b"\1"),  # MD5
        b"\x02\x04\x05\xb4",  # the largest segment, as in a SYN
        b"\xfd\x04\0\0",  # an experiment
        b"\x08\x06\0\0\0\0",  # timestamps that are too short
        b"\x05\x05\0\0\0",  # half a block
        b"\x05\x02",  # no block
        b"\x04\x01",  # a length that is none
        b"\x01\x01\x00\x05",  # the end, and something after it
    )[draw % 8]

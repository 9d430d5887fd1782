"""What the two ends of a probe send each other: over one TCP connection, and in each datagram.

Over TCP the listener begins:

====================  =================================================
listener: `HELLO`     the protocol's name, a verdict, a token
sender: `PLAN`        packets, milliseconds and bytes that it wants to send
listener: `VERDICT`   whether it may; then the datagrams follow
sender: `DONE`        all datagrams are sent
listener: `REPLY`     packets, and those that the listener itself lost
listener: the times   of arrival, ns, `LOST` if none, as 64-bit integers
listener: the fields  of ECN on arrival, a byte each
====================  =================================================

From `PLAN` on it may repeat. Each datagram begins with `HEAD`: the token, the plan's number from
1, and its place in the plan. Only an end that gets packets at its address knows a token, and the
listener sends datagrams to nobody.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

NAME = b"bluewater probe 1\n"
PORT = 5205
"""The listener's port for TCP and UDP, unless another is named."""
HELLO = Struct(f"!{len(NAME)}sB16s")
PLAN = Struct("!IIQ")
VERDICT = Struct("!B")
DONE = b"."
REPLY = Struct("!II")
HEAD = Struct("!16sBI")
LOST = -1
MAPPED = "::ffff:"
"""So an address of IPv4 begins at a socket of IPv6."""

MOST_PACKETS = 1_000_000
MOST_S = 180.0
MOST_RATE = 400e6
"""The most that a plan may send, bit/s on average over a second or more."""


def place(host: str, port: int) -> str:
    """Host and port as a user types them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Verdict(IntEnum):
    """What a listener says to a connection or a plan."""

    GO = 0
    BUSY = 1
    TOO_MUCH = 2


def is_modest(packets: int, seconds: float, size: int) -> bool:
    """Whether a plan is within the limits of packets, time, and bytes."""
    return (
        0 < packets <= MOST_PACKETS
        and seconds <= MOST_S
        and size * 8 <= MOST_RATE * max(seconds, 1.0)
    )

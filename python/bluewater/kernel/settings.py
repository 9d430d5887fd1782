"""What a setting is, in which a kernel's queue disciplines are compared, and its packets.

Only the standard library is imported here: the kernel's first process reads this file, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BYTE = 512
"""Time of a byte on the line, ns: 15.625 Mb/s, so that two bytes take a tick of CoDel."""
RATE = "15625kbit"
LENGTHS = tuple(range(64, 1500, 2))
"""Lengths on the wire, of which a packet has one."""
GRID = 256 * BYTE
"""All packets come at multiples of this, ns."""
OFFSET = 509
"""Arrivals are so long after a tick of CoDel, which has 1024 ns, and at no tick of a timer, ns."""
START = 480_000_000
"""From the discipline's making to the first packet, ns: a multiple of all periods of updates."""

WAVES = "500:180 250:50 600:130 200:20 300:300 500:60"
"""Duration, ms, and load, % of the line's rate, of one phase after another."""


@dataclass(frozen=True)
class Setting:
    """A discipline of the kernel, ours, and the load.

    Attributes:
        name: Its name; the discipline's comes first.
        words: The discipline in the words of ``tc``.
        flows: The flows, each as of :func:`flow`.
        phases: Duration, ms, and load, % of the line's rate, of one phase after another.
        aqm: Our discipline; without it the setting is only for two kernels.
        buffer: Its buffer.
        params: Its parameters.
        link: Keys of our link beside its rate.
        above: The discipline above it, in the words of ``tc``; it has one class.
        classes: Marks of sockets, each with the class in which a filter puts it.
        drawn: Numbers that ours draws while it is made, but the kernel's does not.
        seed: Of the packets, and of what disciplines draw.
        byte: Time of a byte at a load of 100 %, ns.
    """

    name: str
    words: str
    flows: str
    phases: str = WAVES
    aqm: str = ""
    buffer: str = "1000p"
    params: dict[str, Any] = field(default_factory=dict)
    link: dict[str, Any] = field(default_factory=dict)
    above: str = f"prio bands 2 priomap {'0 ' * 16}"
    classes: dict[int, int] = field(default_factory=dict)
    drawn: int = 0
    seed: int = 1
    byte: int = BYTE

    @property
    def module(self) -> str:
        """The name of the discipline's source: ``sch_NAME``."""
        return f"sch_{self.words.split()[0]}"

    @property
    def is_line(self) -> bool:
        """Whether the discipline has a rate and shapes, so that the line takes no time."""
        return self.module.startswith("sch_cake") and "unlimited" not in self.words

    @property
    def rate(self) -> str:
        """The rate at which packets leave."""
        words = self.words.split()
        return words[words.index("bandwidth") + 1] if self.is_line else RATE


def splitmix(state: int) -> Iterator[int]:
    """Numbers of 64 bits from a seed."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def schedule(
    phases: str,
    flows: int,
    seed: int,
    byte: int = BYTE,
    lengths: Sequence[int] = LENGTHS,
    grid: int = GRID,
) -> list[tuple[int, int, int]]:
    """When each packet comes, ns, its flow and its length.

    In each phase the gaps are half to one and a half times what gives the load, on the grid. Each
    packet is of any flow.
    """
    draw = splitmix(seed)
    packets, at, end = [], 0, 0
    for phase in phases.split():
        ms, load = map(int, phase.split(":"))
        end += ms * 1_000_000
        while at < end:
            flow = next(draw) % flows
            length = lengths[next(draw) % len(lengths)]
            packets.append((at, flow, length))
            gap = length * byte * 100 // load
            at += max(1, (gap // 2 + next(draw) % gap) // grid) * grid
    return packets


KINDS = (
    "udp", "udp6", "udp-gso", "udp-timed", "udp-paced", "tcp", "tcp6", "tcp6in4", "tcp-gso",
    "tcp6-gso",
)  # fmt: skip


@dataclass(frozen=True)
class Flow:
    """A flow.

    Attributes:
        byte: The second byte of its IPv4 header, or the traffic class of IPv6: DSCP and ECN.
        host: The number of the host that sends.
        peer: The number of the host that receives.
        queue: The queue or class of the discipline that its socket asks for; 0 for none.
        mark: The mark of its socket, as of a firewall.
        kind: ``udp`` or ``tcp``, mostly acknowledgements, over IPv4, IPv6, or IPv6 in IPv4; with
            ``-gso`` as super-packets of several segments; ``udp-timed`` says when it may leave;
            ``udp-paced`` has a socket with a rate.
    """

    byte: int
    host: int = 0
    peer: int = 0
    queue: int = 0
    mark: int = 0
    kind: str = "udp"


_FLOW = re.compile(r"(\d+)(?:@(\d+))?(?:>(\d+))?(?:#(\d+))?(?:=(\d+))?(?:/([\w-]+))?")


def flow(text: str) -> Flow:
    """A flow from its text: ``BYTE@HOST>PEER#QUEUE=MARK/KIND``, all but the byte if need be."""
    found = _FLOW.fullmatch(text)
    assert found, text
    byte, host, peer, queue, mark = (int(number or 0) for number in found.groups()[:5])
    kind = found[6] or "udp"
    assert kind in KINDS
    return Flow(byte, host, peer, queue, mark, kind)

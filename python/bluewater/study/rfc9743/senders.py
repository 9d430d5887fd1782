"""The senders of the suite: the candidate and those beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bluewater.errors import InputError
from bluewater.own import LANGUAGE
from bluewater.study.scenarios import tcp

PACKET = 1500
"""Length of data packets, bytes."""

NEEDS_MARKS = ("dctcp", "prague")
"""Transports that are nothing without ECN."""

WITHOUT_MARKS = ("bbr1",)
"""Transports that ignore marks."""

DEFAULT = "bbr"
"""The candidate if none is named: the one that the IETF works on now."""

_WITHOUT_PRESET = {
    "handshake": True, "initial_window": 10, "delayed_ack": "40ms", "pacing": True,
    "count_packets": True,
}  # fmt: skip
"""What the preset ``modern`` sets, for transports that have no presets."""


@dataclass(frozen=True)
class Sender:
    """A congestion controller with a modern sender around it.

    Attributes:
        name: Its name in results.
        transport: The transport of scenario files.
        ecn: Whether its packets are ECN-capable.
        control: The controller of a QUIC stack; empty for the stack's default.
    """

    name: str
    transport: str
    ecn: bool = False
    control: str = ""

    @property
    def is_quic(self) -> bool:
        """Whether a QUIC stack has receiver, handshake and loss recovery of its own."""
        return self.transport in tcp.STACKS

    @property
    def answers_marks(self) -> bool:
        """Whether marks change what it sends, as far as the suite knows."""
        return self.transport not in WITHOUT_MARKS

    @property
    def needs_marks(self) -> bool:
        """Whether it cannot go without ECN."""
        return self.transport in NEEDS_MARKS

    def with_ecn(self) -> Sender:
        """The same with ECN."""
        return replace(self, ecn=True)

    def flows(
        self,
        name: str,
        flows: int = 1,
        start: tuple[float, float] = (0.0, 0.1),
        stop: float | None = None,
        ends: tuple[str, str] = ("S", "D"),
        **keys: Any,
    ) -> dict[str, Any]:
        """A group of its flows between two nodes; times in seconds, more keys by name."""
        made = {
            "name": name,
            "flows": flows,
            "transport": self.transport,
            "packet": f"{PACKET}B",
            "from": [ends[0]],
            "to": [ends[1]],
            "start": f"{time(start[0])}..{time(start[1])}",
            "ecn": self.ecn or self.needs_marks,
        }
        if self.is_quic:
            made |= {"control": self.control} if self.control else {}
        else:
            made |= tcp.preset("modern", self.transport) or _WITHOUT_PRESET
        if made["ecn"] and self.transport.startswith(tcp.OWN):
            made["accecn"] = True  # a class is told how many marks there were
        return made | ({} if stop is None else {"stop": time(stop)}) | keys


RENO = Sender("reno", "sack")
"""Reno with selective acknowledgements: presets are not for ``newreno``."""

CUBIC = Sender("cubic", "cubic")

INCUMBENTS = (RENO, CUBIC)


def candidate(name: str) -> Sender:
    """The candidate of this name: a TCP, a QUIC stack, or a class in Python as ``FILE.py:CLASS``.

    Raises:
        InputError: There is no such TCP and no such stack.
    """
    own = name if name.startswith(tcp.OWN) else f"{LANGUAGE}{name}" if ".py" in name else ""
    if own:
        file, _, cls = own.partition(":")[2].rpartition(":")
        if own.startswith(LANGUAGE) and (not file or not cls or cls.endswith(".py")):
            raise InputError(
                "the file is given, but no class",
                key="--candidate",
                value=name,
                allowed="FILE.py:CLASS",
            )
        return Sender(cls or name, own)
    try:
        keys = tcp.bulk(name, "--candidate")
    except InputError as error:
        known = ", ".join((*tcp.TCPS, *tcp.STACKS))
        raise InputError(
            f"no congestion controller '{name}'",
            key="--candidate",
            value=name,
            allowed=f"{known}, a stack with its controller: quinn:newreno, or your own class: "
            "python:FILE:CLASS",
            hint=error.hint,
        ) from None
    return Sender(name, **keys)


def time(seconds: float) -> str:
    """A time of a scenario file."""
    return f"{round(seconds * 1e9)}ns"


def rate(bps: float) -> str:
    """A rate of a scenario file."""
    return f"{round(bps)}bit"

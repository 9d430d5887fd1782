"""The settings that a kernel's queue disciplines are compared in, and the packets of each.

Only the standard library is imported here: the kernel's first process reads this file, too.
"""

from __future__ import annotations

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
LONG = "500:120 750:180 250:50 750:130 150:20 500:300 350:60"
MILD = "500:110 250:60 750:115 250:30 750:125 250:90"
CALM = "700:150 300:100 2500:10 1500:150 300:120"


@dataclass(frozen=True)
class Setting:
    """A discipline of the kernel, ours, and the load.

    Attributes:
        name: Its name; the discipline's comes first.
        words: The discipline in the words of ``tc``.
        flows: Of each flow the second byte of its IP header (DSCP and ECN), and ``@`` its host.
        phases: Duration, ms, and load, % of the line's rate, of one phase after another.
        aqm: Our discipline; without it the setting is only for two kernels.
        buffer: Its buffer.
        params: Its parameters.
        drawn: Numbers that ours draws while it is made, but the kernel's does not.
        seed: Of the packets, and of what disciplines draw.
    """

    name: str
    words: str
    flows: str
    phases: str = WAVES
    aqm: str = ""
    buffer: str = "1000p"
    params: dict[str, Any] = field(default_factory=dict)
    drawn: int = 0
    seed: int = 1

    @property
    def module(self) -> str:
        """The name of the discipline's source: ``sch_NAME``."""
        return f"sch_{self.words.split()[0]}"


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


def packets(setting: Setting) -> list[tuple[int, int, int]]:
    """The packets of a setting: when each comes, ns, its flow and length."""
    flows = len(setting.flows.split())
    if setting.module != "sch_cake":
        return schedule(setting.phases, flows, setting.seed)
    # Its own clock does not say which is first, a packet that comes or one that leaves: all
    # leave at the grid's distance from an arrival, and no two arrivals are at the same place in it.
    found = schedule(setting.phases, flows, setting.seed, lengths=(256, 512, 1024, 1280, 1280))
    shifts = (n * 4051 % 8192 * 16 for n in range(len(found)))
    return [(at + by, flow, size) for by, (at, flow, size) in zip(shifts, found, strict=True)]


def fields(flow: str) -> tuple[int, int]:
    """Of a flow the second byte of its IP header, and its host."""
    byte, _, host = flow.partition("@")
    return int(byte), int(host or 0)


def _codel(aqm: str, *, ecn: bool, **more: Any) -> dict[str, Any]:
    """What ours needs to be CoDel of the kernel: its times are whole ticks of 1024 ns."""
    params = {"target": "4999168ns", "interval": "99999744ns", "root": "newton", "preset": "linux"}
    return {"aqm": aqm, "params": {**params, "ecn": ecn, **more}, "drawn": 2 * (aqm == "fq-codel")}


def _pie(aqm: str, *, ecn: bool = False, **more: Any) -> dict[str, Any]:
    """PIE's timer has ticks of 10 ms and comes one late: 15 ms are 30."""
    params = {"preset": "linux", "ecn": ecn, "t_update": "30ms", **more}
    return {"aqm": aqm, "params": params, "drawn": 2 * (aqm == "fq-pie")}


def _cake(**more: Any) -> dict[str, Any]:
    params = {"diffserv": "besteffort", "isolation": "flows", **more}
    if params["isolation"] != "flowblind":
        params["rounds"] = "each"
    return {"aqm": "cake", "buffer": "10000p", "params": params}


def _dualpi2(buffer: str = "10000p", **more: Any) -> dict[str, Any]:
    return {"aqm": "dualpi2", "buffer": buffer, "params": {"preset": "linux", **more}}


_RED = "limit 150000 min 15000 max 45000 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"


def _all() -> Iterator[Setting]:
    s = Setting
    yield s("codel", "codel limit 1000 noecn", "0", **_codel("codel", ecn=False))
    yield s("codel: ECN", "codel limit 1000 ecn", "0 2 1", **_codel("codel", ecn=True))
    yield s(
        "codel: a full buffer",
        "codel limit 60 ecn",
        "0 2",
        buffer="60p",
        **_codel("codel", ecn=True),
    )
    yield s(
        "codel: ce_threshold",
        "codel limit 1000 ecn ce_threshold 20ms",
        "0 2",
        **_codel("codel", ecn=True, ce_threshold="19999744ns"),
    )
    yield s(
        "codel: target 20 ms, interval 50 ms",
        "codel limit 1000 ecn target 20ms interval 50ms",
        "0 2",
        **_codel("codel", ecn=True, target="19999744ns", interval="49999872ns"),
    )
    fq = "fq_codel limit"
    yield s("fq_codel", f"{fq} 10240", "0 2 1 0", buffer="10240p", **_codel("fq-codel", ecn=True))
    yield s(
        "fq_codel: quantum 300",
        f"{fq} 10240 quantum 300 noecn",
        "0 0 0",
        buffer="10240p",
        **_codel("fq-codel", ecn=False, quantum=300),
    )
    yield s(
        "fq_codel: a full buffer", f"{fq} 60", "0 2 0", buffer="60p", **_codel("fq-codel", ecn=True)
    )
    yield s(
        "fq_codel: ce_threshold",
        f"{fq} 10240 ce_threshold 20ms",
        "0 2 2",
        buffer="10240p",
        **_codel("fq-codel", ecn=True, ce_threshold="19999744ns"),
    )
    yield s(
        "fq_codel: sparse flows",
        f"{fq} 10240",
        "0 0 2 2 0 2 1 0",
        MILD,
        buffer="10240p",
        **_codel("fq-codel", ecn=True),
    )

    cake = f"cake bandwidth {RATE} raw memlimit 64mb"
    yield s("cake", f"{cake} besteffort flows", "0 2 1 0", **_cake())
    yield s(
        "cake: diffserv3",
        f"{cake} diffserv3 flows",
        "0 2 32 186 136",
        **_cake(diffserv="diffserv3"),
    )
    yield s(
        "cake: diffserv4",
        f"{cake} diffserv4 flows",
        "0 2 32 186 136",
        **_cake(diffserv="diffserv4"),
    )
    yield s("cake: RTT 20 ms", f"{cake} besteffort flows rtt 20ms", "0 0", **_cake(rtt="20ms"))
    yield s(
        "cake: one queue", f"{cake} besteffort flowblind", "0 2 1 0", **_cake(isolation="flowblind")
    )
    yield s("cake: hosts", f"{cake} besteffort triple-isolate", "0@0 2@1 0@1 2@1 0@2")
    yield s("cake: dual-srchost", f"{cake} besteffort dual-srchost", "0@0 2@1 0@1 2@1")
    yield s("cake: ingress", f"{cake} besteffort flows ingress", "0 2 0", **_cake(ingress=True))

    yield s("pie", "pie limit 1000", "0 2", LONG, **_pie("pie"))
    yield s("pie: ECN", "pie limit 1000 ecn", "0 2", LONG, **_pie("pie", ecn=True))
    yield s(
        "pie: a full buffer", "pie limit 60 ecn", "0 2", LONG, buffer="60p", **_pie("pie", ecn=True)
    )
    yield s("pie: bytes", "pie limit 1000 bytemode", "0", LONG, **_pie("pie", mode="bytes"))
    yield s("pie: after a calm", "pie limit 1000 ecn", "0 2", CALM, **_pie("pie", ecn=True))
    yield s("pie: target 5 ms", "pie limit 1000 target 5ms", "0", MILD, **_pie("pie", target="5ms"))

    fq = "fq_pie limit"
    of_10240: dict[str, Any] = {"phases": LONG, "buffer": "10240p"}
    yield s("fq_pie", f"{fq} 10240", "0 0 0", **of_10240, **_pie("fq-pie"))
    yield s("fq_pie: ECN", f"{fq} 10240 ecn", "0 2 1", **of_10240, **_pie("fq-pie", ecn=True))
    yield s(
        "fq_pie: a full buffer",
        f"{fq} 60 ecn",
        "0 2 1",
        LONG,
        buffer="60p",
        **_pie("fq-pie", ecn=True),
    )
    yield s(
        "fq_pie: quantum 300",
        f"{fq} 10240 quantum 300",
        "0 2 1 0",
        **of_10240,
        **_pie("fq-pie", quantum=300),
    )
    yield s(
        "fq_pie: after a calm",
        f"{fq} 10240 ecn",
        "0 2 1",
        CALM,
        buffer="10240p",
        **_pie("fq-pie", ecn=True),
    )

    # Our RED has an average of real numbers: it differs where that is within a byte of a threshold.
    for words in ("", " ecn", " ecn harddrop", " ecn adaptive"):
        yield s(f"red:{words}" if words else "red", f"red {_RED}{words}", "0 2", LONG)

    yield s("choke", f"choke {_CHOKE}", "0 2", LONG)
    yield s("choke: ECN", f"choke {_CHOKE} ecn", "0 2 2 0", LONG)
    # Both draw four numbers for their hashes.
    sfb: dict[str, Any] = {"aqm": "sfb", "params": {"preset": "linux"}}
    yield s("sfb", "sfb", "0", LONG, **sfb)
    # The kernel draws 16 bits to mark: one of 12 762 packets is marked here but not there.
    yield s("sfb: ECN", "sfb", "2", LONG)
    yield s("sfb: flows", "sfb target 30 max 40 increment 0.01", "0 2 2 1 0", MILD)
    yield s("sfq", "sfq", "0 2 1 0")
    yield s("sfq: depth 20, head drop", "sfq depth 20 headdrop", "0 0 0", LONG)
    yield s("sfq: quantum 600", "sfq quantum 600 limit 60 divisor 64", "0 0 0 0", LONG)
    yield s(
        "sfq: RED",
        "sfq limit 500 depth 400 redflowlimit 100000 min 8000 max 60000 probability 0.2 ecn",
        "0 2 2",
        LONG,
    )

    for name, words, flows, phases, ours in (
        ("classic", "", "0 2", LONG, _dualpi2()),
        ("L4S", "", "1", LONG, _dualpi2()),
        ("both", "", "0 2 1", LONG, _dualpi2()),
        ("mostly L4S", "", "0 1 1 3", LONG, _dualpi2()),
        ("below overload", "", "0 2 1 1", MILD, _dualpi2()),
        ("coupling 4", "coupling_factor 4", "0 2 1", MILD, _dualpi2(k=4)),
        ("step 5 ms", "step_thresh 5ms", "2 1", MILD, _dualpi2(min_th="5ms")),
        ("C gets 40 %", "classic_protection 40", "0 2 1", LONG, _dualpi2(classic_share=0.4)),
        ("any ECT", "any_ect", "0 2 1", LONG, _dualpi2(low_latency="any-ect")),
        # Ours differs, why is not known.
        ("target 5 ms, tupdate 8 ms", "target 5ms tupdate 8ms", "0 2 1", LONG, {}),
        ("overflow", "limit 100 overflow", "0 2 1", LONG, _dualpi2("100p", overload="overflow")),
        ("a full buffer", "limit 40", "0 2 1", LONG, _dualpi2("40p")),
        ("at arrival", "drop_enqueue", "0 2 1", LONG, _dualpi2(decided="arrival")),
    ):  # fmt: skip
        yield s(f"dualpi2: {name}", f"dualpi2 {words}".strip(), flows, phases, **ours)

    yield s("tbf", "tbf rate 8mbit burst 3000 limit 60000", "0 0")


_CHOKE = "limit 150 min 15 max 45 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"
ALL = tuple(_all())

"""The kernel's first process: puts a discipline before the line and records what leaves it.

The packets of a setting come to the nanosecond when its schedule says. The result has for each
packet, or each segment of it, the time from the first one to its departure, ns, and the byte of its
IP header with DSCP and ECN; and the discipline's statistics at some times.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bluewater.kernel import uml
    from bluewater.kernel.frames import frames, held, left, offload
    from bluewater.kernel.settings import BYTE, OFFSET, START, Setting, flow
else:
    # The package itself needs more than the standard library.
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import uml
    from frames import frames, held, left, offload
    from settings import BYTE, OFFSET, START, Setting, flow

TICK = 10_000_000
"""A tick of the kernel's timers, ns."""
CODEL = 1024
"""A tick of CoDel, ns."""
QUEUE = 1 << 56
"""The stream of a scenario's seed from which the queue of its first link draws."""
QDISC = 0x100000
"""The discipline's handle, 10:."""
SO_TXTIME = 61
SO_MAX_PACING_RATE = 47
CLOCKS = {"sch_fq": (14, 15, 19)}
"""Words of a discipline's own statistics that tell of clocks, not of packets."""
PACED = 375_000
"""The rate of the socket of flows that have one, bytes a second."""
LOOKS = 8
"""Into so many parts the looks at statistics divide the packets."""


def line(setting: Setting) -> None:
    """The interface; nobody is behind it."""
    if setting.module == "sch_cake_mq":
        # Packets that come to "in" go on to the interface with this name.
        uml.batch("ip", "link set line name one\nlink set lines name line")
    uml.batch("ip", "link set line up\nlink set in up")
    own = 0 if setting.is_line else BYTE
    Path("/sys/module/sch_api/parameters/line_byte").write_text(str(own))


def queue(setting: Setting) -> int:
    """Makes the discipline, below one that hides an empty queue's shortcut; returns the time."""
    # Until the first tick after boot its timers are as coarse as the tick.
    time.sleep(3 * TICK / 1e9)
    name, *words = setting.words.split()
    if name != "cake_mq":
        uml.batch("tc", f"qdisc add dev line root handle 1: {setting.above}")
    uml.draws(setting.seed, QUEUE, setting.drawn)
    uml.whole_quanta()
    made = time.monotonic_ns()
    if name == "cake_mq":
        uml.qdisc("line", uml.ROOT, QDISC, name, list(uml.cake(words)))
    elif name == "dualpi2":
        uml.qdisc("line", 0x10001, QDISC, name, list(uml.dualpi2(words)))
    else:
        uml.batch("tc", f"qdisc add dev line parent 1:1 handle 10: {setting.words}")
    for mark, number in setting.classes.items():
        rule = f"protocol all prio 1 handle {mark} fw classid 10:{number:x}"
        uml.batch("tc", f"filter add dev line parent 10: {rule}")
    return made


def begin(setting: Setting, made: int) -> int:
    """When the first packet comes: at the same place between two updates as ours."""
    if setting.module.endswith("pie"):
        # The first update comes 50 ticks after the making, and one more since it never comes early.
        made = (made // TICK + 51) * TICK
    if setting.module.endswith("codel"):
        made = made // CODEL * CODEL
    return made + START + OFFSET


def play(setting: Setting, first: int) -> list[Any]:
    """Sends the packets, at their times; returns statistics, with the number of packets sent."""
    plain, offloaded, timed, paced = (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in range(4)
    )
    for each in (plain, offloaded, timed):
        each.bind(("in", 0))
    offloaded.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
    timed.setsockopt(socket.SOL_SOCKET, SO_TXTIME, struct.pack("=iI", time.CLOCK_MONOTONIC, 0))
    paced.bind(("line", 0))
    paced.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, PACED)
    paced.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
    flows = [flow(text) for text in setting.flows.split()]
    every = frames(setting)
    looks = {len(every) * part // LOOKS for part in range(1, LOOKS)}
    found = []
    now = flow("0")
    for n, (at, which, frame) in enumerate(every):
        uml.wait_until(first + at)
        of = flows[which]
        if (of.queue, of.mark) != (now.queue, now.mark):
            for each in (plain, paced):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, QDISC | of.queue)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, of.mark)
            now = of
        if of.kind.endswith("gso"):
            offloaded.send(offload(of, frame) + frame)
        elif of.kind == "udp-timed":
            may_leave = struct.pack("=Q", first + at + held(n))
            timed.sendmsg([frame], [(socket.SOL_SOCKET, SO_TXTIME, may_leave)])
        elif of.kind == "udp-paced":
            paced.send(frame)
        else:
            plain.send(frame)
        if n in looks:
            found.append([n, counts(setting)])
    time.sleep(4)
    return [*found, [len(every), counts(setting)]]


def counts(setting: Setting) -> dict[str, list[int]]:
    """The discipline's statistics."""
    found = uml.statistics("line", QDISC)
    for word in CLOCKS.get(setting.module, ()):
        found["own"][word] = 0
    return found


def inside(told: dict[str, Any]) -> dict[str, Any]:
    """What became of each packet of a setting, and statistics."""
    setting = Setting(**told["of"])
    uml.prepare([])
    line(setting)
    tap = uml.watch("line")
    first = begin(setting, queue(setting))
    wall = time.time_ns() - time.monotonic_ns()
    statistics = play(setting, first)
    found = uml.segments(tap, left)
    rows = [
        [(at - wall - first, byte) for at, byte in found.get(n, [])]
        for n in range(statistics[-1][0])
    ]
    return {"packets": rows, "statistics": statistics}


if __name__ == "__main__":
    uml.main(inside)

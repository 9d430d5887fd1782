"""The kernel's first process: puts a discipline before the line and records what leaves it.

The packets of a setting come to the nanosecond when its schedule says. The result has for each
packet the time from the first one to its departure, ns, and the second byte of its IP header, or
nothing.
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
    from bluewater.kernel.settings import BYTE, OFFSET, START, Setting, fields, packets
else:
    # The package itself needs more than the standard library.
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import uml
    from settings import BYTE, OFFSET, START, Setting, fields, packets

TICK = 10_000_000
"""A tick of the kernel's timers, ns."""
CODEL = 1024
"""A tick of CoDel, ns."""
QUEUE = 1 << 56
"""The stream of a scenario's seed from which the queue of its first link draws."""


def line(setting: Setting) -> None:
    """The interface, with addresses; nobody is behind it."""
    hosts = {fields(flow)[1] for flow in setting.flows.split()}
    uml.batch(
        "ip",
        "link set line up\n"
        + "".join(f"addr add 10.0.1.{2 + host}/24 dev line\n" for host in hosts)
        + "neigh add 10.0.1.1 lladdr 02:00:00:00:00:01 dev line nud permanent",
    )
    # CAKE is the line by itself.
    own = 0 if setting.module == "sch_cake" else BYTE
    Path("/sys/module/sch_api/parameters/line_byte").write_text(str(own))


def queue(setting: Setting) -> int:
    """Makes the discipline, below one that hides an empty queue's shortcut; returns the time."""
    uml.batch("tc", f"qdisc add dev line root handle 1: prio bands 2 priomap {'0 ' * 16}")
    uml.draws(setting.seed, QUEUE, setting.drawn)
    uml.whole_quanta()
    made = time.monotonic_ns()
    name, *words = setting.words.split()
    if name == "dualpi2":
        uml.qdisc("line", 0x10001, 0x100000, name, list(uml.dualpi2(words)))
    else:
        uml.batch("tc", f"qdisc add dev line parent 1:1 handle 10: {setting.words}")
    return made


def begin(setting: Setting, made: int) -> int:
    """When the first packet comes: at the same place between two updates as ours."""
    if setting.module.endswith("pie"):
        # The first update comes 50 ticks after the making, and one more since it never comes early.
        made = (made // TICK + 51) * TICK
    if setting.module.endswith("codel"):
        made = made // CODEL * CODEL
    return made + START + OFFSET


def play(setting: Setting, first: int) -> None:
    """Sends the packets, at their times."""
    flows = []
    for n, flow in enumerate(setting.flows.split()):
        byte, host = fields(flow)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, byte)
        udp.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
        udp.bind((f"10.0.1.{2 + host}", 6000 + n))
        flows.append(udp)
    for n, (at, which, length) in enumerate(packets(setting)):
        data = struct.pack("!I", n).ljust(length - 42, b"\0")
        uml.wait_until(first + at)
        flows[which].sendto(data, ("10.0.1.1", 5000))


def inside(told: dict[str, Any]) -> list[Any]:
    """What became of each packet of a setting."""
    setting = Setting(**told["of"])
    uml.prepare([])
    line(setting)
    tap = uml.watch("line")
    first = begin(setting, queue(setting))
    wall = time.time_ns() - time.monotonic_ns()
    play(setting, first)
    time.sleep(4)
    found = uml.captured(tap)
    return [
        found[n] and (found[n][0] - wall - first, found[n][1]) if n in found else None
        for n in range(len(packets(setting)))
    ]


if __name__ == "__main__":
    uml.main(inside)

"""The first process of a kernel in user mode: sends a probe through a queue discipline.

`scripts/identify.py` boots the kernel. Only the standard library and ``uml`` are imported here. The
setting has the discipline in the words of ``tc``, the line's time per byte, ns, and for each packet
when it is sent, ns, its bytes, its ECN bits and its flow.
"""

import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python/bluewater/kernel"))
import uml

ETHERNET = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0"
START = 1_000_000_000
"""From the discipline's making to the first packet, ns."""


def frame(number: int, size: int, ecn: int, flow: int) -> bytes:
    """A datagram with its number, in as many bytes as are on the wire."""
    ends = struct.pack("!BBHBBBB", 10, 0, flow, 198, 18, 0, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, ecn, size - 14, 0, 0x4000, 64, 17, 0) + ends
    udp = struct.pack("!HHHHI", 1024, 9, size - 34, 0, number)
    return (ETHERNET + ip + udp).ljust(size, b"\0")


def inside(setting):
    """When each packet left the discipline, ns since the first was sent, and its ECN bits."""
    uml.prepare([])
    uml.batch("ip", "link set line up\nlink set in up")
    Path("/sys/module/sch_api/parameters/line_byte").write_text(str(setting["byte"]))
    time.sleep(0.03)  # until the first tick after boot timers are coarse
    uml.draws(setting["seed"])
    name, *words = setting["words"].split()
    if name == "dualpi2":
        uml.qdisc("line", 0xFFFFFFFF, 0x100000, name, list(uml.dualpi2(words)))
    else:
        uml.batch("tc", f"qdisc add dev line root handle 10: {setting['words']}")
    tap = uml.watch("line")
    first = time.monotonic_ns() + START
    wall = time.time_ns() - time.monotonic_ns()
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind(("in", 0))
    left = {}
    for number, (at, size, ecn, flow) in enumerate(setting["packets"]):
        uml.wait_until(first + at)
        sender.send(frame(number, size, ecn, flow))
        if number % 1000 == 0:
            left |= uml.captured(tap)
    time.sleep(20)
    left |= uml.captured(tap)
    return {number: (at - wall - first, byte & 3) for number, (at, byte) in left.items()}


if __name__ == "__main__":
    uml.main(inside)

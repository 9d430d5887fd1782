#!/usr/bin/env python3
"""Homes: what `advise` promises, beside real packets through the gateway.

For each home `advise` names a discipline of the box `bluewater`, what its users get, and a line for
the gateway. This line runs between two network namespaces, with the delay of the home's path beside
it. The kernel's CUBIC fills one direction at a time. Calls and games are datagrams beside it, whose
arrival the receiver's kernel stamps. Prints a Markdown table. Needs root and iproute2.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bluewater import Advice, Link

HOMES: dict[str, dict[str, Any]] = {
    "ADSL": {"down": "8mbit", "up": "800kbit", "framing": "pppoe-llcsnap", "rtt": "40ms"},
    "VDSL": {"down": "50mbit", "up": "10mbit", "framing": "pppoe-ptm", "rtt": "20ms"},
    "slow cable": {"down": "30mbit", "up": "2mbit", "framing": "docsis", "rtt": "30ms"},
    "LTE": {"down": "30mbit", "up": "5mbit", "rtt": "50ms"},
    "LTE at the edge": {"down": "3mbit", "up": "500kbit", "rtt": "80ms"},
    "leased line": {"down": "2mbit", "up": "2mbit", "rtt": "20ms"},
    "village radio": {"down": "6mbit", "up": "1500kbit", "rtt": "30ms"},
    "satellite": {"down": "25mbit", "up": "3mbit", "rtt": "600ms"},
}
"""Lines below 100 Mb/s; each has four bulk flows, a call and a game."""
USERS = {"bulk": 4, "calls": 1, "games": 1}

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 5004
_HEAD = struct.Struct("!HIQ")
"""Stream, number, and time of a datagram as it is sent, in ns since 1970."""
_UDP = 28
"""Bytes of the headers of IP and UDP."""
_ETHERNET = 14
"""Bytes of a frame's header, which the gateway counts between two interfaces."""
_CALL, _GAME = (0.02, 200), (1 / 60, 136)
"""The gap in s and the length of an IP packet in bytes, as `advise` simulates them."""
_STAMPED = 35
"""SO_TIMESTAMPNS: the kernel's time of a datagram's arrival."""
_QUIET_S = 2.0
"""Behind the last datagram the receiver waits for so long."""
_CALM_S = 1.0
"""Before the bulk flows begin calls and games are alone; their least delay is the path's."""


@dataclass(frozen=True)
class Found:
    """What was measured in one direction, as :class:`bluewater.study.advice.advise.Measured`.

    Attributes:
        throughput: Of the bulk flows at the link, bit/s.
        delay: Not exceeded by 99 % of the calls' or games' packets beyond the path's own, in s.
        loss: Of calls and games, 0 to 1.
        load: The machine's, over the last minute.
    """

    throughput: float
    delay: float
    loss: float
    load: float


def measure(line: str, way: str, link: Link, gateway: str, warmup: float, duration: float) -> Found:
    """Types a printed line between two namespaces and lets the users of one direction loose."""
    half = f"{float(link.rtt[0].removesuffix('ms')) / 2:g}ms"
    users = [str(each) for each in (link.bulk, link.calls, link.games)]
    with tempfile.TemporaryDirectory() as folder, cables() as (near, box, far):
        log = Path(folder, "log")
        options = [*shlex.split(line)[2:], "--delay", half, "--log", str(log), "--quiet"]
        with inside(box, gateway, "run", *options) as forwards:
            me = [sys.executable, str(Path(__file__).resolve()), "--end"]
            here, there, to = (near, far, FAR) if way == "up" else (far, near, NEAR)
            what = [gateway, folder, f"{warmup + duration}", *users, to]
            with (
                inside(there, *me, "receive", gateway, folder) as receiver,
                inside(here, *me, "send", *what) as sender,
            ):
                if sender.wait() or receiver.wait():
                    sys.exit("no measurement")
            forwards.send_signal(signal.SIGINT)
        sent = json.loads(Path(folder, "sent").read_text())
        got = json.loads(Path(folder, "received").read_text())
        rows = [json.loads(each) for each in log.read_text().splitlines()]
    begin, end = sent["from"] + warmup, sent["to"]
    streams = _streams(sent["streams"], got, begin, end)
    seconds = [each for each in rows if each.get("queue") == way and _within(each, begin, end)]
    live = sum(each["bytes"] for each in streams) / (end - begin)
    whole = sum(each["departures_bytes"] for each in seconds) / len(seconds)
    return Found(
        (whole - live) * 8,
        max(each["late"] for each in streams),
        sum(each["lost"] for each in streams) / sum(each["sent"] for each in streams),
        os.getloadavg()[0],
    )


@contextmanager
def cables() -> Iterator[list[str]]:
    """A host near, a box and a host far, with the box's interfaces as `advise` calls them."""
    names = [f"bw{os.getpid()}{end}" for end in ("near", "box", "far")]
    near, box, far = names
    try:
        for name in names:
            _run(f"ip netns add {name}")
        for port, end, address in (("eth1", near, NEAR), ("eth0", far, FAR)):
            _run(f"ip -n {box} link add {port} type veth peer name eth0 netns {end}")
            _run(f"ip -n {box} link set {port} up")
            _run(f"ip -n {end} address add {address}/24 dev eth0")
            _run(f"ip -n {end} link set eth0 up")
            _run(f"ip netns exec {end} sysctl -qw net.ipv4.tcp_ecn=1")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


def _run(line: str) -> None:
    subprocess.run(line.split(), check=True)


def inside(space: str, *command: str) -> subprocess.Popen[bytes]:
    """Starts a program in a namespace."""
    return subprocess.Popen(["ip", "netns", "exec", space, *command])


def _within(row: dict[str, Any], begin: float, end: float) -> bool:
    """Whether a second of the log lies within a window."""
    at = datetime.fromisoformat(row["at"]).timestamp()
    return begin + 1 <= at <= end


def _streams(
    sent: list[list[int]], got: list[list[int]], begin: float, end: float
) -> list[dict[str, float]]:
    """What became of each stream's datagrams that were sent in a window."""
    arrived = {(stream, number): at for stream, number, _, at in got}
    least = min(at - began for _, _, began, at in got) / 1e9
    found = []
    for stream in sorted({each[0] for each in sent}):
        mine = [each for each in sent if each[0] == stream and begin <= each[2] / 1e9 < end]
        there = [(each, arrived.get((stream, each[1]))) for each in mine]
        waits = sorted((at - each[2]) / 1e9 - least for each, at in there if at is not None)
        found.append(
            {
                "sent": len(mine),
                "lost": len(mine) - len(waits),
                "late": waits[int(0.99 * len(waits))],
                "bytes": sum(each[3] + _ETHERNET for each, at in there if at is not None),
            }
        )
    return found


def send(
    gateway: str, folder: str, seconds: str, bulk: str, calls: str, games: str, to: str
) -> None:
    """Sends calls and games, and behind a calm second the bulk flows beside them."""
    streams = [_CALL] * int(calls) + [_GAME] * int(games)
    numbers, sent = [0] * len(streams), []
    draw = random.Random(1)
    links = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in streams]
    begin = time.time()
    due = [(begin + draw.random() * gap, k) for k, (gap, _) in enumerate(streams)]
    heapq.heapify(due)
    flows, began = None, begin + _CALM_S
    flow = [gateway, "bulk", to, "--flows", bulk, "--time", f"{seconds}s", "--congestion", "cubic"]
    while due[0][0] < began + float(seconds):
        at, k = heapq.heappop(due)
        time.sleep(max(0.0, at - time.time()))
        if flows is None and at >= began:
            flows = subprocess.Popen(flow, stdout=subprocess.DEVNULL)
        gap, length = streams[k]
        now = time.time_ns()
        links[k].sendto(_HEAD.pack(k, numbers[k], now).ljust(length - _UDP, b"\0"), (to, PORT))
        sent.append([k, numbers[k], now, length])
        numbers[k] += 1
        jitter = draw.uniform(0.8, 1.2) if streams[k] is _GAME else 1
        heapq.heappush(due, (at + gap * jitter, k))
    Path(folder, "sent").write_text(
        json.dumps({"from": began, "to": began + float(seconds), "streams": sent})
    )
    if flows:
        flows.wait()
    while not Path(folder, "received").exists():
        time.sleep(0.1)


def receive(gateway: str, folder: str) -> None:
    """Notes when each datagram arrived, and takes what the bulk flows send."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    link.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
    link.bind(("", PORT))
    got = []
    with subprocess.Popen([gateway, "sink"], stdout=subprocess.DEVNULL) as sink:
        link.settimeout(30)
        while True:
            try:
                data, told, _, _ = link.recvmsg(2048, 64)
            except TimeoutError:
                break
            link.settimeout(_QUIET_S)
            seconds, ns = struct.unpack("qq", told[0][2])
            stream, number, began = _HEAD.unpack(data[: _HEAD.size])
            got.append([stream, number, began, seconds * 10**9 + ns])
        sink.terminate()
    whole = Path(folder, "received.part")
    whole.write_text(json.dumps(got))
    whole.rename(Path(folder, "received"))
    while not Path(folder, "sent").exists():
        time.sleep(0.1)
    time.sleep(1)  # the senders end


def advised(home: dict[str, Any], out: Path, reps: int = 5) -> tuple[Link, Advice, str]:
    """What `advise` says of a home, and the line that it prints."""
    from bluewater import Link, advise  # noqa: PLC0415 - the ends are quicker without it
    from bluewater.study.advice.boxes import commands  # noqa: PLC0415

    link = Link(**USERS | home)
    advice = advise(link, "bluewater", reps=reps, out=out, progress=False)
    return link, advice, commands(advice.ranked[0].name, link, "bluewater")[-1]


def row(home: str, way: str, advice: Advice, found: Found) -> str:
    """A row of the table: promised and measured."""
    best = advice.ways[way][0]
    promised = best.means
    cells = [
        home, way, best.name,
        f"{promised.throughput / 1e6:.3g}", f"{found.throughput / 1e6:.3g}",
        f"{(found.throughput / promised.throughput - 1) * 100:+.1f} %",
        f"{promised.delay * 1e3:.3g}", f"{found.delay * 1e3:.3g}",
        f"{promised.loss * 100:.2g} %", f"{found.loss * 100:.2g} %", f"{found.load:.1f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measures and prints."""
    if sys.argv[1:2] == ["--end"]:
        {"send": send, "receive": receive}[sys.argv[2]](*sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway", help="the program")
    parser.add_argument("homes", nargs="*", default=[*HOMES], help=", ".join(HOMES))
    parser.add_argument("--warmup", type=float, default=10, help="s")
    parser.add_argument("--duration", type=float, default=20, help="s behind it")
    parser.add_argument("--out", type=Path, default=Path("results"), help="where runs are kept")
    options = parser.parse_args()
    for home in options.homes:
        link, advice, line = advised(HOMES[home], options.out)
        print(f"# {home}: {line}", file=sys.stderr)
        for way in link.ways:
            found = measure(line, way, link, options.gateway, options.warmup, options.duration)
            print(row(home, way, advice, found), flush=True)


if __name__ == "__main__":
    main()

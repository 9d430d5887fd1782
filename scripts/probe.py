"""Measures ``bluewater probe`` on real packets: ``python scripts/probe.py GATEWAY [NAME...]``.

For each setting, a near and a far host are network namespaces, and the box between them has the
queue: the gateway, or this kernel's ``tc``. A probe crosses it, and its recording is identified.
Adds a row for each to docs/measured/probe.csv. Needs root and iproute2. Recordings stay in
``--folder``; ``--again`` identifies those.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from homes import FAR, cables, inside

import bluewater

if TYPE_CHECKING:
    from collections.abc import Iterator

OUT = Path(__file__).parents[1] / "docs/measured/probe.csv"
RATE = "5mbit"
_CODEL = "--aqm {} --buffer 1000p --param preset=linux"
GATEWAY = {
    "droptail": "--aqm droptail --buffer 100p",
    "drop-front": "--aqm drop-front --buffer 100p",
    "red": "--aqm red --buffer 120kB --param preset=linux --param min_th=15kB --param max_th=45kB",
    "ared": "--aqm ared --buffer 1000p --param target=20ms",
    "blue": "--aqm blue --buffer 100p",
    "codel": f"{_CODEL.format('codel')}",
    "cobalt": "--aqm cobalt --buffer 1000p",
    "pie": f"{_CODEL.format('pie')}",
    "choke": f"{_CODEL.format('choke')} --param min_th=15p --param max_th=45p",
    "sfb": f"{_CODEL.format('sfb')}",
    "dualpi2": f"{_CODEL.format('dualpi2')}",
    "sfq": "--aqm sfq --buffer 127p --param preset=linux",
    "drr": "--aqm drr --buffer 100p",
    "fq-codel": f"{_CODEL.format('fq-codel')}",
    "fq-pie": f"{_CODEL.format('fq-pie')}",
    "cake": "--aqm cake --buffer 1000p",
    "codel, jitter": f"{_CODEL.format('codel')} --jitter 2ms",
    "codel, jitter 10 ms": f"{_CODEL.format('codel')} --jitter 10ms",
    "pie, 1 Mb/s": f"{_CODEL.format('pie')} --rate 1mbit",
    "fq-codel, 20 Mb/s": f"{_CODEL.format('fq-codel')} --rate 20mbit",
    "codel, 50 Mb/s": f"{_CODEL.format('codel')} --rate 50mbit",
}
"""Options of the gateway, by the discipline."""
FLOWS = {"1 TCP flow": 1, "2 TCP flows": 2}
"""How many bulk flows of this kernel's TCP run beside the probe, by the end of the name."""
BESIDE = [
    f"{name}, {flows}"
    for name in ("droptail", "codel", "pie", "dualpi2", "fq-codel", "cake")
    for flows in FLOWS
]
GATEWAY |= {name: GATEWAY[name.partition(",")[0]] for name in BESIDE}
_SINK = """
import socket, threading
def read(link):
    while link.recv(1 << 16): pass
server = socket.create_server(("", 5206))
while True: threading.Thread(target=read, args=server.accept()[:1], daemon=True).start()
"""
_SOURCE = """
import socket, sys
link = socket.create_connection((sys.argv[1], 5206))
while True: link.send(bytes(1 << 16))
"""
KERNEL = {
    "pfifo": "tbf rate 5mbit burst 5kb limit 1mb / pfifo limit 100",
    "bfifo": "tbf rate 5mbit burst 5kb limit 1mb / bfifo limit 100000",
    "pfifo_head_drop": "tbf rate 5mbit burst 5kb limit 1mb / pfifo_head_drop limit 100",
    "bfifo, bursts of 32 kB": "tbf rate 5mbit burst 32kb limit 100000",
    "pfifo in HTB": "htb default 1 / pfifo limit 100",
}
"""Queues of this kernel: a shaper, and what is inside it."""


@contextmanager
def queue(box: str, name: str, gateway: str) -> Iterator[None]:
    """Puts a queue into the box, on the way to the far host."""
    if name in GATEWAY:
        line = f"{gateway} run --lan eth1 --wan eth0 --delay 10ms --quiet {GATEWAY[name]}"
        rate = [] if "--rate" in line else ["--rate", RATE]
        with inside(box, *line.split(), *rate) as forwards:
            try:
                yield
            finally:
                forwards.terminate()
        return
    outer, _, inner = KERNEL[name].partition(" / ")
    lines = [
        "ip link add br0 type bridge",
        "ip link set eth0 master br0",
        "ip link set eth1 master br0",
        "ip link set br0 up",
        f"tc qdisc add dev eth0 root handle 1: {outer}",
    ]
    if outer.startswith("htb"):
        lines.append(f"tc class add dev eth0 parent 1: classid 1:1 htb rate {RATE}")
    if inner:
        lines.append(f"tc qdisc add dev eth0 parent 1:1 {inner}")
    for line in lines:
        subprocess.run(["ip", "netns", "exec", box, *line.split()], check=True)
    yield


def record(name: str, gateway: str, file: Path, duration: str) -> None:
    """Probes a queue."""
    command = [sys.executable, "-m", "bluewater", "probe"]
    flows = FLOWS.get(name.partition(", ")[2], 0)
    with cables() as (near, box, far), queue(box, name, gateway), ExitStack() as running:

        def start(host: str, *line: str) -> subprocess.Popen[bytes]:
            made = running.enter_context(inside(host, *line))
            running.callback(made.terminate)
            return made

        start(far, sys.executable, "-c", _SINK)
        start(far, *command, "--listen", "5205")
        time.sleep(5)
        for _ in range(flows):
            start(near, sys.executable, "-c", _SOURCE, FAR)
        last = ["--duration", duration, "--to", str(file)]
        # TCP hides the rate while the probe looks for it.
        given = ["--rate", RATE] if flows else []
        with inside(near, *command, FAR, *last, *given) as sender:
            if sender.wait():
                sys.exit(f"no recording of {name}")


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway", help="the program")
    parser.add_argument("names", nargs="*", default=[*GATEWAY, *KERNEL])
    parser.add_argument("--folder", type=Path, default=Path("probes"), help="of the recordings")
    parser.add_argument("--again", action="store_true", help="record nothing")
    parser.add_argument("--record", action="store_true", help="identify nothing")
    parser.add_argument("--duration", default="30s", help="of a probe")
    options = parser.parse_args()
    new = not OUT.exists() and not options.record
    for name in options.names:
        file = options.folder / f"{name}.csv"
        if not options.again:
            record(name, options.gateway, file, options.duration)
        if options.record:
            continue
        answer = bluewater.identify(file, progress=False, jobs=1)
        found = " ".join(f"{each.name}={each.value}" for each in answer.parameters)
        chances = " ".join(f"{each}={share:.3f}" for each, share in answer.probabilities)
        with OUT.open("a") as out:
            rows = csv.writer(out, lineterminator="\n")
            if new:
                rows.writerow(
                    ["by", "queue", "answer", "misfit", "rate_bps", "longest_s", "found", "chances"]
                )
                new = False
            by, setting = ("gateway", GATEWAY[name]) if name in GATEWAY else ("tc", KERNEL[name])
            named = " or ".join(answer.families) or "unknown"
            rows.writerow([
                by, setting, named, round(answer.misfit, 3), round(answer.rate),
                round(answer.longest, 4), found, chances,
            ])  # fmt: skip
        print(f"{name}: {named}, misfit {answer.misfit:.2f}, {found}", file=sys.stderr)


if __name__ == "__main__":
    main()

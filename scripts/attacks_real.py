#!/usr/bin/env python3
"""Replays the attacks of docs/attacks.md on real packets: ``attacks_real.py GATEWAY [NAME...]``.

The kernel's TCP sends from four hosts, network namespaces whose cables are gateways with the round
trips of the search. Their packets and the attacker's datagrams meet in one gateway with the
discipline. Each repetition has a run with the attack and one without. Adds a row for each run to
docs/measured/attacks-real.csv, and leaves out runs that have one. Needs root and iproute2. With
``table`` as GATEWAY it simulates the same attacks and writes the page's table.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURED = Path(__file__).parents[1] / "docs/measured"
OUT = MEASURED / "attacks-real.csv"
SHARES = "cake:isolation=flows"
"""CAKE as in the search, where all flows have one host."""
NAMES = (
    "droptail", "blue", "red", "choke", "codel", "pie", "fred", "sfb", "red-pd", "fq-codel", "cake",
    SHARES,
)  # fmt: skip
"""The disciplines whose worst attack on throughput is replayed."""
OTHERS = {
    "fq-codel": ("starve", "56 flows, together 9.0 Mb/s"),
    "cake": ("starve", "60 flows, 213 ms at 16.9 Mb/s every 0.99 s"),
    "sfb": ("penalty", "26 flows, together 9.7 Mb/s"),
    "red-pd": ("penalty", "53 flows, together 9.4 Mb/s; ECN-capable"),
}
"""The attacks with other measures, of the page's last table."""

RATE, ROOM = 10e6, 60_000
"""Of the link, bit/s, and of its buffer, bytes of IP packets: a BDP of the mean round trip."""
NEAR_S = 0.01
"""Delay of the link each way: half a round trip of the attacker and of the nearest victims."""
FURTHER = ("0ms", "10ms", "20ms", "40ms")
"""And what each host of victims adds each way."""
VICTIMS = (3, 3, 2, 2)
"""Victims at each host."""
WARM_S, LASTS_S = 5.0, 20.0
"""The victims are alone for this long, then the attack lasts."""
_HEADERS = 28
"""Bytes of the headers of IP and UDP."""
_FRAME = 1514 / 1500
"""The gateway's buffer counts bytes of frames."""
FAR, PORT, SINK = "10.77.0.2", 5001, 9
_SPIN_S = 2e-4
"""The attacker sleeps until so long before it sends."""


@dataclass(frozen=True)
class Traffic:
    """What an attacker sends.

    Attributes:
        flows: Flows at a time.
        turns: Sets of flows, one after another.
        rate: Of all flows while they send, bit/s.
        burst: Length of a burst, s; 0 for a constant rate.
        period: Time from burst to burst, s.
        packet: Length of the IP packets, bytes.
        ecn: Whether they are ECN-capable.
    """

    flows: int
    turns: int
    rate: float
    burst: float
    period: float
    packet: int
    ecn: bool

    @property
    def count(self) -> int:
        """Packets of a flow in each burst."""
        return max(1, round(self.rate * self.burst / (8 * self.packet * self.flows)))

    def sendings(self) -> Iterator[tuple[float, range]]:
        """When which flows send a packet each, s behind the beginning.

        In a burst all flows do at once; at a constant rate one after another.
        """
        if not self.period:
            gap = 8 * self.packet / self.rate
            for k in range(int(LASTS_S / gap)):
                yield k * gap, range(k % self.flows, k % self.flows + 1)
            return
        for n in range(int(LASTS_S / self.period) + 1):
            for k in range(self.count):
                at = n * self.period + k * self.burst / self.count
                if at < LASTS_S:
                    yield at, range(self.flows)

    def group(self) -> dict[str, Any]:
        """The same traffic in a scenario."""
        per_flow = self.rate / self.flows
        made: dict[str, Any] = {
            "name": "attack", "from": [f"n{len(VICTIMS)}"], "transport": "cbr",
            "flows": self.flows, "packet": f"{self.packet}B", "ecn": self.ecn,
            "start": f"{WARM_S:g}s",
        }  # fmt: skip
        if self.period:
            per_flow = self.count * 8 * self.packet / self.burst
            off = f"{round(1e6 * (self.period - self.burst))}us"
            made |= {"app": "periodic", "on": f"{round(1e6 * self.burst)}us", "off": off}
        else:
            made["start"] += f"..{WARM_S + 8 * self.packet / per_flow:.6f}s"
        if self.turns > 1:
            made["rekey"] = f"{LASTS_S / self.turns:g}s"
        return made | {"rate": f"{int(per_flow)}bit"}


_FLOWS = re.compile(r"(one|\d+)(?: of (\d+))? flows?")
_BURSTS = re.compile(r"(\d+) ms at ([\d.]+) Mb/s every ([\d.]+) s")
_STEADY = re.compile(r"together ([\d.]+) Mb/s")
_PACKET = re.compile(r"(\d+)-byte packets")


def traffic(words: str) -> Traffic:
    """The traffic that the words of the page describe."""
    flows, whole = _FLOWS.match(words).groups()  # type: ignore[union-attr]
    at_once = 1 if flows == "one" else int(flows)
    packet = _PACKET.search(words)
    rest = (int(packet[1]) if packet else 1500, "ECN-capable" in words)
    turns = int(whole) // at_once if whole else 1
    if bursts := _BURSTS.search(words):
        ms, rate, period = map(float, bursts.groups())
        return Traffic(at_once, turns, rate * 1e6, ms / 1e3, period, *rest)
    rate = float(_STEADY.search(words)[1])  # type: ignore[index]
    return Traffic(at_once, turns, rate * 1e6, 0.0, 0.0, *rest)


def attacks() -> list[tuple[str, str, Traffic]]:
    """Discipline, measure and traffic of each attack."""
    rows = (MEASURED / "attacks.md").read_text().splitlines()[2:]
    words = {
        cells[0].strip(" `"): cells[1].strip() for cells in (row[1:].split("|") for row in rows)
    }
    found = [(aqm, "throughput", traffic(words[aqm.partition(":")[0]])) for aqm in NAMES]
    return found + [(aqm, name, traffic(text)) for aqm, (name, text) in OTHERS.items()]


def damage(measure: str, goodputs: list[float], before: list[float], attacker: float) -> float:
    """What an attack costs, by goodputs with and without it; its own share for a penalty."""
    if measure == "penalty":
        return attacker / RATE

    def counted(each: list[float]) -> float:
        return min(each) * len(each) if measure == "starve" else sum(each)

    return (counted(before) - counted(goodputs)) / sum(before)


@contextmanager
def network(aqm: str, gateway: str, min_rto: str, log: Path) -> Iterator[list[str]]:
    """The hosts of victims, the attacker's and the far one, and gateways between them."""
    name = f"bw{os.getpid()}"
    nears = [f"{name}n{k}" for k in range(len(VICTIMS) + 1)]
    cables = [f"{name}c{k}" for k in range(len(VICTIMS))]
    hub, box, far = f"{name}hub", f"{name}box", f"{name}far"
    spaces = [*nears, *cables, hub, box, far]
    hosts = {near: f"10.77.0.{10 + k}" for k, near in enumerate(nears)} | {far: FAR}
    macs = {host: f"02:00:00:00:00:{address.split('.')[-1]}" for host, address in hosts.items()}
    ends = [(near, "eth0", at, "eth1") for near, at in zip(nears, [*cables, hub], strict=True)]
    ends += [(cable, "eth0", hub, f"eth{2 + k}") for k, cable in enumerate(cables)]
    ends += [(hub, "eth0", box, "eth1"), (box, "eth0", far, "eth0")]
    with ExitStack() as stack:
        for space in spaces:
            _run(f"ip netns add {space}")
            stack.callback(_run, f"ip netns delete {space}")
            _run(f"ip netns exec {space} sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
        for here, port, there, other in ends:
            _run(f"ip -n {here} link add {port} type veth peer name {other} netns {there}")
            for at, end in ((here, port), (there, other)):
                address = f" address {macs[at]}" if at in macs else ""
                _run(f"ip -n {at} link set {end}{address} up")
        _run(f"ip -n {hub} link add br0 type bridge")
        for port in [f"eth{k}" for k in range(len(nears) + 1)]:
            _run(f"ip -n {hub} link set {port} master br0")
        _run(f"ip -n {hub} link set br0 up")
        for host, address in hosts.items():
            _run(f"ip -n {host} address add {address}/24 dev eth0")
            _run(f"ip netns exec {host} sysctl -qw net.ipv4.tcp_ecn=1")
            _run(f"ip netns exec {host} sysctl -qw net.ipv4.tcp_no_metrics_save=1")
            _run(f"ip -n {host} route change 10.77.0.0/24 dev eth0 src {address} rto_min {min_rto}")
            for other, to in hosts.items():
                if other != host:
                    _run(f"ip -n {host} neigh replace {to} lladdr {macs[other]} dev eth0")
        for cable, delay in zip(cables, FURTHER, strict=True):
            plain = f"--rate 100mbit --delay {delay} --buffer 1000p"
            stack.enter_context(_gateway(gateway, cable, plain))
        room = round(ROOM * _FRAME)
        queue = (
            f"--rate {RATE:.0f}bit --overhead 0 --delay {NEAR_S * 1e3:g}ms --buffer {room}B "
            f"--mean-packet 1500 --aqm {aqm.replace(':', ' --param ')} --log {log}"
        )
        stack.enter_context(_gateway(gateway, box, queue))
        time.sleep(1)
        yield [*nears, far]


@contextmanager
def _gateway(program: str, space: str, options: str) -> Iterator[None]:
    line = f"ip netns exec {space} {program} run --lan eth1 --wan eth0 --quiet {options}"
    with subprocess.Popen(line.split(), stderr=subprocess.DEVNULL) as forwards:
        try:
            yield
        finally:
            forwards.send_signal(signal.SIGINT)


def _run(line: str) -> None:
    subprocess.run(line.split(), check=True)


def run(
    aqm: str, attack: Traffic | None, gateway: str, min_rto: str, congestion: str
) -> dict[str, Any]:
    """One run: goodput of each victim and what arrives of the attack, bit/s."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with network(aqm, gateway, min_rto, log) as spaces, ExitStack() as stack:
            me = [sys.executable, str(Path(__file__).resolve()), "--end"]
            *nears, attacker, far = spaces
            ends = [(far, "receive", str(attack.packet if attack else 0))]
            ends += [
                (near, "victims", str(count), congestion)
                for near, count in zip(nears, VICTIMS, strict=True)
            ]
            if attack:
                ends.append((attacker, "attack", json.dumps(vars(attack))))
            said = _together([["ip", "netns", "exec", at, *me, *rest] for at, *rest in ends], stack)
        found: dict[str, Any] = json.loads(said[0])
        up, _ = json.loads(log.read_text().splitlines()[-1])["summary"]
        found["lost_before"] = up["lost_before"]
        found["late_s"] = json.loads(said[-1])["late_s"] if attack else 0.0
    return found


def _together(lines: list[list[str]], stack: ExitStack) -> list[bytes]:
    """Starts programs, tells all when to begin once each is ready, and returns what they print."""
    made: list[Any] = [
        stack.enter_context(
            subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        )
        for line in lines
    ]
    for program in made:
        program.stdout.readline()
    begin = time.monotonic() + 0.5
    for program in made:
        program.stdin.write(f"{begin}\n".encode())
    said = [program.stdout.read() for program in made]
    if any(program.wait() for program in made):
        sys.exit("no measurement")
    return said


def _begin() -> float:
    print("ready", flush=True)
    return float(input())


def receive(packet: int) -> None:
    """Counts bytes of each connection and datagrams of the attack, and prints the rates."""
    ports = selectors.DefaultSelector()
    port = socket.create_server(("", PORT), backlog=64)
    ports.register(port, selectors.EVENT_READ)
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the kernel counts what it drops
    sink.bind(("", SINK))
    got: dict[socket.socket, int] = {}
    counts = []
    begin = _begin()
    for until in (begin + WARM_S, begin + WARM_S + LASTS_S):
        while (left := until - time.monotonic()) > 0:
            for key, _ in ports.select(left):
                if key.fileobj is port:
                    link, _ = port.accept()
                    link.setblocking(False)
                    ports.register(link, selectors.EVENT_READ)
                    got[link] = 0
                else:
                    link = key.fileobj  # type: ignore[assignment]
                    try:
                        data = link.recv(1 << 16)
                    except BlockingIOError:
                        continue
                    got[link] += len(data)
        counts.append((list(got.values()), _dropped(), time.monotonic()))
    (first, few, began), (last, many, ended) = counts
    if len(first) != sum(VICTIMS):
        sys.exit(f"{len(first)} connections")
    rates = [8 * (b - a) / (ended - began) for a, b in zip(first, last, strict=True)]
    attacker = 8 * packet * (many - few) / (ended - began)
    print(json.dumps({"goodputs": rates, "attacker": attacker}))


def _dropped() -> int:
    """Datagrams that nobody read."""
    head, values = [
        line.split() for line in Path("/proc/net/snmp").read_text().splitlines()
        if line.startswith("Udp:")
    ]  # fmt: skip
    return int(values[head.index("InErrors")])


def victims(count: int, congestion: str) -> None:
    """Sends on so many connections, which begin within a second."""
    begin = _begin()
    for _ in range(count):
        threading.Thread(target=_bulk, args=(begin, congestion), daemon=True).start()
    time.sleep(begin + WARM_S + LASTS_S + 0.5 - time.monotonic())
    os._exit(0)


def _bulk(begin: float, congestion: str) -> None:
    time.sleep(max(0.0, begin + random.random() - time.monotonic()))
    link, data = socket.socket(), bytes(1 << 16)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
    link.connect((FAR, PORT))
    with suppress(OSError):  # the receiver ends first
        while True:
            link.sendall(data)


def attack(text: str) -> None:
    """Sends an attack, and prints by how much its latest packet was late."""
    made = Traffic(**json.loads(text))
    tos, payload = (2 if made.ecn else 0), bytes(made.packet - _HEADERS)
    links = []
    for _ in range(made.flows * made.turns):
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        link.connect((FAR, SINK))
        links.append(link)
    late = 0.0
    start = _begin() + WARM_S
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    for at, flows in made.sendings():
        turn = min(int(at * made.turns / LASTS_S), made.turns - 1)
        due = start + at
        while (early := due - time.monotonic()) > 0:
            if early > _SPIN_S:
                time.sleep(early - _SPIN_S)
        late = max(late, -early)
        for flow in flows:
            links[turn * made.flows + flow].send(payload)
    print(json.dumps({"late_s": late}))


_COLUMNS = ("aqm", "attack", "rto_min", "congestion", "rep", "attacker_bps", "lost_before",
            "late_s", "load", "goodputs_bps")  # fmt: skip


def _rows() -> list[dict[str, str]]:
    if not OUT.exists():
        return []
    with OUT.open() as file:
        return list(csv.DictReader(file))


def measure(gateway: str, names: list[str], reps: int, min_rto: str, congestion: str) -> None:
    """Makes the runs that have no row."""
    done = {tuple(list(row.values())[:5]) for row in _rows()}
    each = [(aqm, kind, made) for aqm, kind, made in attacks() if aqm in names]
    cells = [(aqm, "", None) for aqm in dict.fromkeys(aqm for aqm, *_ in each)]
    for rep in range(1, reps + 1):
        for aqm, kind, made in [*cells, *each]:
            key = (aqm, kind, min_rto, congestion, str(rep))
            if key in done:
                continue
            found = run(aqm, made, gateway, min_rto, congestion)
            goodputs = " ".join(f"{rate:.0f}" for rate in found["goodputs"])
            last = [round(found["attacker"]), found["lost_before"], round(found["late_s"], 4)]
            with OUT.open("a") as out:
                rows = csv.writer(out, lineterminator="\n")
                if not done and not out.tell():
                    rows.writerow(_COLUMNS)
                rows.writerow([*key, *last, round(os.getloadavg()[0], 1), goodputs])
            print(*key, f"{sum(found['goodputs']) / 1e6:.2f} Mb/s", *last, file=sys.stderr)


SIMULATED: dict[str, dict[str, Any]] = {
    "simulated": {},
    "simulated, Linux": {"preset": "linux"},
}
"""Victims of the simulator, who all have SACK and a least timeout of 1 s."""
SEEDS = range(4, 9)
"""The fresh seeds with which the search checks what it found."""


def spread(values: list[float]) -> str:
    """Mean, least and largest of shares, in per cent."""
    mean, least, most = (100 * each for each in (fmean(values), min(values), max(values)))
    return f"{mean:.0f} ({least:.0f} … {most:.0f})"


def simulated(aqm: str, kind: str, made: Traffic, victims: dict[str, Any]) -> list[float]:
    """The damage in the simulator, by seed."""
    import bluewater  # noqa: PLC0415 - the ends are quicker without it
    from bluewater.study.search import attack as rules  # noqa: PLC0415

    def rates(seed: int, more: list[dict[str, Any]]) -> tuple[list[float], float]:
        table = rules.scenario(aqm, rules.Threat(), None) | {"seed": seed}
        table["traffic"] = [table["traffic"][0] | victims, *more]
        flows = bluewater.run(table).flows
        mine = flows["group"] == "victims"
        taken = flows.filter(~mine)["throughput_bps"].sum()
        return flows.filter(mine)["goodput_bps"].to_list(), float(taken)

    def once(seed: int) -> float:
        got, attacker = rates(seed, [made.group()])
        return damage(kind, got, rates(seed, [])[0], attacker)

    return [once(seed) for seed in SEEDS]


def measured(rows: list[dict[str, str]], aqm: str, kind: str, setting: tuple[str, str]) -> str:
    """The damage on real packets, over the repetitions."""
    found: dict[str, dict[str, tuple[list[float], float]]] = {"": {}, kind: {}}
    for row in rows:
        here = row["aqm"] == aqm and (row["rto_min"], row["congestion"]) == setting
        if here and row["attack"] in found:
            goodputs = [float(each) for each in row["goodputs_bps"].split()]
            found[row["attack"]][row["rep"]] = goodputs, float(row["attacker_bps"])
    both = sorted(found[""].keys() & found[kind].keys())
    values = [
        damage(kind, found[kind][rep][0], found[""][rep][0], found[kind][rep][1]) for rep in both
    ]
    return spread(values) if values else "–"


def table() -> None:
    """Writes the page's table."""
    settings = {"real packets": ("1s", "reno"), "real, defaults": ("200ms", "cubic")}
    lines = [["attack on", "measure", *SIMULATED, *settings]]
    for aqm, kind, made in attacks():
        sides = [spread(simulated(aqm, kind, made, each)) for each in SIMULATED.values()]
        sides += [measured(_rows(), aqm, kind, each) for each in settings.values()]
        lines.append([f"`{aqm}`", kind, *sides])
        print(*lines[-1], file=sys.stderr)
    head, *rest = [f"| {' | '.join(line)} |\n" for line in lines]
    text = "".join([head, "|---" * len(lines[0]), "|\n", *rest])
    (MEASURED / "attacks-real.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Measures, or writes the table."""
    if sys.argv[1:2] == ["--end"]:
        _, _, what, *rest = sys.argv
        os.nice(-10)
        if what == "attack":
            attack(*rest)
        elif what == "victims":
            victims(int(rest[0]), rest[1])
        else:
            receive(int(rest[0]))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # namespaces go
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway", help="the program, or `table`")
    parser.add_argument("names", nargs="*", default=[*NAMES], help=", ".join(NAMES))
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--min-rto", default="1s", help="the victims' least timeout")
    parser.add_argument("--congestion", default="reno", help="the victims' congestion control")
    options = parser.parse_args()
    if options.gateway == "table":
        table()
        return
    measure(options.gateway, options.names, options.reps, options.min_rto, options.congestion)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Chaos: everything happens to a gateway between two hosts; does it go on, do its accounts hold?

Rounds of half a minute with TCP both ways and, all the time, something at random: interfaces go
down and come back, lose their carrier, get another name or MTU, the gateway is stopped and goes on,
clients connect and say nothing or scrape as fast as they can, pages watch it, links change, the
disk is full and empty again, whoever reads what it writes stalls, is killed, or is ended by the
kernel when memory runs out. In half of the rounds the calendar jumps by an hour each time that the
gateway looks at it. After each of these it has to answer, with every packet accounted for. The
links vary, impair and frame by chance. A round ends by a signal (exit code 0 and a summary) or
SIGKILL; either way its control socket goes, and its recording replays as far as it goes. Needs user
namespaces; as root it takes both planes, packet sockets and AF_XDP. What cannot be done here (jumps
without libfaketime, memory limits without cgroups) is said.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROUND = 30  # s
PORT = 9100
AQMS = ("droptail", "blue", "red", "pie", "codel", "fq-codel", "sfb", "dualpi2", "cake", "wred")
# What may be beside rate, delay and buffer; files are made in the round's folder.
BESIDE = (
    ["--jitter", "3ms"], ["--jitter", "2ms", "--reorder"], ["--loss", "1%"],
    ["--loss", "gemodel 1% 25%"], ["--duplicate", "1%"], ["--corrupt", "1%"], ["--overhead", "44"],
    ["--overhead", "overhead 40 mpu 64 atm"], ["--rate-trace", "rates"],
    ["--rate-trace", "rates", "--told-rate"], ["--delay-trace", "delays"],
    ["--loss-trace", "losses"], ["--down-rate-trace", "lines", "--once"],
    ["--policer", "5mbit"], ["--down-policer", "1mbit", "--down-policer-burst", "50kB"],
)  # fmt: skip
TRACES = {
    "rates": "time_s,rate_mbps\n0,20\n0.5,2\n0.8,0\n1,40\n3,1\n",
    "delays": "time_s,delay_ms\n0,2\n1,30\n1.5,0\n2,1\n",
    "losses": "time_s,loss\n0,0\n1,0.5\n1.2,0.01\n2,1\n",
    "lines": "".join(f"{ms}\n" for ms in range(1, 2000, 3)),
}
# What ends it in order.
ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGPWR, signal.SIGQUIT, signal.SIGALRM)
DISK = 256  # kB: what is written fills it within a round
INSIDE = "BLUEWATER_CHAOS_INSIDE"
ROOT = os.geteuid() == 0
PLANES = ("packet", "xdp") if ROOT else ("packet",)
# Fakes what a program sees of the calendar; its monotonic clock stays.
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
JUMPS = {"FAKETIME": "@2030-01-01 00:00:00 i3600", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
LIMITS = (
    Path("/sys/fs/cgroup/memory")
    if Path("/sys/fs/cgroup/memory").is_dir()
    else Path("/sys/fs/cgroup")
)


def run(*words: str, check: bool = True) -> str:
    """What a command prints."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr}")
    return done.stdout


class Host:
    """A network namespace with one interface, whose other end is here."""

    def __init__(self, interface: str, number: int) -> None:
        here = Path("/proc/self/ns/net").readlink()
        self.process = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        while Path(f"/proc/{self.process.pid}/ns/net").readlink() == here:
            time.sleep(0.01)
        self.address = f"10.9.0.{number}"
        pid = str(self.process.pid)
        run(*f"ip link add {interface} type veth peer name eth0 netns {pid}".split())
        run("ip", "link", "set", interface, "up")
        self.enter = ["nsenter", "-t", pid, "-n"]
        setup = (
            "echo 1 > /proc/sys/net/ipv4/tcp_ecn; ip link set lo up; "
            f"ip addr add {self.address}/24 dev eth0; ip link set eth0 up"
        )
        run(*self.enter, "sh", "-c", setup)

    def set(self, state: str) -> None:
        """Takes its interface up or down."""
        run(*self.enter, "ip", "link", "set", "eth0", state)

    def has_carrier(self) -> bool:
        """Whether its interface is up, and what is at its other end, too."""
        return "LOWER_UP" in run(*self.enter, "ip", "-o", "link", "show", "eth0")


class Round:
    """A gateway from its start to its end, and what happens to it."""

    def __init__(self, gateway: str, hosts: list[Host], folder: Path, dice: random.Random) -> None:
        self.gateway, self.hosts, self.folder, self.dice = gateway, hosts, folder, dice
        self.recorded = dice.random() < 0.5
        self.arrivals = [0, 0]
        self.clients: list[socket.socket] = []
        self.reader: subprocess.Popen[bytes] | None = None
        fifo = folder / "capture"
        fifo.unlink(missing_ok=True)
        os.mkfifo(fifo)
        self.read()
        options = ["--rate", "20mbit", "--delay", "2ms", "--buffer", "50kB", "--interval", "20ms"]
        options += ["--aqm", dice.choice(AQMS), "--log", str(folder / "disk/log")]
        options += ["--pcapng", str(fifo), "--metrics", str(PORT), "--name", "chaos"]
        if self.recorded:
            options += ["--record", str(folder / "disk/run.arr")]
        for name, text in TRACES.items():
            (folder / name).write_text(text)
        chosen = {words[0]: words for words in dice.sample(BESIDE, dice.randrange(4))}
        for words in chosen.values():
            options += [str(folder / word) if word in TRACES else word for word in words]
        self.plane = dice.choice(PLANES)
        options += ["--plane", self.plane, "--web", "0"]
        self.jumps = FAKETIME is not None and dice.random() < 0.5
        faked = JUMPS | {"LD_PRELOAD": str(FAKETIME)} if self.jumps else {}
        self.errors = folder / "errors"
        with self.errors.open("w") as errors:
            command = [gateway, "run", "--lan", "lan", "--wan", "wan", *options]
            self.process = subprocess.Popen(command, stderr=errors, env=os.environ | faked)
        self.traffic: list[subprocess.Popen[bytes]] = []
        for one, other in [(0, 1), (1, 0)]:
            sink = [*hosts[other].enter, gateway, "sink"]
            bulk = f"while :; do {gateway} bulk {hosts[other].address} --flows 4 --time 5s; done"
            for command in [sink, [*hosts[one].enter, "sh", "-c", bulk]]:
                quiet = subprocess.DEVNULL
                self.traffic.append(
                    subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
                )
        for _ in range(400):
            if self.ask("show").returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"it does not start: {self.errors.read_text()}")

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What comes of a question at its control socket."""
        command = [self.gateway, "ctl", "chaos", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def read(self) -> None:
        """Somebody reads the packets that it writes."""
        command = self.dice.choice(["exec cat > /dev/null", "exec dd bs=1k of=/dev/null"])
        opened = f"exec 3<>{self.folder / 'capture'}; {command} <&3 2>/dev/null"
        self.reader = subprocess.Popen(["sh", "-c", opened])
        time.sleep(0.1)

    def check(self) -> None:
        """It answers, every packet is accounted for, and counts only grow."""
        assert self.process.poll() is None, "it has ended"
        state = json.loads(run(self.gateway, "ctl", "chaos", "show"))
        for i, queue in enumerate(state["queues"]):
            assert queue["conserved"], queue
            assert queue["arrivals"] >= self.arrivals[i], queue
            self.arrivals[i] = queue["arrivals"]
        with socket.create_connection(("127.0.0.1", PORT), timeout=5) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            text = b"".join(iter(lambda: client.recv(65536), b""))
        assert text.endswith(b"# EOF\n"), text[-200:]

    # --- what happens

    def interface_down_and_up(self) -> None:
        """One of them goes down, and comes back."""
        interface = self.dice.choice(["lan", "wan"])
        run("ip", "link", "set", interface, "down")
        time.sleep(self.dice.uniform(0.05, 1))
        run("ip", "link", "set", interface, "up")
        self.until_carriers_are_back()

    def until_carriers_are_back(self) -> None:
        """What the gateway took down it takes up."""
        for _ in range(400):
            if all(host.has_carrier() for host in self.hosts):
                return
            time.sleep(0.05)
        raise AssertionError(f"no carrier: {self.errors.read_text()}")

    def carrier_is_lost_and_found(self) -> None:
        """The cable at one of them is pulled and put back, which is noticed behind the other."""
        host = self.dice.choice(self.hosts)
        host.set("down")
        time.sleep(self.dice.uniform(0.05, 1))
        host.set("up")
        self.until_carriers_are_back()

    def interface_is_renamed(self) -> None:
        """One of them gets another name, and its own again, if that can be while it is up."""
        interface = self.dice.choice(["lan", "wan"])
        run("ip", "link", "set", interface, "name", "other", check=False)
        self.check()
        run("ip", "link", "set", "other", "name", interface, check=False)

    def other_mtu(self) -> None:
        """One of them carries shorter or longer packets for a while."""
        interface = self.dice.choice(["lan", "wan"])
        run("ip", "link", "set", interface, "mtu", self.dice.choice(["600", "1400", "2000"]))
        time.sleep(self.dice.uniform(0.05, 1))
        run("ip", "link", "set", interface, "mtu", "1500")

    def stopped_for_a_while(self) -> None:
        """The gateway is kept from running."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.05, 0.8))
        self.process.send_signal(signal.SIGCONT)

    def idle_and_slow_clients(self) -> None:
        """Clients that say nothing or little, and stay."""
        for _ in range(200):
            client = socket.create_connection(("127.0.0.1", PORT), timeout=5)
            client.setblocking(False)
            with contextlib.suppress(OSError):
                client.send(b"GET /met"[: self.dice.randrange(9)])
            self.clients.append(client)
        del self.clients[:-400]

    def flood_of_scrapes(self) -> None:
        """Clients that ask and do not listen."""
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", PORT), timeout=5) as client:
                client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")

    def pages_that_watch(self) -> None:
        """Twenty pages, of which some go before they are answered."""
        found = re.search(r"web: http://127.0.0.1:(\d+)(/\w+/)", self.errors.read_text())
        assert found, self.errors.read_text()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=5) as client:
                request = f"GET {found[2]}state HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
                client.sendall(request.encode())
                if self.dice.random() < 0.5:
                    answer = b"".join(iter(lambda: client.recv(65536), b""))
                    assert answer.startswith(b"HTTP/1.1 200 OK"), answer[:200]

    def change_of_links(self) -> None:
        """Another rate, delay, buffer, discipline or wire."""
        words = [
            ["--rate", self.dice.choice(["1mbit", "10mbit", "50mbit"])],
            ["--delay", self.dice.choice(["0s", "1ms", "30ms", "2s"])],
            ["--buffer", self.dice.choice(["2p", "20kB", "200kB"])],
            ["--aqm", self.dice.choice(AQMS)],
            ["--jitter", self.dice.choice(["0s", "1ms", "20ms"])],
            ["--reorder", self.dice.choice(["true", "false"])],
            ["--loss", self.dice.choice(["0", "2%", "gemodel 1% 25%"])],
            ["--duplicate", self.dice.choice(["0", "2%"])],
            ["--corrupt", self.dice.choice(["0", "2%"])],
            ["--overhead", self.dice.choice(["0", "44", "pppoe-ptm", "conservative"])],
            ["--policer", self.dice.choice(["none", "500kbit", "30mbit"])],
        ]
        refused = self.ask("set", *self.dice.choice(words))
        allowed = self.recorded or "changes at a time" in refused.stderr
        assert refused.returncode == 0 or allowed, refused.stderr

    def full_disk(self) -> None:
        """Nothing more can be written for a while."""
        with contextlib.suppress(OSError), (self.folder / "disk/other").open("wb") as other:
            other.write(bytes(DISK * 1024))
        time.sleep(self.dice.uniform(0.1, 1))
        (self.folder / "disk/other").unlink(missing_ok=True)

    def reader_stalls(self) -> None:
        """Whoever reads its packets does not."""
        assert self.reader
        self.reader.send_signal(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.1, 2))
        self.reader.send_signal(signal.SIGCONT)

    def reader_is_killed(self) -> None:
        """Whoever reads its packets is killed, and another comes."""
        assert self.reader
        self.reader.kill()
        self.reader.wait()
        time.sleep(self.dice.uniform(0, 0.5))
        self.read()

    def reader_is_out_of_memory(self) -> None:
        """Whoever reads its packets is ended by the kernel, for want of memory."""
        assert self.reader
        self.reader.kill()
        self.reader.wait()
        group = LIMITS / f"bluewater-chaos-{os.getpid()}"
        group.mkdir()
        try:
            limit = ("memory.max", "memory.swap.max"), ("memory.limit_in_bytes",)
            for name in limit[LIMITS.name == "memory"]:
                if (group / name).exists():
                    (group / name).write_text("0" if "swap" in name else str(16 << 20))
            hungry = (
                f"open('{group}/cgroup.procs', 'w').write('0')\n"
                f"file = open('{self.folder}/capture', 'rb+', buffering=0)\n"
                "all = []\nwhile True: all.append(file.read(65536) + bytes(1 << 20))"
            )
            reader = subprocess.Popen([sys.executable, "-c", hungry], stderr=subprocess.DEVNULL)
            assert reader.wait(timeout=30) == -signal.SIGKILL, "it is not ended"
        finally:
            group.rmdir()
        self.read()

    def log_is_rotated(self) -> None:
        """Somebody renames its log and says so; or asks for something that it does not know."""
        log = self.folder / "disk/log"
        log.replace(log.with_name("log.1"))
        self.process.send_signal(signal.SIGHUP)
        self.process.send_signal(self.dice.choice([signal.SIGUSR1, signal.SIGUSR2]))
        for _ in range(400):
            if log.exists():
                return
            time.sleep(0.05)
        raise AssertionError(f"no new log: {self.errors.read_text()}")

    def super_packets_of_single_bytes(self) -> None:
        """A neighbour's calls ask for thousands of packets each."""
        flood = (
            "import socket\n"
            "raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
            "raw.setsockopt(263, 15, 1)\n"
            "raw.bind(('eth0', 0))\n"
            "ip = bytes.fromhex('4500ea8c00000000401100000a0900010a090002') + bytes(8 + 60000)\n"
            "for size in [1, 8, 64, 500] * 50:\n"
            "    words = b''.join(n.to_bytes(2, 'little') for n in (size, 34, 6))\n"
            "    head = bytes([1, 5, 0, 0]) + words\n"
            "    try: raw.send(head + bytes(12) + b'\\x08\\x00' + ip)\n"
            "    except OSError: pass\n"
        )
        run(*self.dice.choice(self.hosts).enter, sys.executable, "-c", flood)

    # --- the end

    def end(self) -> str:
        """Ends it, and says how."""
        gently = self.dice.random() < 0.7
        how = self.dice.choice(ENDS) if gently else signal.SIGKILL
        self.process.send_signal(how)
        code = self.process.wait(timeout=20)
        text = self.errors.read_text()
        assert code == (0 if gently else -signal.SIGKILL), f"exit code {code}: {text}"
        assert not gently or "up " in text, text
        for process in self.traffic:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert self.reader
        self.reader.kill()
        self.reader.wait()
        sockets = Path(os.environ["XDG_RUNTIME_DIR"]) / "bluewater"
        for _ in range(100):
            if not list(sockets.iterdir()):
                break
            time.sleep(0.05)
        assert not list(sockets.iterdir()), "its socket is still there"
        if self.recorded:
            run(self.gateway, "replay", str(self.folder / "disk/run.arr"))
        for left in (self.folder / "disk").iterdir():
            left.unlink()
        return f"ended by {how.name}"


def memory_can_be_limited() -> bool:
    """Whether cgroups can be made here that limit memory."""
    group = LIMITS / f"bluewater-chaos-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        return False
    limited = any((group / name).exists() for name in ("memory.max", "memory.limit_in_bytes"))
    group.rmdir()
    return limited


def inside(gateway: str, seconds: int, seed: int) -> int:
    """All rounds, in namespaces of their own."""
    dice = random.Random(seed)
    happened: collections.Counter[str] = collections.Counter()
    packets = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_RUNTIME_DIR"] = name
        (folder / "disk").mkdir()
        run(*f"mount -t tmpfs -o size={DISK}k disk {folder}/disk".split())
        run("ip", "link", "set", "lo", "up")
        hosts = [Host("lan", 1), Host("wan", 2)]
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                one = Round(gateway, hosts, folder, dice)
                events: list[Callable[[], None]] = [
                    one.interface_down_and_up, one.stopped_for_a_while, one.idle_and_slow_clients,
                    one.flood_of_scrapes, one.change_of_links, one.full_disk, one.reader_stalls,
                    one.reader_is_killed, one.pages_that_watch, one.log_is_rotated,
                    one.super_packets_of_single_bytes, one.carrier_is_lost_and_found,
                    one.interface_is_renamed, one.other_mtu,
                ]  # fmt: skip
                if memory_can_be_limited():
                    events.append(one.reader_is_out_of_memory)
                happened[f"rounds by {one.plane}"] += 1
                happened["rounds in which the calendar jumps"] += one.jumps
                over = min(end, time.monotonic() + ROUND)
                while time.monotonic() < over:
                    event = dice.choice(events)
                    try:
                        event()
                        one.check()
                    except Exception:
                        print(f"after {event.__name__}, of", dict(happened), file=sys.stderr)
                        raise
                    happened[event.__name__] += 1
                    time.sleep(dice.uniform(0, 0.5))
                packets += sum(one.arrivals)
                happened[one.end()] += 1
        finally:
            for host in hosts:
                host.process.kill()
            run("umount", str(folder / "disk"), check=False)
    for what, times in sorted(happened.items()):
        print(f"{times:5} {what.replace('_', ' ')}")
    print(f"{packets} packets, every one accounted for after each of these")
    return 0


def main() -> int:
    """Goes into namespaces and begins; an assertion that fails is the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gateway", help="the program")
    parser.add_argument("seconds", type=int, nargs="?", default=600, help="default: 600")
    parser.add_argument("--seed", type=int, default=1, help="of what happens when; default: 1")
    options = parser.parse_args()
    if INSIDE in os.environ:
        return inside(options.gateway, options.seconds, options.seed)
    os.environ[INSIDE] = "1"
    arguments = [str(Path(options.gateway).resolve()), *sys.argv[2:]]
    if FAKETIME is None:
        print("the calendar does not jump: there is no libfaketime")
    if not memory_can_be_limited():
        print("nobody is out of memory: no cgroup can be made that limits it")
    command = ["unshare", "-nm" if ROOT else "-rnm", sys.executable, __file__, *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

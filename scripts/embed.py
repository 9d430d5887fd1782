#!/usr/bin/env python3
"""Measures the relay and the VPN of ``crates/aqm/examples`` under load: ``embed.py``, as root.

Each runs with a plain channel and with FQ-CoDel before a link of 20 Mb/s. It prints the delay of a
probe and the throughput of the load, and draws ``docs/img/embed.png``. The VPN is between two
network namespaces.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "target" / "debug" / "examples"
QUEUES = ("channel", "fq-codel")
RATE = "20mbit"
PORT = 7000
SECONDS = 14
SETTLED = 4  # seconds that do not count
PROBE = b"probe"
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35  # of Linux


def probe(host: str) -> None:
    """A datagram of 200 bytes every 10 ms, with the time at which it was sent."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began = time.monotonic()
    for number in range(SECONDS * 100):
        time.sleep(max(0, began + number / 100 - time.monotonic()))
        out.sendto((PROBE + struct.pack("<Q", time.time_ns())).ljust(200), (host, PORT))


def flood(host: str) -> None:
    """Datagrams of 1200 bytes at 25 Mb/s."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    began = time.monotonic()
    for number in range(round(SECONDS * 25e6 / 8 / 1200)):
        time.sleep(max(0, began + number * 1200 * 8 / 25e6 - time.monotonic()))
        out.sendto(bytes(1200), (host, PORT))


def sink(port: str) -> None:
    """Prints the delays of probes in ms and the bytes of others, once it has settled."""
    into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    into.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
    into.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)  # the kernel's time of arrival
    into.bind(("0.0.0.0", int(port)))
    into.settimeout(1)
    delays, count, began = [], 0, time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS + 1:
        try:
            data, ancillary, _, _ = into.recvmsg(2048, 64)
        except TimeoutError:
            continue
        if not SETTLED < passed < SECONDS:
            continue
        if data.startswith(PROBE):
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            (sent,) = struct.unpack_from("<Q", data, len(PROBE))
            delays.append((seconds * 10**9 + nanoseconds - sent) / 1e6)
        else:
            count += len(data)
    print(json.dumps([delays, count]))


def bulk(host: str) -> None:
    """Eight TCP connections that always have data."""
    ways = [socket.create_connection((host, PORT)) for _ in range(8)]
    for way in ways:
        way.setblocking(False)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for way in ways:
            try:
                way.send(bytes(16384))
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:  # the other end has enough
                return


def drain() -> None:
    """Takes eight TCP connections and prints how many bytes came, once it has settled."""
    with socket.create_server(("0.0.0.0", PORT)) as server:
        ways = [server.accept()[0] for _ in range(8)]
    for way in ways:
        way.setblocking(False)
    count, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < SECONDS:
        for way in ways:
            try:
                came = len(way.recv(1 << 16))
            except BlockingIOError:
                time.sleep(0.001)
            else:
                count += came if passed > SETTLED else 0
    print(json.dumps([[], count]))


def tun(address: str, *command: str) -> None:
    """Opens a TUN device with this address and gives it to the command as standard input."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    iff_tun, iff_no_pi, tunsetiff = 1, 0x1000, 0x400454CA
    fcntl.ioctl(device, tunsetiff, struct.pack("16sH22x", b"tun0", iff_tun | iff_no_pi))
    for line in (f"address add {address}/24 dev tun0", "link set tun0 up mtu 1400"):
        subprocess.run(["ip", *line.split()], check=True)
    os.dup2(device, 0)
    os.execv(command[0], command)


ROLES = {role.__name__: role for role in (probe, flood, sink, bulk, drain, tun)}


def own(*role: str) -> list[str]:
    """The command that plays a role."""
    return [sys.executable, __file__, *role]


def inside(namespace: str, *command: str) -> list[str]:
    """The command in a network namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def measured(machines: list[list[str]], ends: list[list[str]], loads: list[list[str]]) -> list:
    """Starts the machines, what receives and what sends; what the receivers printed."""
    with ExitStack() as stack:
        started = []
        for group in (machines, ends, loads):
            for command in group:
                pipe = subprocess.PIPE if group is ends else None
                process = stack.enter_context(subprocess.Popen(command, stdout=pipe, text=True))
                stack.callback(process.kill)
                started.append((group, process))
            time.sleep(1)
        return [json.loads(p.communicate()[0]) for group, p in started if group is ends]


def relay(queue: str) -> list:
    """Two senders of datagrams through the relay, over the loopback interface."""
    command = [str(EXAMPLES / "relay"), f"127.0.0.1:{PORT}", "127.0.0.1:8000", RATE, queue]
    loads = [own("flood", "127.0.0.1"), own("probe", "127.0.0.1")]
    return measured([command], [own("sink", "8000")], loads)


def vpn(queue: str) -> list:
    """Eight TCP connections and the probe through the VPN, between two namespaces."""
    spaces = ("embed-a", "embed-b")
    lines = [f"netns add {space}" for space in spaces]
    lines.append("link add wire netns embed-a type veth peer name wire netns embed-b")
    for number, space in enumerate(spaces, 1):
        lines.append(f"-n {space} address add 10.77.0.{number}/24 dev wire")
        lines.append(f"-n {space} link set wire up")
    with ExitStack() as stack:
        for space in spaces:
            stack.callback(subprocess.run, ["ip", "netns", "delete", space], check=False)
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True)
        machines = [
            inside(
                space,
                *own("tun", f"10.78.0.{number}", str(EXAMPLES / "vpn")),
                *(f"10.77.0.{n}:6000" for n in (number, 3 - number)),
                RATE,
                queue,
            )
            for number, space in enumerate(spaces, 1)
        ]
        ends = [inside("embed-b", *own(*role)) for role in (("sink", str(PORT)), ("drain",))]
        loads = [inside("embed-a", *own(role, "10.78.0.2")) for role in ("bulk", "probe")]
        return measured(machines, ends, loads)


def draw(found: dict[tuple[str, str], list[float]]) -> None:
    """The delays of both programs as distributions."""
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    figure, panels = plt.subplots(1, 2, sharey=True, figsize=(8, 3), layout="constrained")
    titles = {"relay": "Relay, datagrams at 25 Mb/s", "vpn": "VPN, eight TCP connections"}
    for panel, (name, title) in zip(panels, titles.items(), strict=True):
        for queue in QUEUES:
            delays = sorted(found[name, queue])
            shares = [(i + 1) / len(delays) * 100 for i in range(len(delays))]
            panel.step(
                delays, shares, where="post", label=queue.replace("channel", "plain channel")
            )
        panel.set(title=title, xlabel="delay of a probe (ms)", xscale="log", xlim=(0.1, 2000))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("probes (%)")
    panels[0].legend()
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        figure.savefig(file.name, dpi=148)
        small = Image.open(file.name).convert("RGB").quantize(64)
        small.save(ROOT / "docs" / "img" / "embed.png", optimize=True)


def main() -> None:
    """Measures, prints and draws."""
    build = ["cargo", "build", "--quiet", "--locked", "--package", "bluewater-aqm"]
    subprocess.run([*build, "--example", "relay", "--example", "vpn"], cwd=ROOT, check=True)
    found = {}
    print("program  queue     p50 (ms)  p99 (ms)  probes  load (Mb/s)")
    for name, run in (("relay", relay), ("vpn", vpn)):
        for queue in QUEUES:
            results = run(queue)
            delays = sorted(results[0][0])
            load = sum(count for _, count in results) * 8 / (SECONDS - SETTLED) / 1e6
            p50, p99 = (delays[int(len(delays) * share)] for share in (0.5, 0.99))
            row = f"{name:8} {queue:9} {p50:8.2f} {p99:9.2f} {len(delays):7} {load:10.1f}"
            print(row, flush=True)
            found[name, queue] = delays
    draw(found)


if __name__ == "__main__":
    if sys.argv[1:]:
        ROLES[sys.argv[1]](*sys.argv[2:])
    else:
        main()

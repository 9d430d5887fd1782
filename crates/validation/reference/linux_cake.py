#!/usr/bin/env python3
# ruff: noqa
"""Measure how a Linux kernel's CAKE shares a link in virtual time, as rows of CSV, one for each flow.

Needs what `python/bluewater/kernel/uml.py` needs, which boots the kernel: Debian's packages
user-mode-linux, iproute2, ethtool and a C compiler. Datagrams only: each flow
sends 1000 bytes at a time at a constant rate, from its host and with its codepoint, whatever becomes of
them. CAKE has its own shaper.

    linux_cake.py [--only TEXT] > linux_cake.csv
"""

import argparse
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python/bluewater/kernel"))
import uml as kernel

COLUMNS = [
    "setting", "qdisc", "rate_mbps", "host", "peer", "dscp", "offered_mbps", "seconds", "warmup_s",
    "got_mbps", "delay_p50_ms", "delay_p95_ms",
]  # fmt: skip
RATE = 8  # Mb/s
DATAGRAM = 1000
SECONDS, WARMUP = 14, 4


def flow(host=0, peer=0, dscp=0, mbps=RATE):
    return {"host": host, "peer": peer, "dscp": dscp, "offered_mbps": mbps}


def settings():
    # One flow of a host, eight of another, all from hosts of their own and to hosts of their own.
    crowd = [flow(0, 0, mbps=8)] + [flow(1, n, mbps=4) for n in range(1, 9)]
    back = [flow(f["peer"], f["host"], mbps=f["offered_mbps"]) for f in crowd]
    for isolation, flows in [
        ("flows", crowd), ("dual-srchost", crowd), ("dual-dsthost", crowd), ("dual-dsthost", back),
        ("triple-isolate", crowd), ("triple-isolate", back), ("srchost", crowd), ("hosts", crowd),
    ]:  # fmt: skip
        way = "many senders" if flows is back else "one against eight"
        yield {"setting": f"{isolation}: {way}", "words": f"besteffort {isolation}", "flows": flows}
    points = {"diffserv3": [0, 8, 46], "diffserv4": [0, 8, 34, 46],
              "diffserv8": [1, 8, 0, 34, 18, 16, 46, 48], "precedence": [0, 8, 16, 24, 32, 40, 48, 56]}  # fmt: skip
    for name, codepoints in points.items():
        flows = [flow(dscp=dscp) for dscp in codepoints]
        yield {"setting": name, "words": f"{name} flows", "flows": flows}
    sparse = [flow(dscp=0, mbps=0.4)] + [flow(mbps=4) for _ in range(4)]
    yield {"setting": "a sparse flow", "words": "besteffort flows", "flows": sparse}
    voice = [flow(dscp=46, mbps=0.4), flow(mbps=8), flow(dscp=8, mbps=8)]
    yield {"setting": "a voice", "words": "diffserv3 triple-isolate", "flows": voice}


# --- inside


def address(net, host):
    return f"10.0.{net}.{10 + host}"


def build_network(s):
    hosts = [
        (0, "snd", "s0", {f["host"] for f in s["flows"]}),
        (1, "rcv", "r0", {f["peer"] for f in s["flows"]}),
    ]
    kernel.batch(
        "ip",
        "netns add snd\nnetns add rcv\n"
        "link add m0 type veth peer name s0 netns snd\nlink add m1 type veth peer name r0 netns rcv\n"
        "addr add 10.0.0.2/24 dev m0\naddr add 10.0.1.2/24 dev m1\nlink set m0 up\nlink set m1 up",
    )
    for net, namespace, port, numbers in hosts:
        own = "\n".join(f"addr add {address(net, n)}/24 dev {port}" for n in sorted(numbers))
        kernel.batch(
            f"ip -n {namespace}",
            f"{own}\nlink set {port} up\nroute add default via 10.0.{net}.2",
        )
    kernel.batch("tc", f"qdisc add dev m1 root handle 10: {s['qdisc']}")
    kernel.write("ip_forward", 1)


def receive(s):
    """Each flow's bytes and delays in the window, written when asked to."""
    kernel.enter("rcv")
    begin = time.monotonic()
    got = [[] for _ in s["flows"]]

    def take(n, f):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        udp.bind((address(1, f["peer"]), 5000 + n))
        while True:
            sent = struct.unpack_from("=d", udp.recv(2000))[0]
            now = time.monotonic()
            if s["warmup_s"] <= now - begin < s["seconds"]:
                got[n].append(now - sent)

    for n, f in enumerate(s["flows"]):
        threading.Thread(target=take, args=[n, f], daemon=True).start()
    time.sleep(s["seconds"])
    span = s["seconds"] - s["warmup_s"]
    rows = []
    for f, delays in zip(s["flows"], got):
        delays.sort()
        at = lambda share: round(1e3 * delays[int(len(delays) * share)], 2) if delays else 0
        mbps = round(len(delays) * DATAGRAM * 8e-6 / span, 4)
        rows.append({**f, "got_mbps": mbps, "delay_p50_ms": at(0.5), "delay_p95_ms": at(0.95)})
    return rows


def send(s):
    kernel.enter("snd")
    threading.stack_size(1 << 16)

    def one(n, f):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, f["dscp"] << 2)
        udp.bind((address(0, f["host"]), 6000 + n))
        gap = DATAGRAM * 8 / (f["offered_mbps"] * 1e6)
        begin = time.monotonic() + gap * n / len(s["flows"])
        rest = b"\0" * (DATAGRAM - 8)
        count = 0
        while True:
            time.sleep(max(0, begin + count * gap - time.monotonic()))
            udp.sendto(
                struct.pack("=d", time.monotonic()) + rest, (address(1, f["peer"]), 5000 + n)
            )
            count += 1

    for n, f in enumerate(s["flows"]):
        threading.Thread(target=one, args=[n, f]).start()
    signal.pause()


def inside(s):
    kernel.prepare(["drivers/net/veth", "net/sched/sch_cake"])
    build_network(s)
    sender = os.fork()
    if sender == 0:
        try:
            send(s)
        finally:
            os._exit(1)
    rows = receive(s)
    os.kill(sender, signal.SIGKILL)
    return rows


# --- outside


def outside():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", default="")
    wanted = arguments.parse_args().only
    print(",".join(COLUMNS))
    for s in settings():
        if wanted not in s["setting"]:
            continue
        s |= {"rate_mbps": RATE, "seconds": SECONDS, "warmup_s": WARMUP, "seed": 1}
        s["qdisc"] = f"cake bandwidth {RATE}mbit {s['words']} raw"
        with tempfile.TemporaryDirectory() as folder:
            rows = kernel.run(s, folder, __file__)
        for row in rows:
            values = {**s, **row}
            print(",".join(str(values[c]) for c in COLUMNS), flush=True)


if __name__ == "__main__":
    kernel.main(inside, outside)

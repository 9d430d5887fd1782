#!/usr/bin/env python3
# ruff: noqa
"""Measure the TCP and the queue disciplines of a Linux kernel in virtual time, as rows of CSV.

Needs what `python/bluewater/kernel/uml.py` needs, which boots the kernel: Debian's packages
user-mode-linux, iproute2, ethtool and a C compiler. A row measured again still
differs, as one of another seed does; from what is not known.

    linux_tcp.py [--seeds 3] [--only TEXT] > linux_tcp.csv
    linux_tcp.py --bbr [--seeds 3] [--only TEXT] > linux_bbr.csv
    linux_tcp.py --dctcp --kernel PROGRAM [--seeds 3] [--only TEXT] > linux_dctcp.csv
    linux_tcp.py --json SETTING [--kernel PROGRAM]

A setting of your own may have `sysctl`, names below net.ipv4 and values, for both ends.

The network: a sender, a router and a receiver, each a network namespace. The router's way to the
receiver is an htb class of the given rate with the queue discipline below it, its way back a netem
with the whole round trip. Nothing else takes time. Segmentation offloads of all interfaces are off;
the kernel still gives segments to the sender's interface in bursts, as its autosizing says. A setting
may say what burst the class has, in bytes (1: none; 1514: a packet after idleness). Each flow starts at a time of its own within the first second.
With congestion controls joined by + flows take them in turn, and first_mbps is what those of the first
one got.
"""

import argparse
import json
import mmap
import os
import random
import re
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

NEEDED = [
    "drivers/net/veth",
    "net/sched/sch_htb",
    "net/sched/sch_netem",
    "net/ipv4/tcp_bbr",
    "net/ipv4/tcp_dctcp",
]
PAYLOAD = 1448  # bytes of a segment of 1514 on the wire, with timestamps
DATAGRAM = 1000
COLUMNS = [
    "qdisc", "limit", "rate_mbps", "rtt_ms", "flows", "cc", "ecn", "udp_mbps", "burst", "seed",
    "seconds", "warmup_s", "tcp_mbps", "udp_goodput_mbps", "queue_packets", "queue_bytes",
    "sent", "drops", "marks", "retransmits", "timeouts",
    "delay_p50_ms", "delay_p95_ms", "jain",
]  # fmt: skip
FIRST_PORT = 6000  # of the flows, where it matters which is which
EXACT_PORT = 5002  # of the receiver of DCTCP
QDISC = 0x100000  # the handle of the queue discipline, 10:

# --- inside


def build_network(s):
    kernel.batch(
        "ip",
        "netns add snd\nnetns add rcv\n"
        "link add m0 type veth peer name s0 netns snd\nlink add m1 type veth peer name r0 netns rcv\n"
        "addr add 10.0.0.2/24 dev m0\naddr add 10.0.1.2/24 dev m1\nlink set m0 up\nlink set m1 up",
    )
    for namespace, port, net in [("snd", "s0", 0), ("rcv", "r0", 1)]:
        kernel.batch(
            f"ip -n {namespace}",
            f"addr add 10.0.{net}.1/24 dev {port}\nlink set {port} up\n"
            f"route add default via 10.0.{net}.2",
        )
    kernel.batch(
        "tc",
        f"""qdisc add dev m1 root handle 1: htb default 1
        class add dev m1 parent 1: classid 1:1 htb rate {s["rate_mbps"]}mbit burst {s["burst"]}b cburst {s["burst"]}b
        qdisc add dev m0 root netem delay {s["rtt_ms"]}ms limit 1000000""",
    )
    name, *words = s["qdisc"].split()
    if name == "dualpi2":
        kernel.qdisc("m1", 0x10001, QDISC, name, list(kernel.dualpi2(words)))
    else:
        kernel.batch("tc", f"qdisc add dev m1 parent 1:1 handle 10: {s['qdisc']}")
    kernel.write("ip_forward", 1)
    kernel.whole_segments(["m0", "m1"])


def be_host(s, namespace, interface):
    kernel.enter(namespace)
    kernel.whole_segments([interface])
    kernel.write("tcp_no_metrics_save", 1)
    kernel.write("tcp_ecn", s["ecn"])
    if "ecn_fallback" in s:  # 0: a SYN that is sent again asks for ECN all the same
        kernel.write("tcp_ecn_fallback", s["ecn_fallback"])
    for name, value in s.get("sysctl", {}).items():
        kernel.write(name, value)
    kernel.write("tcp_rmem", "4096 131072 6291456")
    kernel.write("tcp_wmem", "4096 16384 4194304")


# Both ends wait inside the kernel (MSG_WAITALL, a buffer of megabytes), where each segment is taken at
# once without a switch to this program and back, which is what costs.


BUFFER = bytearray(1 << 24)  # of all connections: nobody reads it


def drain(connection):
    while connection.recv_into(BUFFER, 0, socket.MSG_WAITALL):
        pass


def receive(s, delivered):
    """Counts the bytes in order so far of the datagrams (first) and of each flow, when asked to."""
    be_host(s, "rcv", "r0")
    listener = socket.create_server(("10.0.1.1", 5000), backlog=1024)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    udp.bind(("10.0.1.1", 5001))
    flows = []

    def count(*_):
        for n, flow in enumerate(flows):
            info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            port = flow.getpeername()[1] - FIRST_PORT
            n = port if 0 <= port < s["flows"] and "+" in s["cc"] else n
            delivered[n + 1] = struct.unpack_from("=Q", info, 128)[0]  # tcpi_bytes_received

    signal.signal(signal.SIGUSR1, count)

    def accept(listener):
        while True:
            connection, _ = listener.accept()
            flows.append(connection)
            threading.Thread(target=drain, args=[connection]).start()

    # DCTCP's receiver echoes each mark, for which it has to run DCTCP itself.
    exact = socket.create_server(("10.0.1.1", EXACT_PORT), backlog=1024)
    exact.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"dctcp")
    threading.Thread(target=accept, args=[listener]).start()
    threading.Thread(target=accept, args=[exact]).start()
    while True:
        signal.pause()


def feed(n, start, s):
    time.sleep(start)
    flow = socket.socket()
    controls = s["cc"].split("+")
    if len(controls) > 1:
        flow.bind(("10.0.0.1", FIRST_PORT + n))
    control = controls[n % len(controls)]
    flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    flow.connect(("10.0.1.1", EXACT_PORT if control == "dctcp" else 5000))
    while True:
        flow.send(BUFFER)


def send(s):
    be_host(s, "snd", "s0")
    threading.stack_size(1 << 16)
    rng = random.Random(s["seed"])
    for n in range(s["flows"]):
        threading.Thread(target=feed, args=[n, rng.uniform(0, 1), s]).start()
    while True:
        signal.pause()


def send_datagrams(s):
    kernel.enter("snd")
    gap = DATAGRAM * 8 / (s["udp_mbps"] * 1e6)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    data = b"\0" * DATAGRAM
    begin = time.monotonic()
    n = 0
    while True:
        udp.sendto(data, ("10.0.1.1", 5001))
        n += 1
        time.sleep(max(0, begin + n * gap - time.monotonic()))


def counters(s, receiver, sender, *_):
    """What the queue discipline and the sender have counted so far."""
    text = kernel.shell("tc -s qdisc show dev m1")
    text = text[text.index("qdisc " + s["qdisc"].split()[0]) :]
    text = text.split("\nqdisc ")[0]
    number = lambda pattern: sum(map(int, re.findall(pattern, text)))
    found = {
        "sent": number(r"Sent \d+ bytes (\d+) pkt"),
        "drops": number(r"dropped (\d+),"),
        "marks": number(r"(?:\bmarked|ecn_mark|ce_mark) (\d+)"),
    }
    if s["qdisc"].startswith("dualpi2"):  # of which `tc` knows nothing
        found["marks"] = kernel.statistics("m1", QDISC)["own"][6]  # tc_dualpi2_xstats
    for pid, file, table, name, column in [
        (sender, "snmp", "Tcp", "RetransSegs", "retransmits"),
        (sender, "netstat", "TcpExt", "TCPTimeouts", "timeouts"),
        (receiver, "snmp", "Udp", "InDatagrams", "taken"),
        (receiver, "snmp", "Udp", "RcvbufErrors", "untaken"),
    ]:
        lines = Path(f"/proc/{pid}/net/{file}").read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith(table + ":"))
        found[column] = int(values[names.index(name)])
    return found


def inside(s):
    kernel.prepare({*NEEDED, f"net/sched/sch_{s['qdisc'].split()[0]}"})
    return measure(s)


def begun(s, delivered):
    """The processes that receive, send, and send datagrams."""
    work = [lambda: receive(s, delivered), lambda: send(s)]
    if s["udp_mbps"]:
        work.append(lambda: send_datagrams(s))
    started = []
    for each in work:
        started.append(os.fork())
        if started[-1] == 0:
            try:
                each()
            finally:
                os._exit(1)
        time.sleep(0.1)
    return started


def queued(s, end):
    """Bytes and packets in the queue at random times until then."""
    rng = random.Random(s["seed"] + 1000)
    span = s["seconds"] - s["warmup_s"]
    found = []
    while True:
        wait = rng.uniform(0, min(0.08, span / 250))
        if time.monotonic() + wait >= end:
            break
        time.sleep(wait)
        packets, octets = kernel.statistics("m1", QDISC)["queue"][:2]
        found.append((octets, packets))
    time.sleep(end - time.monotonic())
    return found


def measure(s):
    build_network(s)
    kernel.draws(s["seed"])
    delivered = memoryview(mmap.mmap(-1, 1 << 16)).cast("Q")
    started = begun(s, delivered)

    def count():
        os.kill(started[0], signal.SIGUSR1)
        time.sleep(1e-6)
        return list(delivered)

    begin = time.monotonic()
    time.sleep(s["warmup_s"])
    before, had = counters(s, *started), count()
    samples = queued(s, begin + s["seconds"])
    after, has = counters(s, *started), count()
    span = s["seconds"] - s["warmup_s"]
    each = [(b - a) * 8e-6 / span for a, b in zip(had, has)]
    flows = each[1 : s["flows"] + 1]
    delays = sorted(octets * 8e3 / (s["rate_mbps"] * 1e6) for octets, _ in samples)
    s["tcp_mbps"] = round(sum(flows), 4)
    s["first_mbps"] = round(sum(flows[:: len(s["cc"].split("+"))]), 4)
    s["queue_packets"] = round(sum(packets for _, packets in samples) / len(samples), 3)
    s["queue_bytes"] = round(sum(octets for octets, _ in samples) / len(samples), 1)
    s["delay_p50_ms"] = round(delays[len(delays) // 2], 2)
    s["delay_p95_ms"] = round(delays[len(delays) * 95 // 100], 2)
    squares = sum(f * f for f in flows)
    s["jain"] = round(sum(flows) ** 2 / (len(flows) * squares), 4) if squares else 0
    for name in after:
        s[name] = after[name] - before[name]
    # Nobody reads the datagrams: they count all the same.
    s["udp_goodput_mbps"] = round((s["taken"] + s["untaken"]) * DATAGRAM * 8e-6 / span, 4)
    if s.get("debug"):
        print(
            kernel.shell("tc -s qdisc show dev m1"),
            kernel.shell("ip netns exec snd ss -ti"),
            kernel.shell("ip netns exec snd nstat -as"),
            kernel.shell("ip netns exec rcv nstat -as"),
        )
    for child in started:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    kernel.batch("ip", "link del m0\nlink del m1\nnetns del snd\nnetns del rcv")
    return s


# --- outside


def qdisc(name, rate, limit, ecn):
    """tc's words. RED has its thresholds at about 12 and 36 ms."""
    least = {5: 7500, 10: 15000, 20: 30000, 50: 60000, 100: 120000}.get(rate, 1500 * rate)
    burst = 5 * least // 3000 + 1
    return {
        "pfifo": f"pfifo limit {limit}",
        "red": f"red limit {10 * least} min {least} max {3 * least} avpkt 1000 burst {burst}"
        f" probability 0.1 bandwidth {rate}mbit",
        "choke": f"choke limit {10 * least // 1000} min {least // 1000} max {3 * least // 1000}"
        f" probability 0.1 bandwidth {rate}mbit",
        "codel": "codel limit 1000",
        "fq_codel": "fq_codel limit 10240",
        "pie": "pie limit 1000",
    }[name] + (" ecn" if ecn and name != "pfifo" else " noecn" if name == "fq_codel" else "")


# Mb/s, ms, flows and how long: the more packets, the shorter.
LINKS = {
    "a": (5, 40, 1, 60), "b": (10, 40, 4, 40), "c": (20, 100, 10, 21),
    "d": (50, 40, 40, 16), "e": (100, 20, 80, 12),
}  # fmt: skip
TABLE = """
    pfifo a cubic, red a cubic, codel a reno ecn, pie a cubic ecn
    pfifo b cubic, red b cubic, codel b cubic ecn, pie b cubic
    pfifo a reno, red b reno ecn, codel b reno, pie c reno ecn
    pfifo c reno, red c cubic ecn, codel c cubic, pie c cubic ecn
    pfifo d cubic, red d reno, codel d cubic ecn, pie d cubic
    pfifo e reno, red e cubic ecn, codel e reno, pie e cubic ecn
"""


def settings():
    for each in TABLE.replace("\n", ",").split(","):
        if not each.strip():
            continue
        name, link, cc, *ecn = each.split()
        rate, rtt, flows, seconds = LINKS[link]
        yield {
            "name": name, "rate_mbps": rate, "rtt_ms": rtt, "flows": flows, "cc": cc, "ecn": len(ecn),
            "udp_mbps": 0, "seconds": seconds, "warmup_s": min(10, seconds / 3),
        }  # fmt: skip
    # A deep buffer, of sixty times what the path holds, and shallow ones, in which bursts matter.
    for cc in ["cubic", "reno"]:
        yield {
            "name": "pfifo", "rate_mbps": 10, "rtt_ms": 20, "flows": 1, "cc": cc, "ecn": 0,
            "limit": 1000, "seconds": 120, "warmup_s": 30,
        }  # fmt: skip
    for flows in [1, 4]:
        for limit in [41, 83, 165]:
            yield {
                "name": "pfifo", "rate_mbps": 100, "rtt_ms": 10, "flows": flows, "cc": "cubic", "ecn": 0,
                "limit": limit, "seconds": 20, "warmup_s": 5,
            }  # fmt: skip
    for udp in [5, 20]:
        for name, seconds, warmup in [
            ("pie", 15, 2), ("red", 15, 2), ("choke", 15, 2), ("pie", 20, 0), ("red", 20, 0), ("choke", 20, 0),
        ]:  # fmt: skip
            yield {
                "name": name, "rate_mbps": 10, "rtt_ms": 20, "flows": 4, "cc": "cubic", "ecn": 1,
                "udp_mbps": udp, "seconds": seconds, "warmup_s": warmup,
            }  # fmt: skip


def bbr_settings():
    """Alone, two, and beside CUBIC, in queues of so many BDPs of 66 packets; alone with losses."""
    for cc, flows in [("bbr", 1), ("bbr", 2), ("bbr+cubic", 2)]:
        for bdps in [0.5, 1, 2, 5, 10]:
            yield {
                "name": "pfifo", "rate_mbps": 20, "rtt_ms": 40, "flows": flows, "cc": cc, "ecn": 0,
                "limit": round(66 * bdps), "seconds": 60, "warmup_s": 15,
            }  # fmt: skip
    for percent in [1, 5, 10]:
        yield {
            "qdisc": f"netem loss {percent}% limit 1000", "limit": 1000, "rate_mbps": 20, "rtt_ms": 40,
            "flows": 1, "cc": "bbr", "ecn": 0, "seconds": 60, "warmup_s": 15,
        }  # fmt: skip


def dctcp_settings():
    """DCTCP above a step, in DualPI2, and there beside CUBIC without ECN."""
    step = "codel limit 1000 target 400ms interval 400ms ecn ce_threshold 1ms"
    dual = "dualpi2 any_ect limit 1000"
    longer = "dualpi2 any_ect min_qlen_step 2 limit 1000"
    fast, slow = {"seconds": 20, "warmup_s": 5}, {"seconds": 120, "warmup_s": 20}
    for rate, rtt, flows, cc, times, qdiscs in [
        (100, 10, 10, "dctcp", fast, [step, dual]), (100, 10, 20, "dctcp", fast, [step, dual]),
        (100, 10, 20, "dctcp+cubic", fast, [dual]),
        (10, 20, 2, "dctcp+cubic", slow, [dual, longer]), (10, 80, 2, "dctcp+cubic", slow, [dual, longer]),
    ]:  # fmt: skip
        for qdisc in qdiscs:
            yield {
                "qdisc": qdisc, "limit": 1000, "rate_mbps": rate, "rtt_ms": rtt, "flows": flows, "cc": cc,
                "ecn": 0, **times,
            }  # fmt: skip


def complete(s):
    s = {"seconds": 40, "warmup_s": 10, "udp_mbps": 0, "burst": 1, **s}
    # pfifo holds what the path holds; 20 packets at least.
    s.setdefault("limit", max(20, round(s["rate_mbps"] * s["rtt_ms"] / 8 / 1.514)))
    if "qdisc" not in s:
        s["qdisc"] = qdisc(s["name"], s["rate_mbps"], s["limit"], s["ecn"])
    return s


def outside():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first", type=int, default=1, help="the first seed")
    options.add_argument("--only", default="", help="settings whose description contains this")
    options.add_argument("--bbr", action="store_true", help="the settings with BBR")
    options.add_argument("--dctcp", action="store_true", help="the settings with DCTCP")
    options.add_argument("--json", help="one setting of your own instead")
    options.add_argument("--kernel", default=kernel.DEBIAN, help="one that linux_build.sh built")
    options = options.parse_args()
    wanted = bbr_settings() if options.bbr else dctcp_settings() if options.dctcp else settings()
    wanted = [json.loads(options.json)] if options.json else wanted
    wanted = [s for s in map(complete, wanted) if options.only in " ".join(map(str, s.values()))]
    columns = COLUMNS + ["first_mbps"] * any("+" in s["cc"] or options.bbr for s in wanted)
    print(",".join(columns), flush=True)
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory() as folder:
            for s in wanted:
                row = kernel.run({**s, "seed": seed}, folder, __file__, options.kernel)
                print(",".join(str(row[c]) for c in columns), flush=True)


if __name__ == "__main__":
    kernel.main(inside, outside)

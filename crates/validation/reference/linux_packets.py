#!/usr/bin/env python3
# ruff: noqa
"""Record what a Linux kernel's queue disciplines do to each packet of a schedule, in virtual time.

Needs what `python/bluewater/kernel/uml.py` needs, which boots the kernel: Debian's packages
user-mode-linux, iproute2, ethtool and a C compiler. Datagrams of a few flows come
straight to the queue discipline (below an htb class with a burst of forty bytes; CAKE has its own shaper), at
times that a seed says; a capture behind it tells which come out, when, and with which ECN field. A row is
a setting; `fates` has a character for each packet that came (s: sent, m: marked and sent, d: dropped),
`order` the flow of each packet that left, and `delays` of every 50th that came the time that it took, in
ns, - if it did not leave.

All times are multiples of what this kernel's clock counts, so that each packet comes and leaves to the
nanosecond when it should, and never comes while one leaves: what is first then, a few hundred
nanoseconds decide.

    linux_packets.py [--only TEXT] > linux_packets.csv
    linux_packets.py --drawn --kernel PROGRAM [--only TEXT] > linux_drawn.csv

The second is of disciplines that draw, or that Debian's kernel has not, and needs a kernel that
`linux_build.sh` built: what they draw, ours can draw, too. `made` is how long before the schedule the
discipline was made, in ns, and its timer started (of pie, a period before its first update). The settings of the first run under such a kernel,
too: `linux_packets_72.csv` has those of CAKE, where it differs from 6.1, which CoDel and FQ-CoDel do not
(`--kernel PROGRAM --only "whole quanta"`).
"""

import argparse
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python/bluewater/kernel"))
import uml as kernel
from settings import schedule as packets

COLUMNS = ["setting", "qdisc", "rate_mbps", "flows", "seed", "phases", "fates", "order", "delays"]
RATE = 10  # Mb/s
LENGTHS = [1504, 1504, 992, 288, 96]  # on the wire, of which a packet has one
GRID = 25_600  # ns, 32 bytes: all packets come at multiples of it
# CAKE rounds what a flow gets in a turn down by chance, mostly to a byte less than nothing. Of a function
# that says -95 in place of a random number it gets all of it.
WHOLE = [(b"get_random_u16", b"sock_no_bind")]
TICK = 10_000_000  # ns
BURST = 40  # bytes of the class, 32 us
LONG = "500:120 1500:180 500:50 1500:130 300:20 1000:300 700:60"
MILD = "1000:110 500:60 1500:115 500:30 1500:125 500:90"
CALM = "700:150 300:100 3500:10 2500:150 500:120"  # p comes back to 0
WAVES = "500:180 250:50 600:130 200:20 300:300 500:60"  # ms, and load in % of the rate


# --- the schedule, as `linux_packets.rs` has it


def schedule(s):
    """Of each packet when it comes, ns, its flow and its length."""
    flows = len(s["flows"].split())
    return packets(s["phases"], flows, s["seed"], 8000 // s["rate_mbps"], LENGTHS, GRID)


def exact_settings():
    """Flows are named by their fields of DiffServ and ECN, 8 bits."""
    for name, qdisc, flows, phases in [
        ("codel", "codel limit 1000 noecn", "0", WAVES),
        ("codel: ECN", "codel limit 1000 ecn", "0 2 1", WAVES),
        ("codel: a full buffer", "codel limit 60 ecn", "0 2", WAVES),
        ("codel: ce_threshold", "codel limit 1000 ecn ce_threshold 20ms", "0 2", WAVES),
        ("fq_codel", "fq_codel limit 10240", "0 2 1 0", WAVES),
        ("fq_codel: quantum 300", "fq_codel limit 10240 quantum 300 noecn", "0 0 0", WAVES),
        ("fq_codel: a full buffer", "fq_codel limit 60", "0 2 0", WAVES),
        ("cake", "cake bandwidth 10mbit besteffort flows raw", "0 2 1 0", WAVES),
        ("cake: diffserv4", "cake bandwidth 10mbit diffserv4 flows raw", "0 2 32 186 136", WAVES),
        ("cake: rtt 20 ms", "cake bandwidth 10mbit besteffort flows raw rtt 20ms", "0 0", WAVES),
        ("cake: one queue", "cake bandwidth 10mbit besteffort flowblind raw", "0 2 1 0", WAVES),
    ]:  # fmt: skip
        row = {"setting": name, "qdisc": qdisc, "rate_mbps": RATE, "flows": flows, "phases": phases,
               "seed": 1}  # fmt: skip
        yield row
        if qdisc.startswith("cake"):
            yield {**row, "setting": f"{name} (whole quanta)", "whole": True}


def drawn_settings():
    red = f"red limit 150000 min 15000 max 45000 avpkt 1000 burst 26 probability 0.1 bandwidth {RATE}mbit"
    for name, qdisc, flows, phases in [
        ("dualpi2: classic", "dualpi2", "0 2", LONG),
        ("dualpi2: L4S", "dualpi2", "1", LONG),
        ("dualpi2: both", "dualpi2", "0 2 1", LONG),
        ("dualpi2: mostly L4S", "dualpi2", "0 1 1 3", LONG),
        ("dualpi2: below overload", "dualpi2", "0 2 1 1", MILD),
        ("dualpi2: coupling 4", "dualpi2 coupling_factor 4", "0 2 1", MILD),
        ("dualpi2: step 5 ms", "dualpi2 step_thresh 5ms", "2 1", MILD),
        ("dualpi2: C gets 40 %", "dualpi2 classic_protection 40", "0 2 1", LONG),
        ("dualpi2: any ECT", "dualpi2 any_ect", "0 2 1", LONG),
        ("dualpi2: target 5 ms", "dualpi2 target 5ms tupdate 8ms", "0 2 1", LONG),
        ("dualpi2: overflow", "dualpi2 limit 100 overflow", "0 2 1", LONG),
        ("dualpi2: a full buffer", "dualpi2 limit 40", "0 2 1", LONG),
        ("dualpi2: at arrival", "dualpi2 drop_enqueue", "0 2 1", LONG),
        ("pie", "pie limit 1000", "0 2", LONG),
        ("pie: ECN", "pie limit 1000 ecn", "0 2", LONG),
        ("pie: a full buffer", "pie limit 60 ecn", "0 2", LONG),
        ("pie: bytes", "pie limit 1000 bytemode", "0", LONG),
        ("fq_pie", "fq_pie limit 10240", "0 0 0", LONG),
        ("fq_pie: ECN", "fq_pie limit 10240 ecn", "0 2 1", LONG),
        ("fq_pie: a full buffer", "fq_pie limit 60 ecn", "0 2 1", LONG),
        ("fq_pie: quantum 300", "fq_pie limit 10240 quantum 300", "0 2 1 0", LONG),
        ("pie: after a calm", "pie limit 1000 ecn", "0 2", CALM),
        ("fq_pie: after a calm", "fq_pie limit 10240 ecn", "0 2 1", CALM),
        ("red", red, "0 2", LONG),
        ("red: ECN", red + " ecn", "0 2", LONG),
    ]:  # fmt: skip
        yield {"setting": name, "qdisc": qdisc, "rate_mbps": RATE, "flows": flows, "phases": phases,
               "seed": 1}  # fmt: skip


# --- inside


def build_network():
    kernel.batch("ip", "netns add rcv\nlink add m1 type veth peer name r0 netns rcv")
    for family in ["all", "default", "m1"]:
        path = Path(f"/proc/sys/net/ipv6/conf/{family}/disable_ipv6")
        if path.exists():
            path.write_text("1\n")
    # Nobody answers: the other end has no address.
    kernel.batch(
        "ip",
        "addr add 10.0.1.2/24 dev m1\nlink set m1 up\n"
        "neigh add 10.0.1.1 lladdr 02:00:00:00:00:01 dev m1 nud permanent",
    )
    kernel.batch("ip -n rcv", "link set r0 address 02:00:00:00:00:01 arp off up")
    kernel.whole_segments(["m1"])


def queue(s):
    words = s["qdisc"].split()
    own = words[0] == "cake"
    rate = f"{s['rate_mbps']}mbit burst {BURST}b cburst {BURST}b"
    root = f"qdisc replace dev m1 root handle 1: {s['qdisc']}"
    if not own:
        root = (
            "qdisc replace dev m1 root handle 1: htb default 1\n"
            f"class add dev m1 parent 1: classid 1:1 htb rate {rate}"
        )
    if words[0] != "dualpi2" and not own:
        root += f"\nqdisc add dev m1 parent 1:1 handle 10: {s['qdisc']}"
    kernel.batch("tc", root)
    if s["virtual"]:
        kernel.draws(s["seed"])
        if s.get("whole"):
            kernel.whole_quanta()
    made = time.monotonic_ns()
    if words[0] == "dualpi2":
        kernel.qdisc("m1", 0x10001, 0x100000, "dualpi2", list(kernel.dualpi2(words[1:])))
    return made


def play(s, tap):
    """When each packet came out, after when it came in (ns), and its second byte of IP."""
    flows = []
    for n, field in enumerate(s["flows"].split()):
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(field))
        udp.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
        udp.bind(("10.0.1.2", 6000 + n))
        flows.append(udp)
    coming = schedule(s)
    begin = (time.monotonic_ns() + 10_000_000) // GRID * GRID
    wall = time.time_ns() - time.monotonic_ns()
    # Under virtual time of its own the kernel takes 1 ns for each look at the clock.
    late = []
    for n, (at, flow, length) in enumerate(coming):
        kernel.wait_until(begin + at)
        if not s["virtual"]:
            late.append(time.monotonic_ns() - begin - at)
        flows[flow].sendto(struct.pack("!I", n).ljust(length - 42, b"\0"), ("10.0.1.1", 5000))
    if any(late):
        raise ValueError(f"a packet came {max(late)} ns late")
    time.sleep(4)
    found = kernel.captured(tap)
    return begin, [
        found[n] and (found[n][0] - wall - begin - at, found[n][1]) if n in found else None
        for n, (at, _, _) in enumerate(coming)
    ]


def fates(s, gone):
    fields = [int(field) for field in s["flows"].split()]
    for (_, flow, _), out in zip(schedule(s), gone):
        yield "d" if not out else "s" if out[1] == fields[flow] else "m"


def exactly(s, gone):
    came = [(at + out[0], flow) for (at, flow, _), out in zip(schedule(s), gone) if out]
    delays = [str(out[0]) if out else "-" for out in gone[::50]]
    return [
        "".join(fates(s, gone)),
        "".join(str(flow) for _, flow in sorted(came)),
        " ".join(delays),
    ]


def inside(s):
    discipline = f"net/sched/sch_{s['qdisc'].split()[0]}"
    whole = {"net/sched/sch_cake": WHOLE} if s.get("whole") else {}
    kernel.prepare(["drivers/net/veth", "net/sched/sch_htb", discipline], whole)
    build_network()
    tap = kernel.watch("m1")
    time.sleep(0.5)
    made = queue(s)
    time.sleep(0.6)
    kernel.captured(tap)
    if discipline.endswith("pie"):
        # Its first update comes 50 ticks of 10 ms after this, and one more since it never comes early;
        # then every two and one.
        made = (made // TICK + 51 - 3) * TICK
    begin, gone = play(s, tap)
    return [*exactly(s, gone), begin - made]


# --- outside


def outside():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--only", default="")
    arguments.add_argument("--drawn", action="store_true")
    arguments.add_argument("--kernel", default=kernel.DEBIAN)
    options = arguments.parse_args()
    columns = COLUMNS + ["made"] if options.drawn else COLUMNS
    print(",".join(columns))
    for s in drawn_settings() if options.drawn else exact_settings():
        if options.only not in s["setting"]:
            continue
        s["virtual"] = options.kernel != kernel.DEBIAN
        s["environment"] = {"GRID": "256"}
        with tempfile.TemporaryDirectory() as folder:
            measured = kernel.run(s, folder, __file__, options.kernel)
        if s["virtual"] and not options.drawn:
            s["setting"] = s["setting"].replace("cake", "cake of 7.2")
        values = [s[c] for c in COLUMNS[:6]] + measured
        print(",".join(map(str, values[: len(columns)])), flush=True)


if __name__ == "__main__":
    kernel.main(inside, outside)

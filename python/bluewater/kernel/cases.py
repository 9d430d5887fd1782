"""The settings that a kernel's queue disciplines are compared in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bluewater.kernel.settings import RATE, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DSCPS = "0 2 4 32 40 104 72 64 186 192 224 16 136"
"""A flow of each tin, however CAKE sorts codepoints."""
HOSTS = "0@0>0 2@0>1 0@1>0 2@1>2 0@2>2 1@2>1 0@3>3"
"""Two flows of a host at most: a third of a quantum is no whole number of bytes, as the kernel's is."""
GSO = "0/tcp-gso 1/tcp6-gso 0 2/udp-gso 1"
LONG = "500:120 750:180 250:50 750:130 150:20 500:300 350:60"
MILD = "500:110 250:60 750:115 250:30 750:125 250:90"
CALM = "700:150 300:100 2500:10 1500:150 300:120"
DEEP = "900:170 500:220 300:80 1500:20 500:150"
CROWD = "700:300 900:40 700:250"
SLOW = "6000:4 9000:1 6000:3"


def many(count: int, bytes_: Sequence[int], hosts: int = 17) -> str:
    """So many flows between hosts."""
    return " ".join(f"{bytes_[n % len(bytes_)]}@{n % hosts}>{n % 5}" for n in range(count))


def _codel(aqm: str, *, ecn: bool, **more: Any) -> dict[str, Any]:
    """What ours needs to be CoDel of the kernel: its times are whole ticks of 1024 ns."""
    params = {"target": "4999168ns", "interval": "99999744ns", "root": "newton", "preset": "linux"}
    return {"aqm": aqm, "params": {**params, "ecn": ecn, **more}, "drawn": 2 * (aqm == "fq-codel")}


def _pie(aqm: str, *, ecn: bool = False, **more: Any) -> dict[str, Any]:
    """PIE's timer has ticks of 10 ms and comes one late: 15 ms are 30."""
    params = {"preset": "linux", "ecn": ecn, "t_update": "30ms", **more}
    return {"aqm": aqm, "params": params, "drawn": 2 * (aqm == "fq-pie")}


def _cake(**more: Any) -> dict[str, Any]:
    params = {"diffserv": "besteffort", "isolation": "flows", **more}
    if params["isolation"] != "flowblind":
        params["rounds"] = "each"
    return {"aqm": "cake", "buffer": "10000p", "params": params}


def _dualpi2(buffer: str = "10000p", **more: Any) -> dict[str, Any]:
    return {"aqm": "dualpi2", "buffer": buffer, "params": {"preset": "linux", **more}}


_RED = "limit 150000 min 15000 max 45000 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"


def _all() -> Iterator[Setting]:
    s = Setting
    yield s("codel", "codel limit 1000 noecn", "0", **_codel("codel", ecn=False))
    yield s("codel: ECN", "codel limit 1000 ecn", "0 2 1", **_codel("codel", ecn=True))
    yield s(
        "codel: a full buffer",
        "codel limit 60 ecn",
        "0 2",
        buffer="60p",
        **_codel("codel", ecn=True),
    )
    yield s(
        "codel: ce_threshold",
        "codel limit 1000 ecn ce_threshold 20ms",
        "0 2",
        **_codel("codel", ecn=True, ce_threshold="19999744ns"),
    )
    yield s(
        "codel: target 20 ms, interval 50 ms",
        "codel limit 1000 ecn target 20ms interval 50ms",
        "0 2",
        **_codel("codel", ecn=True, target="19999744ns", interval="49999872ns"),
    )
    fq = "fq_codel limit"
    yield s("fq_codel", f"{fq} 10240", "0 2 1 0", buffer="10240p", **_codel("fq-codel", ecn=True))
    yield s(
        "fq_codel: quantum 300",
        f"{fq} 10240 quantum 300 noecn",
        "0 0 0",
        buffer="10240p",
        **_codel("fq-codel", ecn=False, quantum=300),
    )
    yield s(
        "fq_codel: a full buffer", f"{fq} 60", "0 2 0", buffer="60p", **_codel("fq-codel", ecn=True)
    )
    yield s(
        "fq_codel: ce_threshold",
        f"{fq} 10240 ce_threshold 20ms",
        "0 2 2",
        buffer="10240p",
        **_codel("fq-codel", ecn=True, ce_threshold="19999744ns"),
    )
    yield s(
        "fq_codel: sparse flows",
        f"{fq} 10240",
        "0 0 2 2 0 2 1 0",
        MILD,
        buffer="10240p",
        **_codel("fq-codel", ecn=True),
    )

    cake = f"cake bandwidth {RATE} raw memlimit 64mb"
    yield s("cake", f"{cake} besteffort flows", "0 2 1 0", **_cake())
    yield s(
        "cake: diffserv3",
        f"{cake} diffserv3 flows",
        "0 2 32 186 136",
        **_cake(diffserv="diffserv3"),
    )
    yield s(
        "cake: diffserv4",
        f"{cake} diffserv4 flows",
        "0 2 32 186 136",
        **_cake(diffserv="diffserv4"),
    )
    yield s("cake: RTT 20 ms", f"{cake} besteffort flows rtt 20ms", "0 0", **_cake(rtt="20ms"))
    yield s(
        "cake: one queue", f"{cake} besteffort flowblind", "0 2 1 0", **_cake(isolation="flowblind")
    )
    for words in ("diffserv8", "precedence"):
        yield s(f"cake: {words}", f"{cake} {words} flows", DSCPS, **_cake(diffserv=words))
    for words in (
        "triple-isolate", "dual-srchost", "dual-dsthost", "srchost", "dsthost", "hosts",
    ):  # fmt: skip
        yield s(f"cake: {words}", f"{cake} besteffort {words}", HOSTS, **_cake(isolation=words))
    yield s("cake: ingress", f"{cake} besteffort flows ingress", "0 2 0", **_cake(ingress=True))
    yield s(
        "cake: unlimited",
        "cake unlimited raw memlimit 64mb diffserv4 flows",
        "0 2 32 186 136",
        **_cake(diffserv="diffserv4", unlimited=True),
    )
    yield s("cake: unlimited diffserv8", "cake unlimited diffserv8 triple-isolate", DSCPS, LONG)
    yield s("cake: RTT 1 s", f"{cake} diffserv4 flows rtt 1s", "0 2 32 186 136", LONG)
    yield s(
        "cake: autorate-ingress",
        f"cake bandwidth 4mbit autorate-ingress diffserv4 memlimit 8mb",
        "0 2 32 186",
        "600:20 500:70 300:4 900:100 400:40 600:160",
    )
    # The heap of the longest queues, BLUE, and its decay.
    yield s("cake: memory", f"cake bandwidth {RATE} besteffort memlimit 150kb", "0 2 0 1", CALM)
    yield s(
        "cake: memory, many flows",
        f"cake bandwidth {RATE} diffserv4 memlimit 400kb",
        many(300, (0, 2, 32, 186, 136)),
        LONG,
    )
    yield s(
        "cake: memory, ingress",
        f"cake bandwidth {RATE} diffserv3 memlimit 150kb ingress",
        "0 2 32 186",
        LONG,
    )
    # So many that a set of eight queues has more flows than queues.
    yield s("cake: collisions", f"{cake} besteffort triple-isolate", many(1500, (0, 2)), CROWD)
    yield s("cake: collisions of flows", f"{cake} besteffort flows", many(1500, (0, 2)), CROWD)
    yield s(
        "cake: collisions of hosts",
        f"{cake} besteffort dual-srchost",
        many(1500, (0, 2), hosts=250),
        CROWD,
    )
    yield s("cake: sparse flows", f"{cake} diffserv4 dual-dsthost", many(60, (0, 2, 32, 184)), CALM)
    for name, words in (
        ("ATM", "overhead 44 mpu 100 atm"),
        ("PTM", "overhead 22 ptm"),
        ("less overhead", "overhead -10 mpu 200"),
    ):
        yield s(f"cake: {name}", f"cake bandwidth {RATE} besteffort {words}", "0 2 0", LONG)
    yield s("cake: wash", f"{cake} diffserv4 wash", f"{DSCPS} 186/udp6 9/udp6")
    yield s("cake: wash, one tin", f"{cake} besteffort wash", "186 32 2 187/udp6 40/udp6")
    yield s(
        "cake: marks and classes",
        f"{cake} diffserv4 fwmark 0xf0",
        "0=16 2=32 0=48 186=64 32=80 0#1 2#2 0#3 184#4 0#5 0",
    )
    for words in (
        "split-gso",
        "no-split-gso overhead 40 mpu 250",
        "no-split-gso ingress memlimit 1mb",
    ):
        yield s(
            f"cake: {words}",
            f"cake bandwidth {RATE} besteffort {words}",
            GSO,
            "900:80 300:20 500:90",
        )
    yield s("cake: 300 kb/s", "cake bandwidth 300kbit diffserv4", "0 2 32 186 136", SLOW)
    yield s("cake: 64 kb/s", "cake bandwidth 64kbit besteffort rtt 20ms", "0 2", SLOW)
    acks = "0/tcp 0/tcp 0/tcp6 2 0/tcp6in4 1/tcp6"
    for words in ("ack-filter", "ack-filter-aggressive"):
        for more in ("besteffort flows", "besteffort flowblind", "diffserv4 ingress"):
            yield s(
                f"cake: {words} {more}",
                f"cake bandwidth 500kbit {more} {words}",
                acks,
                "900:20 300:2 900:30 400:3 900:15",
            )

    yield s("codel: tight", "codel limit 1000 target 1ms interval 10ms", "0 2 0", LONG)
    yield s("codel: long rests", "codel limit 1000 target 2ms interval 30ms ecn", "0 2", CALM)
    yield s("codel: slow", "codel limit 1000 ecn ce_threshold 1ms", "0 2 1", "9000:8 300:200")
    yield s("fq_codel: memory", "fq_codel memory_limit 60kb drop_batch 4", "0 2 1 0", LONG)
    yield s("fq_codel: 16 queues", "fq_codel flows 16", many(100, (0, 2, 1)), LONG)
    yield s(
        "fq_codel: many flows",
        "fq_codel limit 300 drop_batch 16 target 2ms interval 20ms",
        many(400, (0, 2, 1)),
        LONG,
    )
    yield s("fq_codel: one at a time", "fq_codel limit 100 drop_batch 1", "0 2 0 0", LONG)
    yield s("fq_codel: classes", "fq_codel flows 16", "0#1 2#2 0#16 1#17 0/udp6 2/tcp", LONG)
    yield s(
        "fq_codel: ce_threshold_selector",
        "fq_codel ce_threshold 1ms ce_threshold_selector 1/3",
        "0 1 2 3",
        LONG,
    )
    yield s("fq_codel: long rests", "fq_codel target 1ms interval 10ms", "0 2 0 1", CALM)

    yield s("pie: rates", "pie limit 1000 ecn dq_rate_estimator", "0 2", LONG)
    yield s("pie: rates after a calm", "pie limit 1000 dq_rate_estimator", "0 2", CALM)
    yield s("pie: bytes, ECN", "pie limit 1000 bytemode ecn target 5ms", "0 2", LONG)
    yield s("pie: long delays", "pie limit 10000 target 300ms alpha 1 beta 2", "0 2", DEEP)
    yield s("pie: fast", "pie limit 10000 ecn tupdate 10ms alpha 20 beta 30", "0 2 1", LONG)
    yield s("pie: mild", "pie limit 1000 ecn target 40ms tupdate 20ms", "0 2 1", MILD)
    yield s("pie: heavy", "pie limit 3000 ecn target 1ms", "0 2", DEEP)
    yield s("fq_pie: rates", "fq_pie limit 10240 ecn dq_rate_estimator", "0 2 1", LONG)
    yield s("fq_pie: 4 queues", "fq_pie flows 4 ecn target 5ms", many(40, (0, 2, 1)), LONG)
    yield s("fq_pie: memory", "fq_pie memory_limit 100kb ecn", "0 2 1", LONG)
    yield s("fq_pie: ecn_prob", "fq_pie ecn ecn_prob 1", "1 2 1", LONG)
    yield s("fq_pie: bytes", "fq_pie bytemode ecn target 5ms tupdate 10ms", "0 2 1", LONG)
    yield s("fq_pie: classes", "fq_pie flows 4 ecn", "0#1 2#2 0#4 1#5 0/udp6 2/tcp", LONG)
    yield s("fq_pie: many flows", "fq_pie quantum 400 ecn", many(200, (0, 2, 1)), LONG)
    yield s("fq_pie: 4096 queues", "fq_pie flows 4096 ecn", "0 2 1", CALM)

    yield s("pie", "pie limit 1000", "0 2", LONG, **_pie("pie"))
    yield s("pie: ECN", "pie limit 1000 ecn", "0 2", LONG, **_pie("pie", ecn=True))
    yield s(
        "pie: a full buffer", "pie limit 60 ecn", "0 2", LONG, buffer="60p", **_pie("pie", ecn=True)
    )
    yield s("pie: bytes", "pie limit 1000 bytemode", "0", LONG, **_pie("pie", mode="bytes"))
    yield s("pie: after a calm", "pie limit 1000 ecn", "0 2", CALM, **_pie("pie", ecn=True))
    yield s("pie: target 5 ms", "pie limit 1000 target 5ms", "0", MILD, **_pie("pie", target="5ms"))

    fq = "fq_pie limit"
    of_10240: dict[str, Any] = {"phases": LONG, "buffer": "10240p"}
    yield s("fq_pie", f"{fq} 10240", "0 0 0", **of_10240, **_pie("fq-pie"))
    yield s("fq_pie: ECN", f"{fq} 10240 ecn", "0 2 1", **of_10240, **_pie("fq-pie", ecn=True))
    yield s(
        "fq_pie: a full buffer",
        f"{fq} 60 ecn",
        "0 2 1",
        LONG,
        buffer="60p",
        **_pie("fq-pie", ecn=True),
    )
    yield s(
        "fq_pie: quantum 300",
        f"{fq} 10240 quantum 300",
        "0 2 1 0",
        **of_10240,
        **_pie("fq-pie", quantum=300),
    )
    yield s(
        "fq_pie: after a calm",
        f"{fq} 10240 ecn",
        "0 2 1",
        CALM,
        buffer="10240p",
        **_pie("fq-pie", ecn=True),
    )

    # Our RED has an average of real numbers: it differs where that is within a byte of a threshold.
    for words in ("", " ecn", " ecn harddrop", " ecn adaptive"):
        yield s(f"red:{words}" if words else "red", f"red {_RED}{words}", "0 2", LONG)

    yield s("red: nodrop", f"red {_RED} ecn nodrop", "0 2", LONG)
    yield s("red: a full buffer", f"red {_RED.replace('150000', '46000')} ecn nodrop", "0 2", LONG)
    yield s("red: after a calm", f"red {_RED} ecn adaptive", "0 2", CALM)
    yield s("red: mild", f"red {_RED} adaptive", "0 2", f"{MILD} {MILD}")
    fast = "limit 200000 min 6000 max 90000 avpkt 500 burst 20 probability 0.5 bandwidth 16mbit"
    yield s("red: fast", f"red {fast} adaptive", "0", LONG)

    yield s("choke", f"choke {_CHOKE}", "0 2", LONG)
    yield s("choke: ECN", f"choke {_CHOKE} ecn", "0 2 2 0", LONG)
    # Both draw four numbers for their hashes.
    sfb: dict[str, Any] = {"aqm": "sfb", "params": {"preset": "linux"}}
    yield s("sfb", "sfb", "0", LONG, **sfb)
    # The kernel draws 16 bits to mark: one of 12 762 packets is marked here but not there.
    yield s("sfb: ECN", "sfb", "2", LONG)
    yield s("sfb: flows", "sfb target 30 max 40 increment 0.01", "0 2 2 1 0", MILD)
    yield s("choke: mild", f"choke {_CHOKE} ecn", many(20, (0, 2)), MILD)
    yield s("choke: after a calm", f"choke {_CHOKE} ecn", "0 2 0", CALM)
    yield s("choke: a full buffer", f"choke {_CHOKE.replace('150', '46')}", many(9, (0,)), LONG)
    yield s("choke: IPv6", f"choke {_CHOKE} ecn", "0/udp6 2/udp6 0/tcp 0", LONG)
    yield s("sfb: many flows", "sfb target 5 max 12 limit 300", many(120, (0, 2)), LONG)
    yield s("sfb: penalties", "sfb penalty_rate 200 penalty_burst 30", "0 0", LONG)
    yield s(
        "sfb: other hashes",
        "sfb rehash 0.6 db 0.3 target 10 max 15 increment 0.02 decrement 0.004",
        many(30, (0, 2)),
        f"{LONG} {CALM}",
    )
    yield s("sfb: a full buffer", "sfb limit 40 max 30 target 20", "0 2 0", LONG)
    yield s(
        "sfb: steep", "sfb increment 0.05 decrement 0.01 target 8 max 60", "0 2", f"{MILD} {CALM}"
    )
    yield s("sfq", "sfq", "0 2 1 0")
    yield s("sfq: many flows", "sfq limit 120 flows 60 perturb 1", many(300, (0, 2)), LONG)
    yield s("sfq: classes", "sfq divisor 16 limit 100", "0#1 2#2 0#16 1#17 0/udp6 2/tcp", LONG)
    yield s("sfq: 16 queues", "sfq divisor 16 depth 10 headdrop limit 90", many(40, (0, 2)), LONG)
    yield s(
        "sfq: RED drops",
        "sfq limit 500 depth 400 headdrop redflowlimit 60000 min 8000 max 30000 probability 0.1",
        "0 2 2",
        f"{LONG} {CALM}",
    )
    yield s(
        "sfq: RED harddrop",
        "sfq limit 300 depth 100 redflowlimit 60000 min 6000 max 20000 probability 0.2 ecn harddrop",
        "2 2 0",
        LONG,
    )
    yield s("sfq: depth 20, head drop", "sfq depth 20 headdrop", "0 0 0", LONG)
    yield s("sfq: quantum 600", "sfq quantum 600 limit 60 divisor 64", "0 0 0 0", LONG)
    yield s(
        "sfq: RED",
        "sfq limit 500 depth 400 redflowlimit 100000 min 8000 max 60000 probability 0.2 ecn",
        "0 2 2",
        LONG,
    )

    for name, words, flows, phases, ours in (
        ("classic", "", "0 2", LONG, _dualpi2()),
        ("L4S", "", "1", LONG, _dualpi2()),
        ("both", "", "0 2 1", LONG, _dualpi2()),
        ("mostly L4S", "", "0 1 1 3", LONG, _dualpi2()),
        ("below overload", "", "0 2 1 1", MILD, _dualpi2()),
        ("coupling 4", "coupling_factor 4", "0 2 1", MILD, _dualpi2(k=4)),
        ("step 5 ms", "step_thresh 5ms", "2 1", MILD, _dualpi2(min_th="5ms")),
        ("C gets 40 %", "classic_protection 40", "0 2 1", LONG, _dualpi2(classic_share=0.4)),
        ("any ECT", "any_ect", "0 2 1", LONG, _dualpi2(low_latency="any-ect")),
        # Ours differs, why is not known.
        ("target 5 ms, tupdate 8 ms", "target 5ms tupdate 8ms", "0 2 1", LONG, _dualpi2(target="5ms", t_update="8000004ns")),
        ("overflow", "limit 100 overflow", "0 2 1", LONG, _dualpi2("100p", overload="overflow")),
        ("a full buffer", "limit 40", "0 2 1", LONG, _dualpi2("40p")),
        ("at arrival", "drop_enqueue", "0 2 1", LONG, _dualpi2(decided="arrival")),
    ):  # fmt: skip
        yield s(f"dualpi2: {name}", f"dualpi2 {words}".strip(), flows, phases, **ours)
    for name, words, flows, phases in (
        ("step of packets", "step_packets 10", "0 2 1", LONG),
        ("step from 20 packets", "step_thresh 1ms min_qlen_step 20", "2 1", MILD),
        ("classes", "step_thresh 3ms", "0#1 0#2 2#1 1#2 0#3 0/udp6 1/udp6 2/tcp", LONG),
        ("memory", "limit 2000 memory_limit 60000", "0 2 1", LONG),
        ("after a calm", "", "0 2 1", CALM),
        ("split_gso", "split_gso", GSO, "900:70 500:20 600:60"),
        ("no_split_gso", "no_split_gso", GSO, "900:70 500:20 600:60"),
        ("deep", "target 100ms", "0 2 1", DEEP),
        ("C gets 90 %", "classic_protection 90 step_thresh 20ms", "0 2 1 1", LONG),
    ):  # fmt: skip
        yield s(f"dualpi2: {name}", f"dualpi2 {words}".strip(), flows, phases)

    yield s(
        "tbf: peak", "tbf rate 8mbit burst 9000 limit 90000 peakrate 12mbit mtu 1600", "0", LONG
    )
    yield s("tbf", "tbf rate 8mbit burst 3000 limit 60000", "0 0")


_CHOKE = "limit 150 min 15 max 45 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"
ALL = tuple(_all())

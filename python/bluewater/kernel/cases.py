"""The settings that a kernel's queue disciplines are compared in."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from bluewater.kernel.settings import BYTE, RATE, WAVES, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DSCPS = "0 2 4 32 40 104 72 64 186 192 224 16 136"
"""A flow of each tin, however CAKE sorts codepoints."""
HOSTS = "0@0>0 2@0>1 0@1>0 2@1>2 0@2>2 1@2>1 0@3>3"
"""Two flows of a host at most: the kernel's share of a quantum is rounded, and ours is not."""
ACKS = "0/tcp 0/tcp 0/tcp6 2 0/tcp6in4 1/tcp6"
GSO = "0/tcp-gso 1/tcp6-gso 0 2/udp-gso 1"
TIMED = "0/udp-timed 2/udp-timed 0 2 1/udp-timed"
PACED = "0#6/udp-paced 2#6/udp-paced 1#6/udp-paced 0#6/udp-paced"
MARKED = " ".join(f"{2 * (n % 2)}={n % 4}" for n in range(40))
LONG = "500:120 750:180 250:50 750:130 150:20 500:300 350:60"
MILD = "500:110 250:60 750:115 250:30 750:125 250:90"
CALM = "700:150 300:100 2500:10 1500:150 300:120"
DEEP = "900:170 500:220 300:80 1500:20 500:150"
CROWD = "700:300 900:40 700:250"
SLOW = "6000:4 9000:1 6000:3"
RESTS = "300:170 120:1 " * 8
SHORT = "60:180 30:50 75:130 25:20 40:300 60:60 30:90"
BUSY = "900:80 300:20 500:90"
NARROW = "900:20 300:2 900:30 400:3 900:15"
"""For 0.5 Mb/s."""


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
    """An update of the kernel comes 1 ns late, and the next one counts from there."""
    params = {"preset": "linux", "t_update": "16000001ns", **more}
    return {"aqm": "dualpi2", "buffer": buffer, "params": params}


RED = "limit 150000 min 15000 max 45000 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"
FAST_RED = "limit 200000 min 6000 max 90000 avpkt 500 burst 20 probability 0.5 bandwidth 16mbit"
CHOKE = "limit 150 min 15 max 45 avpkt 1000 burst 26 probability 0.1 bandwidth 16mbit"
CAKE = f"cake bandwidth {RATE}"
ROOMY = f"{CAKE} raw memlimit 64mb"


def _of_codel() -> Iterator[Setting]:
    s = Setting
    yield s("codel", "codel limit 1000 noecn", "0", **_codel("codel", ecn=False))
    ecn = _codel("codel", ecn=True)
    yield s("codel: ECN", "codel limit 1000 ecn", "0 2 1", **ecn)
    yield s("codel: a full buffer", "codel limit 60 ecn", "0 2", buffer="60p", **ecn)
    more = _codel("codel", ecn=True, ce_threshold="19999744ns")
    yield s("codel: ce_threshold", "codel limit 1000 ecn ce_threshold 20ms", "0 2", **more)
    more = _codel("codel", ecn=True, target="19999744ns", interval="49999872ns")
    words = "codel limit 1000 ecn target 20ms interval 50ms"
    yield s("codel: target 20 ms, interval 50 ms", words, "0 2", **more)

    fq = "fq_codel limit 10240"
    ecn = _codel("fq-codel", ecn=True)
    wide = {**ecn, "buffer": "10240p"}
    yield s("fq_codel", fq, "0 2 1 0", **wide)
    more = {"buffer": "10240p", **_codel("fq-codel", ecn=False, quantum=300)}
    yield s("fq_codel: quantum 300", f"{fq} quantum 300 noecn", "0 0 0", **more)
    yield s("fq_codel: a full buffer", "fq_codel limit 60", "0 2 0", buffer="60p", **ecn)
    more = {"buffer": "10240p", **_codel("fq-codel", ecn=True, ce_threshold="19999744ns")}
    yield s("fq_codel: ce_threshold", f"{fq} ce_threshold 20ms", "0 2 2", **more)
    for name, selector, flows in (
        ("ECT(1)", "1/3", "0 1 2 3 185"),
        ("EF", "184/252", "0 186 2 185 184"),
    ):
        threshold = {"ce_threshold": "4999168ns", "ce_threshold_selector": selector}
        more = {"buffer": "10240p", **_codel("fq-codel", ecn=True, **threshold)}
        words = f"{fq} ce_threshold 5ms ce_threshold_selector {selector}"
        yield s(f"fq_codel: ce_threshold of {name}", words, flows, **more)
    yield s("fq_codel: sparse flows", fq, "0 0 2 2 0 2 1 0", MILD, **wide)


def _of_cake() -> Iterator[Setting]:
    for name, words, flows, params in (
        ("", "besteffort flows", "0 2 1 0", {}),
        ("diffserv3", "diffserv3 flows", "0 2 32 186 136", {"diffserv": "diffserv3"}),
        ("diffserv4", "diffserv4 flows", "0 2 32 186 136", {"diffserv": "diffserv4"}),
        ("diffserv8", "diffserv8 flows", DSCPS, {"diffserv": "diffserv8"}),
        ("precedence", "precedence flows", DSCPS, {"diffserv": "precedence"}),
        ("RTT 20 ms", "besteffort flows rtt 20ms", "0 0", {"rtt": "20ms"}),
        ("one queue", "besteffort flowblind", "0 2 1 0", {"isolation": "flowblind"}),
        ("ingress", "besteffort flows ingress", "0 2 0", {"ingress": True}),
    ):
        yield Setting(
            f"cake: {name}" if name else "cake", f"{ROOMY} {words}", flows, **_cake(**params)
        )
    for words in (
        "triple-isolate", "dual-srchost", "dual-dsthost", "srchost", "dsthost", "hosts",
    ):  # fmt: skip
        isolation = _cake(isolation=words)
        yield Setting(f"cake: {words}", f"{ROOMY} besteffort {words}", HOSTS, **isolation)
    words = ROOMY.replace(f"bandwidth {RATE}", "unlimited")
    unlimited = _cake(diffserv="diffserv4", unlimited=True)
    yield Setting("cake: unlimited", f"{words} diffserv4 flows", "0 2 32 186 136", **unlimited)


def _of_cake_mq() -> Iterator[Setting]:
    """A flow's mark names the kernel's transmit queue: the one that ours hashes it to."""
    four = (1, 2, 1, 1, 1, 1, 0, 1, 0, 1, 2, 3, 1, 3)
    two = (0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1)
    flows = _marked("0 2 0 0 2 1 0", four)
    for name, kbit, words, marked, phases, params in (
        ("two queues", 12_000, "besteffort flows", "0=1 2=0 0=1 0=1 2=0", WAVES, {"queues": 2}),
        ("four queues", 12_000, "besteffort flows", flows, WAVES, {}),
        ("below overload", 12_000, "besteffort flows", flows, MILD, {}),
        ("rests", 12_000, "besteffort flows", flows, RESTS, {}),
        ("ingress", 12_000, "besteffort flows ingress", flows, WAVES, {"ingress": True}),
        (
            "hosts", 12_000, "besteffort triple-isolate", _marked(HOSTS, (0, 0, 1, 0, 3, 0, 3)),
            WAVES, {"isolation": "triple-isolate"},
        ),
        (
            "diffserv4", 32_000, "diffserv4 flows", _marked(DSCPS, two), WAVES,
            {"diffserv": "diffserv4", "queues": 2},
        ),
        (
            "diffserv4, four queues", 24_000, "diffserv4 flows", _marked(DSCPS, four), WAVES,
            {"diffserv": "diffserv4"},
        ),
        ("120 Mb/s", 120_000, "besteffort flows rtt 20ms", flows, SHORT, {"rtt": "20ms"}),
    ):  # fmt: skip
        # All parts of these rates are whole bytes a second.
        ours = _cake(**{"queues": 4, "shared_rate": f"{kbit}kbit", **params})
        byte = {12_000: BYTE, 24_000: 320, 32_000: 256, 120_000: 64}[kbit]
        yield Setting(
            f"cake_mq: {name}", f"cake_mq bandwidth {kbit}kbit memlimit 64mb {words}", marked,
            phases, link={"rate": "100gbit"}, byte=byte, **ours,
        )  # fmt: skip


def _marked(flows: str, queues: Sequence[int]) -> str:
    """Flows in turn, each with the mark that names its transmit queue."""
    each = itertools.cycle(flows.split())
    return " ".join(f"{flow}={queue}" for flow, queue in zip(each, queues, strict=False))


def _of_pie() -> Iterator[Setting]:
    for name, words, flows, phases, ours in (
        ("", "limit 1000", "0 2", LONG, _pie("pie")),
        ("ECN", "limit 1000 ecn", "0 2", LONG, _pie("pie", ecn=True)),
        ("a full buffer", "limit 60 ecn", "0 2", LONG, _pie("pie", ecn=True) | {"buffer": "60p"}),
        ("bytes", "limit 1000 bytemode", "0", LONG, _pie("pie", mode="bytes")),
        ("after a calm", "limit 1000 ecn", "0 2", CALM, _pie("pie", ecn=True)),
        ("target 5 ms", "limit 1000 target 5ms", "0", MILD, _pie("pie", target="5ms")),
    ):
        yield Setting(f"pie: {name}" if name else "pie", f"pie {words}", flows, phases, **ours)
    wide = {"buffer": "10240p"}
    ecn, small = _pie("fq-pie", ecn=True), _pie("fq-pie", quantum=300)
    for name, words, flows, phases, ours in (
        ("", "limit 10240", "0 0 0", LONG, _pie("fq-pie") | wide),
        ("ECN", "limit 10240 ecn", "0 2 1", LONG, ecn | wide),
        ("a full buffer", "limit 60 ecn", "0 2 1", LONG, ecn | {"buffer": "60p"}),
        ("quantum 300", "limit 10240 quantum 300", "0 2 1 0", LONG, small | wide),
        ("after a calm", "limit 10240 ecn", "0 2 1", CALM, ecn | wide),
    ):  # fmt: skip
        yield Setting(
            f"fq_pie: {name}" if name else "fq_pie", f"fq_pie {words}", flows, phases, **ours
        )


def _of_fq() -> Iterator[Setting]:
    def first(*bytes_: int, count: int = 0) -> str:
        """Flows of the class that Linux serves first, where new flows keep their place."""
        return " ".join(f"{each}#6" for each in many(count or len(bytes_), bytes_).split())

    for name, words, flows, phases, params in (
        ("", "", first(0, 2, 1, 0), WAVES, {}),
        ("flow limit 20", "flow_limit 20", first(0, 2, 1, 0), WAVES, {"flow_limit": 20}),
        (
            "quantum 600", "quantum 600 initial_quantum 1000", first(0, 0, 0), WAVES,
            {"quantum": 600, "initial_quantum": 1000},
        ),
        ("sparse flows", "", first(0, 2, count=40), MILD, {}),
        ("many flows", "", first(0, 2, count=200), LONG, {}),
        ("ce_threshold", "ce_threshold 5ms", first(0, 2, 1), MILD, {"ce_threshold": "5ms"}),
        ("maxrate 3 Mb/s", "maxrate 3mbit", first(0, 2, 1, 0), WAVES, {"maxrate": "3mbit"}),
        (
            "maxrate 3 Mb/s, ce_threshold", "maxrate 3mbit ce_threshold 10ms", first(2, 2, 1, 0),
            WAVES, {"maxrate": "3mbit", "ce_threshold": "10ms"},
        ),
        ("packet by packet", "maxrate 300kbit", first(0, count=40), WAVES, {"maxrate": "300kbit"}),
        ("a full buffer", "limit 60 maxrate 1gbit", first(0, 2, 0), WAVES, {"maxrate": "1gbit"}),
        # Their socket has the rate.
        (
            "paced sockets", "flow_limit 1000", PACED, WAVES,
            {"maxrate": "3mbit", "flow_limit": 1000},
        ),
    ):  # fmt: skip
        # A timer's slack delays what is held, a mask lets flows meet, and ticks are coarse.
        exact = "timer_slack 1ns orphan_mask 0xffffffff refill_delay 100s"
        buffer = "60p" if "limit 60" in words else "10000p"
        yield Setting(
            f"fq: {name}" if name else "fq", f"fq {exact} {words}".strip(), flows, phases,
            aqm="fq", buffer=buffer, params={"refill_delay": "100s", **params},
        )  # fmt: skip


def _of_dualpi2() -> Iterator[Setting]:
    fast = _dualpi2(target="5ms", t_update="8000001ns")
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
        ("target 5 ms, tupdate 8 ms", "target 5ms tupdate 8ms", "0 2 1", LONG, fast),
        ("overflow", "limit 100 overflow", "0 2 1", LONG, _dualpi2("100p", overload="overflow")),
        ("a full buffer", "limit 40", "0 2 1", LONG, _dualpi2("40p")),
        ("at arrival", "drop_enqueue", "0 2 1", LONG, _dualpi2(decided="arrival")),
    ):  # fmt: skip
        yield Setting(f"dualpi2: {name}", f"dualpi2 {words}".strip(), flows, phases, **ours)


TWO_KERNELS = (
    ("codel: tight", "codel limit 1000 target 1ms interval 10ms", "0 2 0", LONG),
    ("codel: long rests", "codel limit 1000 target 2ms interval 30ms ecn", "0 2", CALM),
    ("codel: slow", "codel limit 1000 ecn ce_threshold 1ms", "0 2 1", "9000:8 300:200"),
    ("fq_codel: memory", "fq_codel memory_limit 60kb drop_batch 4", "0 2 1 0", LONG),
    ("fq_codel: 16 queues", "fq_codel flows 16", many(100, (0, 2, 1)), LONG),
    (
        "fq_codel: many flows", "fq_codel limit 300 drop_batch 16 target 2ms interval 20ms",
        many(400, (0, 2, 1)), LONG,
    ),
    ("fq_codel: one at a time", "fq_codel limit 100 drop_batch 1", "0 2 0 0", LONG),
    ("fq_codel: classes", "fq_codel flows 16", "0#1 2#2 0#16 1#17 0/udp6 2/tcp", LONG),
    ("fq_codel: long rests", "fq_codel target 1ms interval 10ms", "0 2 0 1", CALM),

    ("cake: unlimited diffserv8", "cake unlimited diffserv8 triple-isolate", DSCPS, LONG),
    ("cake: RTT 1 s", f"{ROOMY} diffserv4 flows rtt 1s", "0 2 32 186 136", LONG),
    (
        "cake: autorate-ingress", "cake bandwidth 4mbit autorate-ingress diffserv4 memlimit 8mb",
        "0 2 32 186", "600:20 500:70 300:4 900:100 400:40 600:160",
    ),
    # The heap of the longest queues, BLUE, and its decay.
    ("cake: memory", f"{CAKE} besteffort memlimit 150kb", "0 2 0 1", CALM),
    (
        "cake: memory, many flows", f"{CAKE} diffserv4 memlimit 400kb",
        many(300, (0, 2, 32, 186, 136)), LONG,
    ),
    ("cake: memory, ingress", f"{CAKE} diffserv3 memlimit 150kb ingress", "0 2 32 186", LONG),
    # So many that a set of eight queues has more flows than queues.
    (
        "cake: hosts of IPv6", f"{ROOMY} besteffort triple-isolate",
        "0@0>0/udp6 2@0>1/udp6 0@1>0/udp6 2@1>2/udp6 0@2>2/udp6 1@2>0/udp6 0@3>0", WAVES,
    ),
    (
        "cake: one host of IPv6", f"{ROOMY} besteffort dsthost",
        "0@0>0/udp6 2@0>1/udp6 0@1>0/udp6 2@1>2/udp6 0@2>3/udp6 1>9", WAVES,
    ),
    ("cake: collisions", f"{ROOMY} besteffort triple-isolate", many(1500, (0, 2)), CROWD),
    ("cake: collisions of flows", f"{ROOMY} besteffort flows", many(1500, (0, 2)), CROWD),
    (
        "cake: collisions of hosts", f"{ROOMY} besteffort dual-srchost",
        many(1500, (0, 2), hosts=250), CROWD,
    ),
    ("cake: sparse flows", f"{ROOMY} diffserv4 dual-dsthost", many(60, (0, 2, 32, 184)), CALM),
    ("cake: ATM", f"{CAKE} besteffort overhead 44 mpu 100 atm", "0 2 0", LONG),
    ("cake: PTM", f"{CAKE} besteffort overhead 22 ptm", "0 2 0", LONG),
    ("cake: less overhead", f"{CAKE} besteffort overhead -10 mpu 200", "0 2 0", LONG),
    ("cake: wash", f"{ROOMY} diffserv4 wash", f"{DSCPS} 186/udp6 9/udp6", WAVES),
    ("cake: wash, one tin", f"{ROOMY} besteffort wash", "186 32 2 187/udp6 40/udp6", WAVES),
    (
        "cake: marks and classes", f"{ROOMY} diffserv4 fwmark 0xf0",
        "0=16 2=32 0=48 186=64 32=80 0#1 2#2 0#3 184#4 0#5 0", WAVES,
    ),
    *(
        (f"cake: {words}", f"{CAKE} besteffort {words}", GSO, BUSY)
        for words in (
            "split-gso", "no-split-gso overhead 40 mpu 250", "no-split-gso ingress memlimit 1mb",
        )
    ),
    ("cake: 300 kb/s", "cake bandwidth 300kbit diffserv4", "0 2 32 186 136", SLOW),
    ("cake: 64 kb/s", "cake bandwidth 64kbit besteffort rtt 20ms", "0 2", SLOW),
    *(
        (f"cake: {words} {more}", f"cake bandwidth 500kbit {more} {words}", ACKS, NARROW)
        for words in ("ack-filter", "ack-filter-aggressive")
        for more in ("besteffort flows", "besteffort flowblind", "diffserv4 ingress")
    ),

    ("pie: rates", "pie limit 1000 ecn dq_rate_estimator", "0 2", LONG),
    ("pie: rates after a calm", "pie limit 1000 dq_rate_estimator", "0 2", CALM),
    ("pie: bytes, ECN", "pie limit 1000 bytemode ecn target 5ms", "0 2", LONG),
    ("pie: long delays", "pie limit 10000 target 300ms alpha 1 beta 2", "0 2", DEEP),
    ("pie: fast", "pie limit 10000 ecn tupdate 10ms alpha 20 beta 30", "0 2 1", LONG),
    ("pie: mild", "pie limit 1000 ecn target 40ms tupdate 20ms", "0 2 1", MILD),
    ("pie: heavy", "pie limit 3000 ecn target 1ms", "0 2", DEEP),
    ("fq_pie: rates", "fq_pie limit 10240 ecn dq_rate_estimator", "0 2 1", LONG),
    ("fq_pie: 4 queues", "fq_pie flows 4 ecn target 5ms", many(40, (0, 2, 1)), LONG),
    ("fq_pie: memory", "fq_pie memory_limit 100kb ecn", "0 2 1", LONG),
    ("fq_pie: ecn_prob", "fq_pie ecn ecn_prob 1", "1 2 1", LONG),
    ("fq_pie: bytes", "fq_pie bytemode ecn target 5ms tupdate 10ms", "0 2 1", LONG),
    ("fq_pie: classes", "fq_pie flows 4 ecn", "0#1 2#2 0#4 1#5 0/udp6 2/tcp", LONG),
    ("fq_pie: many flows", "fq_pie quantum 400 ecn", many(200, (0, 2, 1)), LONG),
    ("fq_pie: 4096 queues", "fq_pie flows 4096 ecn", "0 2 1", CALM),

    # Our RED has an average of real numbers: it differs where that is within a byte of a threshold.
    *(
        (f"red:{words}" if words else "red", f"red {RED}{words}", "0 2", LONG)
        for words in ("", " ecn", " ecn harddrop", " ecn adaptive", " ecn nodrop")
    ),
    ("red: a full buffer", f"red {RED.replace('150000', '46000')} ecn nodrop", "0 2", LONG),
    ("red: one threshold", f"red {RED.replace('max 45000', 'max 15000')}", "0 2", MILD),
    ("red: short rests", f"red {RED} ecn", "0 2", RESTS),
    ("red: after a calm", f"red {RED} ecn adaptive", "0 2", CALM),
    ("red: mild", f"red {RED} adaptive", "0 2", f"{MILD} {MILD}"),
    ("red: fast", f"red {FAST_RED} adaptive", "0", LONG),
    ("choke", f"choke {CHOKE}", "0 2", LONG),
    ("choke: ECN", f"choke {CHOKE} ecn", "0 2 2 0", LONG),
    ("choke: mild", f"choke {CHOKE} ecn", many(20, (0, 2)), MILD),
    ("choke: short rests", f"choke {CHOKE} ecn", "0 2", RESTS),
    ("choke: after a calm", f"choke {CHOKE} ecn", "0 2 0", CALM),
    ("choke: a full buffer", f"choke {CHOKE.replace('150', '46')}", many(9, (0,)), LONG),
    ("choke: IPv6", f"choke {CHOKE} ecn", "0/udp6 2/udp6 0/tcp 0", LONG),

    # The kernel draws 16 bits to mark: one of 12 762 packets is marked here but not there.
    ("sfb: ECN", "sfb", "2", LONG),
    ("sfb: flows", "sfb target 30 max 40 increment 0.01", "0 2 2 1 0", MILD),
    ("sfb: many flows", "sfb target 5 max 12 limit 300", many(120, (0, 2)), LONG),
    ("sfb: penalties", "sfb penalty_rate 200 penalty_burst 30", "0 0", LONG),
    (
        "sfb: other hashes",
        "sfb rehash 600 db 300 target 10 max 15 increment 0.02 decrement 0.004",
        many(30, (0, 2)), f"{LONG} {CALM}",
    ),
    ("sfb: the same hashes", "sfb rehash 0 db 0", "0 2 0", LONG),
    ("sfb: a full buffer", "sfb limit 40 max 30 target 20", "0 2 0", LONG),
    (
        "sfb: steep", "sfb increment 0.05 decrement 0.01 target 8 max 60", "0 2",
        f"{MILD} {CALM}",
    ),
    ("sfq", "sfq", "0 2 1 0", WAVES),
    ("sfq: many flows", "sfq limit 120 flows 60 perturb 1", many(300, (0, 2)), LONG),
    ("sfq: a packet each", "sfq limit 6", many(300, (0, 2)), LONG),
    ("sfq: classes", "sfq divisor 16 limit 100", "0#1 2#2 0#16 1#17 0/udp6 2/tcp", LONG),
    ("sfq: 16 queues", "sfq divisor 16 depth 10 headdrop limit 90", many(40, (0, 2)), LONG),
    ("sfq: depth 20, head drop", "sfq depth 20 headdrop", "0 0 0", LONG),
    ("sfq: quantum 600", "sfq quantum 600 limit 60 divisor 64", "0 0 0 0", LONG),
    (
        "sfq: RED",
        "sfq limit 500 depth 400 redflowlimit 100000 min 8000 max 60000 probability 0.2 ecn",
        "0 2 2", LONG,
    ),
    (
        "sfq: RED drops",
        "sfq limit 500 depth 400 headdrop redflowlimit 60000 min 8000 max 30000 probability 0.1",
        "0 2 2", f"{LONG} {CALM}",
    ),
    (
        "sfq: RED harddrop",
        "sfq limit 300 depth 100 redflowlimit 60000 min 6000 max 20000 probability 0.2 "
        "ecn harddrop",
        "2 2 0", LONG,
    ),

    ("dualpi2: step of packets", "dualpi2 step_packets 10", "0 2 1", LONG),
    ("dualpi2: step from 20 packets", "dualpi2 step_thresh 1ms min_qlen_step 20", "2 1", MILD),
    (
        "dualpi2: classes", "dualpi2 step_thresh 3ms",
        "0#1 0#2 2#1 1#2 0#3 0/udp6 1/udp6 2/tcp", LONG,
    ),
    ("dualpi2: memory", "dualpi2 limit 2000 memory_limit 60000", "0 2 1", LONG),
    ("dualpi2: after a calm", "dualpi2", "0 2 1", CALM),
    ("dualpi2: split_gso", "dualpi2 split_gso", GSO, BUSY),
    ("dualpi2: no_split_gso", "dualpi2 no_split_gso", GSO, BUSY),
    ("dualpi2: deep", "dualpi2 target 100ms", "0 2 1", DEEP),
    (
        "dualpi2: C gets 90 %", "dualpi2 classic_protection 90 step_thresh 20ms", "0 2 1 1",
        LONG,
    ),

    ("fq: classes", "fq", "0#6 2#1 0#2 1 0#7 2#15 0/udp6 2/tcp", LONG),
    ("fq: new flows", "fq", many(300, (0, 2)), LONG),
    ("fq: flows that meet", "fq orphan_mask 15 buckets 16", many(60, (0, 2)), LONG),
    (
        "fq: refill", "fq initial_quantum 300 quantum 300 refill_delay 20ms", many(9, (0, 2)),
        MILD,
    ),
    (
        "fq: forgotten flows", "fq buckets 16 quantum 300 initial_quantum 6000", many(60, (0, 2)),
        "300:150 4000:1 " * 3,
    ),
    ("fq: no pacing", "fq nopacing maxrate 3mbit", "0 2", WAVES),
    (
        "fq: low rate", "fq maxrate 2mbit low_rate_threshold 4mbit timer_slack 1ns", "0 2 0",
        WAVES,
    ),
    *(
        (f"fq: times{words}", f"fq timer_slack 1ns{words}", TIMED, WAVES)
        for words in (
            "", " horizon 20ms horizon_cap", " horizon 20ms horizon_drop", " maxrate 3mbit",
        )
    ),

    ("cake_mq: memory", "cake_mq bandwidth 12000kbit memlimit 1mb diffserv4 flows", MARKED, LONG),

    ("tbf", "tbf rate 8mbit burst 3000 limit 60000", "0 0", WAVES),
    (
        "tbf: peak", "tbf rate 8mbit burst 9000 limit 90000 peakrate 12mbit mtu 1600", "0",
        LONG,
    ),
)  # fmt: skip
"""Settings only for two kernels: name, words of ``tc``, flows and phases."""


def _of_others() -> Iterator[Setting]:
    """More settings only for two kernels: below a discipline that peeks, and with filters."""
    above = "tbf rate 20mbit burst 5000 limit 10000000"
    for words in (
        "codel ecn", "fq_codel", "pie ecn", "fq_pie ecn", "sfb", "sfq", f"red {RED} ecn",
        f"choke {CHOKE} ecn", "dualpi2", f"{CAKE} diffserv4", "fq",
    ):  # fmt: skip
        name = words.split()[0]
        yield Setting(f"{name}: below tbf", words, "0 2 1", above=above)
    # Some marks have no filter, and a class is not there.
    flows = "0=1 2=2 0=3 1=4 0=5 2 0=1/udp6"
    classes = {1: 1, 2: 2, 3: 0x1F, 4: 0xFFFF}
    for name, words in (
        ("fq_codel", "fq_codel flows 32"),
        ("sfb", "sfb target 10 max 15"),
        ("sfq", "sfq divisor 32"),
        ("dualpi2", "dualpi2"),
        ("cake", f"{CAKE} besteffort triple-isolate"),
        ("cake: diffserv4", f"{CAKE} diffserv4 flows"),
    ):
        yield Setting(f"{name}: filters", words, flows, LONG, classes=classes)


ALL = (
    *_of_codel(),
    *_of_cake(),
    *_of_cake_mq(),
    *_of_pie(),
    # Both draw four numbers for their hashes.
    Setting("sfb", "sfb", "0", LONG, aqm="sfb", params={"preset": "linux"}),
    *_of_dualpi2(),
    *_of_fq(),
    *(Setting(*row) for row in TWO_KERNELS),
    *_of_others(),
)

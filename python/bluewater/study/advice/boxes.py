"""Boxes that run a queue: their disciplines, settings, and the commands to type."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.errors import InputError, unknown
from bluewater.study.advice.advise import FULL, HEADER
from bluewater.units import bits_per_second, seconds, size_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bluewater.study.advice.advise import Link

_OLDER = (
    "droptail", "sfq", "red", "choke", "sfb", "codel", "fq-codel", "pie", "fq-pie", "cake",
)  # fmt: skip
_LINUX = (*_OLDER, "dualpi2")
LEFT_OUT: Mapping[str, str] = {
    "bernoulli": "signals with one probability, whatever the queue: a lossy link"
}
"""Disciplines that are no candidates for a link, with the reason."""
BOXES: Mapping[str, tuple[str, ...]] = {
    "linux": _LINUX,
    "linux-before-6.17": _OLDER,
    "openwrt": ("droptail", "fq-codel", "cake"),
    "docsis": ("droptail", "docsis-pie"),
    "bluewater": tuple(
        entry["name"] for entry in _core.catalog()["aqms"] if entry["name"] not in LEFT_OUT
    ),
}
"""Boxes, with the queue disciplines that each can run. DualPI2 is in Linux from 6.17 on, and in the
``tc`` of iproute2 from 6.18 on. Linux's adaptive RED is left out: it has other thresholds than ours
and is not gentle."""

_MEMORY = 2 * FULL
"""Kernel memory of a full packet, by the rule of thumb of Linux's DualPI2 (twice its length). CAKE
limits memory; how much a packet takes depends on the driver."""


def candidates(box: str) -> list[str]:
    """The queue disciplines that a box can run."""
    if box not in BOXES:
        raise unknown("box", box, BOXES, key="box")
    there = {entry["name"] for entry in _core.catalog()["aqms"]}
    return [name for name in BOXES[box] if name in there]


def settings(name: str, box: str, rate: str) -> dict[str, Any]:
    """The scenario's settings for a discipline at a rate; a kernel's box gets the kernel's."""
    entry = next(entry for entry in _core.catalog()["aqms"] if entry["name"] == name)
    presets = {preset["name"] for preset in entry["presets"]}
    if not _kernel(box) or "linux" not in presets:
        return {"queue.0.aqm": name}
    params = {"preset": "linux", **_BESIDE.get(name, {})}
    if name in _CODELS:
        target, interval = _codel_us(rate)
        params |= (
            {"target": f"{target}us", "interval": f"{interval}us"} if target > _TARGET_US else {}
        )
    return {"queue.0.aqm": name, "queue.0.params": params}


def cautious(link: Link, box: str) -> Link:
    """The link as its commands hold on any line: with ATM cells if it may carry them."""
    doubt = box != "docsis" and link.may_have_cells
    return replace(link, framing="conservative") if doubt else link  # tc-cake(8)


def fitted(link: Link, box: str) -> Link:
    """The link as its box shapes it: by default without a margin in the modem itself."""
    return replace(link, margin=0) if box == "docsis" and link.margin is None else link


def simulated(name: str, link: Link, way: str, box: str) -> dict[str, Any]:
    """The scenario's settings for a discipline in a direction, with its shaper's."""
    rate, framing = shaper(name, link, way, box)
    changed = {} if framing == (link.framing or "") else {"rate": rate, "framing": framing}
    bottleneck = len(link.rtt)
    told = settings(name, box, rate) | {
        f"link.{bottleneck}.{key}": value for key, value in changed.items()
    }
    if name == "cake" and way == "down":  # the commands' word
        told["queue.0.params"] = {"ingress": True}
    return told


def shaper(name: str, link: Link, way: str, box: str) -> tuple[str, str]:
    """The rate and framing by which a box shapes for a discipline.

    CAKE and the gateway count PTM's byte for every 64 (64b/65b coding). A kernel's table of sizes
    cannot (tc-stab(8)): that shaper gets 64/65 of the rate (tc-cake(8), "ptm").
    """
    if link.framing and name != "cake" and _kernel(box):
        overhead, mpu, cells = _core.framing(link.framing)
        if cells == "ptm":
            return link.shaped(way, 64 / 65), f"overhead {overhead} mpu {mpu}"
    return link.shaped(way), link.framing or ""


def _kernel(box: str) -> bool:
    return box.startswith(("linux", "openwrt"))


_CODELS = ("codel", "fq-codel")
_TARGET_US, _INTERVAL_US = 5_000, 100_000
_SLOW_BITS = 33 * 53 * 8
"""Greatest length of a full packet in ATM cells, as sqm-scripts calculate it."""


def _codel_us(rate: str) -> tuple[int, int]:
    """CoDel's target and interval on a link, in us, as OpenWrt's sqm-scripts set them.

    A packet of full length must not wait longer than the target for its own transmission.
    """
    target = max(_TARGET_US, int(_SLOW_BITS * 1e6 / bits_per_second(rate)))
    return target, _INTERVAL_US + target - _TARGET_US


def commands(name: str, link: Link, box: str = "linux", interface: str = "eth0") -> list[str]:
    """The commands that configure a queue discipline on a box.

    Raises:
        InputError: The interface's name, the buffer or the box is invalid.
    """
    check_interface(interface)
    candidates(box)
    if box == "openwrt":
        return _sqm(name, link, interface)
    if box == "docsis":
        note = "# a modem runs it by itself (RFC 8034); to try it between two interfaces:"
        return [note, _gateway(name, link, interface)]
    if box == "bluewater":
        return [_gateway(name, link, interface)]
    lines = []
    for way in link.ways:
        port = interface
        if way == "down":
            port = _ifb(interface)
            lines += _turned(interface, port)
        lines += _tc(name, link, way, port, _stab(link, interface))
    return lines


def check_interface(name: str) -> None:
    """Refuses what is no name of an interface.

    Raises:
        InputError: The kernel would refuse the name, or it is not safe in a command.
    """
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", name):
        return
    own, at, _ = name.partition("@")
    raise InputError(
        "not a name of an interface",
        key="interface",
        value=name,
        allowed="up to 15 letters, digits and . _ -, as in eth0, eth0.2, pppoe-wan",
        hint=f"without what follows @ in `ip link`: {own}" if at and own else None,
    )


def around(lines: Sequence[str], link: Link, box: str, interface: str) -> tuple[str, list[str]]:
    """What to look at before typing ``lines`` of :func:`commands`, and the lines that undo them."""
    if lines[0].startswith("#") and len(lines) == 1:
        return "", []
    if box == "openwrt":
        first = (
            "if `uci show sqm` has another enabled section for this interface, switch that off: "
            "uci set sqm.NAME.enabled='0'"
        )
        return first, [f"uci delete {_SECTION}; uci commit sqm; service sqm restart"]
    if not box.startswith("linux"):
        return "", []
    first = f"the lines replace what is there: `tc qdisc show dev {interface}` lists it"
    return first, [
        f"tc qdisc del dev {interface} ingress; ip link del {_ifb(interface)}"
        if way == "down"
        else f"tc qdisc del dev {interface} root"
        for way in link.ways
    ]


def _ifb(interface: str) -> str:
    """The interface whose queue has what comes in."""
    return f"ifb4{interface}"[:_LONGEST_NAME]


_LONGEST_NAME = 15


def _turned(interface: str, port: str) -> list[str]:
    """Redirects incoming traffic through an IFB interface, which has the queue."""
    return [
        f"ip link add {port} type ifb 2>/dev/null; ip link set {port} up",
        f"tc qdisc replace dev {interface} handle ffff: ingress",
        f"tc filter replace dev {interface} parent ffff: protocol all prio 1 handle 1 matchall "
        f"action mirred egress redirect dev {port}",
    ]


_TC = {
    "droptail": "pfifo limit {packets}",
    "sfq": "sfq limit {packets} perturb 600",
    "red": "red limit {bytes} min {low} max {high} avpkt 1000 burst {burst} probability 0.1 "
    "bandwidth {bandwidth} ecn",
    "choke": "choke limit {packets} min 15 max 45 burst 25 probability 0.1 bandwidth {bandwidth} "
    "ecn",
    "sfb": "sfb limit {packets}",
    "codel": "codel limit {packets}{codel} ecn",
    "fq-codel": "fq_codel limit {packets}{codel}{memory}",
    "pie": "pie limit {packets} ecn",
    "fq-pie": "fq_pie limit {packets}{memory} ecn",
    "dualpi2": "dualpi2 limit {packets} min_qlen_step 2",
}
"""The disciplines in the syntax of ``tc``, with the settings of the presets ``linux``: RED's
thresholds are a tenth and three tenths of the buffer."""
_BESIDE: Mapping[str, Mapping[str, Any]] = {"dualpi2": {"th_len": 2}}
"""Settings beside the presets, both simulated and printed. By default a kernel's DualPI2 marks
single packets that wait longer than its step of 1 ms, which starves L4S flows on slow links; its
authors' version marks only behind two packets or more. Sparing only single packets (RFC 9332,
appendix A.2) leaves more of a 10 Mb/s link unused."""
_AVPKT = 1000
_LEAST = {"sfq": 2, "red": 8, "choke": 46}
"""The smallest buffer in packets that ``tc`` accepts: SFQ's limit must exceed 1, CHOKe's the upper
threshold, and below 8 packets no burst gives RED its weight (:func:`_burst`)."""
_MOST = {
    "sfq": 127 * 128, "choke": 2**17 - 1, "red": (10 * 2**27 - 1) // 3 // FULL,
    "fq-codel": 2**31 // _MEMORY,
    **dict.fromkeys(("fq-pie", "cake", "dualpi2"), (2**32 - 1) // _MEMORY),
}  # fmt: skip
"""The largest buffer in packets that a kernel keeps to: of SFQ 127 packets in each of 128 flows, of
CHOKe what its table holds. RED's upper threshold, three tenths of the buffer, has 27 bits, beside
the weight's four. Limits of memory have 32 bits, FQ-CoDel's is 2^31 bytes at most."""
_MEMORY_LIMIT = {"linux": 2**25, "openwrt": 2**22}
"""The memory in bytes to which FQ-CoDel and FQ-PIE keep by themselves."""
_NAT = "nat"
"""Lets CAKE share among hosts behind the box's address translation, whose packets otherwise have
one address when they reach the queue. Without translation it has no effect (tc-cake(8))."""
_FASTEST = (2**32 - 1) * 8 // 1000
"""The largest bandwidth of RED and CHOKe that ``tc`` accepts, kbit/s: 32 bits of bytes per second.
It gives the transmission time for idle periods, at higher rates at most a quarter of a us."""


def _tc(name: str, link: Link, way: str, interface: str, stab: str) -> list[str]:
    (rate, _), packets = shaper(name, link, way, "linux"), _packets(link.buffer)
    clear = f"tc qdisc del dev {interface} root 2>/dev/null"
    if why := refused(name, link, "linux"):
        return [f"# {why}"]
    if name == "cake":
        what = f"cake bandwidth {rate} diffserv3 {_cake(link, way)}"
        return [clear, f"tc qdisc add dev {interface} root {what}"]
    room = packets * FULL
    what = _TC[name].format(
        packets=packets, bytes=room, codel=_typed_codel(rate), memory=_memory(packets, "linux"),
        bandwidth=rate if bits_per_second(rate) <= _FASTEST * 1000 else f"{_FASTEST}kbit",
        low=room // 10, high=3 * room // 10, burst=_burst(room // 10),
    )  # fmt: skip
    since = ["# from Linux 6.17 and iproute2 6.18 on"] if name == "dualpi2" else []
    return [
        *since,
        clear,
        f"tc qdisc add dev {interface} root handle 1:{stab} htb default 1",
        f"tc class add dev {interface} parent 1: classid 1:1 htb rate {rate} quantum {FULL}",
        f"tc qdisc add dev {interface} parent 1:1 {what}",
    ]


def _cake(link: Link, way: str) -> str:
    """CAKE's words beside its rate and tins.

    What it drops on the way down has used the line already: with ``ingress`` the shaper counts it.
    """
    ingress = "ingress" if way == "down" else ""
    memory = f"memlimit {_packets(link.buffer) * _MEMORY}"
    return " ".join(filter(None, (_NAT, ingress, memory, link.framing)))


_CODEL_WORDS = {"target": ("target", 0), "interval": ("interval", 0)}
_PIE_WORDS = {
    "target": ("target", 0), "t_update": ("tupdate", 0), "alpha": ("alpha", 16),
    "beta": ("beta", 16),
}  # fmt: skip
_WORDS: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "codel": _CODEL_WORDS, "fq-codel": _CODEL_WORDS, "pie": _PIE_WORDS, "fq-pie": _PIE_WORDS,
}  # fmt: skip
"""Words of ``tc`` for parameters, with its units in one of ours; 0 for a time."""


def tuned(name: str, params: Mapping[str, Any]) -> str:
    """A queue discipline with its parameters in the syntax of ``tc``; empty if it has no words."""
    words = _WORDS.get(name, {})
    if not params or not params.keys() <= words.keys():
        return ""
    typed = [
        f"{word} {round(units * value) if units else f'{round(seconds(value) * 1e6)}us'}"
        for key, value in params.items()
        for word, units in [words[key]]
    ]
    return f"{name.replace('-', '_')} {' '.join(typed)} ecn"


def _typed_codel(rate: str) -> str:
    target, interval = _codel_us(rate)
    return f" target {target}us interval {interval}us" if target > _TARGET_US else ""


def _memory(packets: int, box: str) -> str:
    """The limit of memory for a buffer that takes more than a kernel's own limit."""
    memory = packets * _MEMORY
    return f" memory_limit {memory}" if memory > _MEMORY_LIMIT[box] else ""


def _stab(link: Link, interface: str) -> str:
    """The framing for a shaper that does not know CAKE's keywords."""
    if not link.framing:
        return ""
    overhead, mpu, cells = _sized(link, interface)
    layer = " linklayer atm" if cells == "atm" else ""
    return f" stab overhead {overhead} mpu {mpu}{layer}"


def _sized(link: Link, interface: str) -> tuple[int, int, str]:
    """Overhead, least length and layer of the link, for a kernel's table of sizes.

    A table counts from the interface's packets on (tc-stab(8), "Typical overheads").
    """
    overhead, mpu, cells = _core.framing(link.framing or "raw")
    return overhead - (HEADER if _has_header(interface) else 0), mpu, cells


def _has_header(interface: str) -> bool:
    """Whether the packets of an interface have an Ethernet header, by its name.

    PPP, WireGuard, TUN devices and most mobile modems have none.
    """
    return not re.search("ppp|^(pptp|l2tp|3g-|wwan|rmnet|wg|tun)", interface)


def lengths(name: str, link: Link, box: str, interface: str) -> Iterator[str]:
    """What the commands suppose of the lengths of packets, and how to check it on the box."""
    if not _kernel(box):
        return
    if link.framing and name != "cake":
        overhead, _, _ = _core.framing(link.framing)
        bare = "link/ppp, link/none or link/rawip"
        kinds = ("with", "link/ether", overhead - HEADER), ("without", bare, overhead)
        (this, shown, ours), (other, elsewhere, theirs) = (
            kinds if _has_header(interface) else kinds[::-1]
        )
        yield (
            f"overhead {ours} is for packets {this} an Ethernet header (`ip link show {interface}` "
            f"has {shown}); {other} one ({elsewhere}) type {theirs}"
        )
    if name != "cake":
        yield (
            "the kernel merges packets before a queue counts them (GRO, TSO), which CAKE alone "
            "splits: ethtool -K DEVICE gro off gso off tso off, for each interface of the router"
        )
    if re.match("pptp|l2tp|wg|tun|tap", interface):
        yield (
            f"packets of {interface} get the tunnel's headers below it (WireGuard: 60 bytes over "
            "IPv4, 80 over IPv6), which the commands do not count: shape the provider's interface"
        )


def refused(name: str, link: Link, box: str) -> str:
    """Why a box cannot have a link's buffer for a queue discipline; empty if it can."""
    if not _kernel(box):
        return ""
    packets = _packets(link.buffer)
    if packets < (least := _LEAST.get(name, 1)):
        return f"tc's {name} needs a buffer of {least} packets or more"
    if packets > (most := _MOST.get(name, packets)):
        return f"tc's {name} takes a buffer of {most} packets at most"
    return ""


def _burst(low: int) -> int:
    """The burst, in packets, from which ``tc`` computes the weight 1/16 of the preset ``linux``.

    When such a burst meets an idle queue, the average must stay below ``min`` (FJ93, the upper
    bound for w_q): ``tc`` takes the largest such 1/2^k. Ten packets above the lower threshold give
    1/16 for buffers of 49 packets and more.
    """

    def stays_below(burst: int, weight: float) -> bool:
        return burst + 1 - low / _AVPKT <= (1 - (1 - weight) ** burst) / weight

    bursts = range(low // _AVPKT + 10, 0, -1)
    fits = (b for b in bursts if stays_below(b, 1 / 16) and not stays_below(b, 1 / 8))
    return next(fits, 0)  # below eight packets there is no such burst


def _sqm(name: str, link: Link, interface: str) -> list[str]:
    """Commands for OpenWrt's sqm-scripts: one section for both directions.

    ``layer_cake`` has CAKE's three tins, as simulated, and ``piece_of_cake`` one. By default it
    ignores and clears incoming DSCPs (``besteffort wash``), unless squash is off. Without an
    explicit target ``simplest`` sets CoDel's by the rate (:func:`_codel_us`).
    """
    if "" in link.ways:
        return ["# sqm needs the direction: add --down RATE and --up RATE to see its lines"]
    if why := refused(name, link, "openwrt"):
        return [f"# {why}"]
    packets = _packets(link.buffer)
    down, up = (_cake(link, way) for way in ("down", "up"))
    limits = (f"ilimit='{packets}'", f"elimit='{packets}'")
    qdisc, script, *options = {
        "cake": ("cake", "layer_cake", "squash_dscp='0'", "squash_ingress='0'"),
        "fq-codel": ("fq_codel", "simplest", *limits, "ingress_ecn='ECN'", "egress_ecn='ECN'"),
        "droptail": ("pfifo", "simplest", *limits),
    }[name]
    if name != "cake":
        down = up = _memory(packets, "openwrt").strip() if name == "fq-codel" else ""
    section = _SECTION
    # Set also where there is nothing to say: the section may have another discipline's options.
    shown = ["qdisc_advanced='1'", "qdisc_really_really_advanced='1'", *options,
             f"iqdisc_opts='{down}'", f"eqdisc_opts='{up}'"]  # fmt: skip
    if link.framing and name != "cake":
        overhead, mpu, cells = _sized(link, interface)
        layer = "atm" if cells == "atm" else "ethernet"
        shown += ["linklayer_advanced='1'", f"linklayer='{layer}'", f"overhead='{overhead}'",
                  f"tcMPU='{mpu}'"]  # fmt: skip
    else:
        shown.append("linklayer='none'")
    rates = []
    for way, key in (("down", "download"), ("up", "upload")):
        if way in link.ways:
            rate, _ = shaper(name, link, way, "openwrt")
            rates.append(f"uci set {section}.{key}='{_kbit(rate)}'")
        else:  # 0 leaves a direction alone; without it the scripts use their own rate
            rates.append(f"uci -q get {section}.{key} >/dev/null || uci set {section}.{key}='0'")
    return [
        f"uci set {section}=queue; uci set {section}.interface='{interface}'",
        f"uci set {section}.qdisc='{qdisc}'; uci set {section}.script='{script}.qos'",
        "; ".join(f"uci set {section}.{option}" for option in shown),
        *rates,
        f"uci set {section}.enabled='1'; uci commit sqm; service sqm restart",
    ]


_SECTION = "sqm.bluewater"  # uci allows fewer characters in a name than the kernel


def _gateway(name: str, link: Link, interface: str) -> str:
    lan = "eth1" if interface != "eth1" else "eth0"
    if bool(link.up) != bool(link.down):  # the gateway shapes both directions
        return "# the gateway needs both directions: add --down RATE and --up RATE to see its line"
    shaped = [link.shaped(way) for way in ("up", "down", "") if way in link.ways]
    back = f" --down-rate {shaped[1]}" if len(shaped) > 1 else ""
    framing = f" --overhead '{link.framing}'" if link.framing else ""
    ingress = " --param ingress=true --up-aqm cake" if back and name == "cake" else ""
    return (
        f"bluewater gateway --lan {lan} --wan {interface} --rate {shaped[0]}{back}"
        f" --buffer {link.buffer} --aqm {name}{ingress}{framing}"
    )


def _kbit(rate: str) -> int:
    return max(1, round(bits_per_second(rate) / 1e3))


def _packets(buffer: str) -> int:
    """A buffer in full packets."""
    packets = re.fullmatch(r"(\d+)p", buffer)
    try:
        room, hint = int(packets[1]) if packets else -(-size_bytes(buffer) // FULL), None
    except InputError as error:
        room, hint = 0, error.hint
    if room < 1:
        allowed = "bytes or packets: 1p …, as in 1000p, 250kB"
        raise InputError("not a buffer", key="buffer", value=buffer, allowed=allowed, hint=hint)
    return room

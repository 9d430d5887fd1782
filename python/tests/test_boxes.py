from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import replace

import pytest
from conftest import Cli

import bluewater
from bluewater.errors import InputError
from bluewater.study.advice.advise import Link, scenario
from bluewater.study.advice.boxes import (
    BOXES,
    LEFT_OUT,
    around,
    candidates,
    commands,
    lengths,
    settings,
    simulated,
)
from bluewater.units import bits_per_second


@pytest.mark.parametrize("box", BOXES)
def test_each_candidate_has_something_to_type_on_its_box(box: str) -> None:
    there = candidates(box)
    assert "droptail" in there
    for name in there:
        lines = commands(name, Link("50mbit"), box, "wan0")
        typed = [line for line in lines if not line.startswith("#")]
        assert all("wan0" in line for line in typed) or box == "openwrt"
        first = {"openwrt": "uci set", "docsis": "bluewater gateway", "bluewater": "bluewater"}
        assert all(line.startswith(first.get(box, "tc ")) for line in typed), lines
        if box.startswith("linux"):
            assert typed[0] == "tc qdisc del dev wan0 root 2>/dev/null"  # so that they work again
            assert typed[-1].startswith("tc qdisc add")


def test_what_is_typed_makes_the_queue_that_was_tried() -> None:
    """In a kernel the presets ``linux``, with the buffer of the link."""
    link = Link(buffer="250kB", margin=0)
    home = Link(down="50mbit", up="10mbit", buffer="250kB")
    for name in candidates("linux"):
        assert settings(name, "bluewater", "50mbit") == {"queue.0.aqm": name}
    assert settings("red", "linux", "50mbit")["queue.0.params"] == {"preset": "linux"}
    red, sfq, fq_codel = (commands(name, link)[3] for name in ("red", "sfq", "fq-codel"))
    assert red.endswith(
        "red limit 251324 min 25132 max 75397 avpkt 1000 burst 35 probability 0.1 "
        "bandwidth 50000kbit ecn"
    )
    assert sfq.endswith("sfq limit 166 perturb 600")
    assert fq_codel.endswith("fq_codel limit 166")
    (cake,) = (each for each in bluewater.catalog()["aqms"] if each["name"] == "cake")
    (tins,) = (each["default"] for each in cake["parameters"] if each["name"] == "diffserv")
    assert (
        settings("cake", "linux", "1mbit")
        == settings("cake", "openwrt", "50mbit")
        == {"queue.0.aqm": "cake"}
    )
    memory = 166 * 2 * 1514
    assert f"cake bandwidth 50000kbit {tins} nat memlimit {memory}" in commands("cake", link)[1]
    assert tins == "diffserv3"  # which is sqm-scripts' layer_cake; piece_of_cake is besteffort
    uci = " ".join(commands("cake", home, "openwrt"))
    assert "script='layer_cake.qos'" in uci
    assert f"eqdisc_opts='nat memlimit {memory}'" in uci
    assert f"iqdisc_opts='nat ingress memlimit {memory}'" in uci
    for name, qdisc in (("fq-codel", "fq_codel"), ("droptail", "pfifo")):
        uci = " ".join(commands(name, home, "openwrt"))
        assert f"qdisc='{qdisc}'" in uci
        assert "elimit='166'" in uci
    assert "--buffer 250kB" in commands("blue", link, "bluewater")[-1]


def weight(line: str) -> int:
    """The k of RED's weight 1/2^k, as ``tc`` finds it from ``burst``, ``min`` and ``avpkt``."""
    words = line.split()
    burst, low, packet = (int(words[words.index(key) + 1]) for key in ("burst", "min", "avpkt"))
    excess = burst + 1 - low / packet
    assert excess >= 1
    return next(k for k in range(1, 32) if excess <= (1 - (1 - 2**-k) ** burst) * 2**k)


def test_tc_takes_what_is_typed() -> None:
    """RED has the weight that was tried, 1/16, at each buffer; it had 1/1024 with 7 packets."""
    for packets in (*range(8, 120), 1000, 100_000):
        assert weight(commands("red", Link(buffer=f"{packets}p"))[-1]) == 4, packets
    for name in ("red", "choke"):  # 32 bits of bytes a second
        fast = commands(name, Link(rate="40gbit", margin=0))
        assert "htb rate 40000000kbit" in fast[2]
        assert "bandwidth 34359738kbit" in fast[3]


def test_buffers_and_rates_that_tc_does_not_take_are_not_typed() -> None:
    """A kernel cuts SFQ's limit to 127 packets in each of 128 flows, and says nothing."""
    for name, least in (("red", 8), ("sfq", 2), ("choke", 46)):
        assert commands(name, Link(buffer=f"{least}p"))[-1].startswith("tc qdisc add")
        (said,) = commands(name, Link(buffer=f"{least - 1}p"))
        assert said == f"# tc's {name} needs a buffer of {least} packets or more"
    for name, most in (
        ("sfq", 16_256), ("choke", 131_071), ("red", 295_503), ("fq-codel", 709_208),
        ("fq-pie", 1_418_417), ("cake", 1_418_417), ("dualpi2", 1_418_417),
    ):  # fmt: skip
        assert commands(name, Link(buffer=f"{most}p"))[-1].startswith("tc qdisc add")
        (said,) = commands(name, Link(buffer=f"{most + 1}p"))
        assert said == f"# tc's {name} takes a buffer of {most} packets at most"
    assert commands("cake", Link(up="9mbit", buffer="5000MB"), "openwrt")[0].startswith("#")
    assert "rate 1400bit" in commands("pie", Link(rate="1400bit", margin=0))[2]
    assert "upload='1'" in " ".join(commands("cake", Link(up="400bit"), "openwrt"))
    # The kernel adds the four bits of RED's weight to a threshold's, and takes less than 32.
    words = commands("red", Link(buffer="295503p"))[-1].split()
    assert int(words[words.index("max") + 1]).bit_length() + 4 < 32
    assert (3 * (295_504 * 1514) // 10).bit_length() + 4 == 32


def test_the_memory_that_a_buffer_takes_is_allowed() -> None:
    """By themselves they keep to 32 MiB, in OpenWrt to 4: of 30,000 packets 11,000 had room."""
    for name in ("fq-codel", "fq-pie"):
        big = commands(name, Link(buffer="30000p"))[-1]
        assert "limit 30000 memory_limit 90840000" in big
        assert "memory_limit" not in commands(name, Link(buffer="10000p"))[-1]
    home = Link(down="50mbit", up="10mbit")
    for buffer, told in (("2000p", "memory_limit 6056000"), ("1000p", "")):
        section = uci(commands("fq-codel", replace(home, buffer=buffer), "openwrt", "wan"))
        assert (section["iqdisc_opts"], section["eqdisc_opts"]) == (told, told)


def test_a_section_keeps_nothing_of_the_discipline_before() -> None:
    """CAKE's options stayed in the router's section, and its FQ-CoDel refused them."""
    framed = Link(down="8mbit", up="1mbit", framing="overhead 44 atm", buffer="3000p")
    plain = Link(down="8mbit", up="1mbit")
    sections = {
        (name, link.framing): uci(commands(name, link, "openwrt", "wan"))
        for name in candidates("openwrt")
        for link in (framed, plain)
    }
    # Of a limit that the scripts give to no CAKE, and of tins that they give to CAKE alone, they
    # read nothing elsewhere; overhead and tcMPU count with a linklayer alone.
    alone = {"ilimit", "elimit", "ingress_ecn", "egress_ecn", "squash_dscp", "squash_ingress",
             "linklayer_advanced", "overhead", "tcMPU"}  # fmt: skip
    keys = [{*section} - alone for section in sections.values()]
    assert all(each == keys[0] for each in keys)
    assert sections["cake", framed.framing]["linklayer"] == "none"
    # By default sqm-scripts' layer_cake adds `besteffort wash` to the way down, which clears tins.
    cake = sections["cake", plain.framing]
    assert (cake["squash_dscp"], cake["squash_ingress"]) == ("0", "0")


def test_dualpi2_is_for_kernels_that_have_it() -> None:
    assert "dualpi2" in candidates("linux")
    assert "dualpi2" not in candidates("linux-before-6.17")
    since, *_, last = commands("dualpi2", Link())
    assert "6.17" in since
    assert last == "tc qdisc add dev eth0 parent 1:1 dualpi2 limit 1000 min_qlen_step 2"
    tried = settings("dualpi2", "linux", "10mbit")["queue.0.params"]
    assert tried == {"preset": "linux", "th_len": 2}


def test_sqm_shapes_each_direction_by_its_own_rate() -> None:
    both = " ".join(commands("cake", Link(down="50mbit", up="10mbit"), "openwrt", "pppoe-wan"))
    assert "sqm.bluewater.interface='pppoe-wan'" in both
    assert "sqm.pppoe" not in both
    assert "download='45000'" in both
    assert "upload='9500'" in both
    up = " ".join(commands("cake", Link(up="10mbit"), "openwrt"))
    assert "upload='9500'" in up
    assert "download='0'" in up
    assert "get sqm.bluewater.download >/dev/null ||" in up  # what is set already stays
    (unknown,) = commands("cake", Link("50mbit"), "openwrt")
    assert unknown.startswith("# sqm needs the direction")
    assert "--lan eth0 --wan eth1" in commands("blue", Link(), "bluewater", "eth1")[-1]
    for one in (Link(down="50mbit"), Link(up="10mbit")):
        assert commands("blue", one, "bluewater")[-1].startswith(
            "# the gateway needs both directions"
        )
    both = commands("blue", Link(down="50mbit", up="10mbit"), "bluewater")[-1]
    assert "--rate 9500kbit --down-rate 45000kbit" in both


def test_what_is_typed_can_be_undone() -> None:
    both = Link(down="50mbit", up="10mbit")
    first, undo = around(commands("cake", both), both, "linux", "eth0")
    assert "tc qdisc show dev eth0" in first
    assert undo == [
        "tc qdisc del dev eth0 ingress; ip link del ifb4eth0",
        "tc qdisc del dev eth0 root",
    ]
    (root,) = around(commands("cake", Link()), Link(), "linux", "wan")[1]
    assert root == "tc qdisc del dev wan root"
    first, undo = around(commands("cake", both, "openwrt"), both, "openwrt", "wan")
    assert "uci show sqm" in first
    assert undo == ["uci delete sqm.bluewater; uci commit sqm; service sqm restart"]
    assert around(commands("blue", both, "bluewater"), both, "bluewater", "wan") == ("", [])
    refused = commands("cake", Link(), "openwrt")
    assert around(refused, Link(), "openwrt", "wan") == ("", [])


HOMES = {
    "ADSL": ("8mbit", "800kbit", "pppoe-llcsnap"), "slow ADSL": ("1mbit", "128kbit", "pppoa-vcmux"),
    "VDSL": ("50mbit", "10mbit", "pppoe-ptm"), "vectoring": ("100mbit", "40mbit", "bridged-ptm"),
    "cable": ("250mbit", "25mbit", "docsis"), "slow cable": ("30mbit", "2mbit", "docsis"),
    "fibre": ("1gbit", "500mbit", "ethernet"), "symmetric fibre": ("300mbit", "300mbit", ""),
    "LTE": ("30mbit", "5mbit", ""), "LTE at the edge": ("3mbit", "500kbit", ""),
    "5G": ("400mbit", "50mbit", ""), "Starlink": ("150mbit", "15mbit", ""),
    "satellite": ("20mbit", "3mbit", ""), "office": ("100mbit", "100mbit", "ethernet"),
    "leased line": ("2mbit", "2mbit", ""), "SDSL": ("4mbit", "4mbit", "overhead 44 atm"),
    "village radio": ("6mbit", "1500kbit", ""), "10 G": ("10gbit", "10gbit", ""),
    "odd": ("17.7mbit", "1.333mbit", "overhead 22 mpu 64"), "modem": ("256kbit", "64kbit", ""),
}  # fmt: skip


def uci(lines: list[str]) -> dict[str, str]:
    """What a router's section has after these lines, of an empty one before."""
    found: dict[str, str] = {}
    for command in "; ".join(lines).split("; "):
        words = shlex.split(command.split("||")[-1])
        if words[:2] == ["uci", "set"]:
            key, _, value = words[2].partition("=")
            assert key.startswith("sqm.bluewater")
            found[key.removeprefix("sqm.bluewater").lstrip(".")] = value
        else:
            assert words in (["uci", "commit", "sqm"], ["service", "sqm", "restart"]), command
    return found


def kbit(rate: str) -> float:
    return bits_per_second(rate) / 1000


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("name", candidates("openwrt"))
def test_a_home_types_its_own_rates(home: str, name: str) -> None:
    down, up, framing = HOMES[home]
    section = uci(commands(name, Link(down=down, up=up, framing=framing), "openwrt", "wan"))
    assert section[""] == "queue"
    assert 0.85 * kbit(down) <= float(section["download"]) <= 0.95 * kbit(down)
    assert 0.9 * kbit(up) - 1 <= float(section["upload"]) <= 0.95 * kbit(up) + 1
    if framing in ("pppoe-llcsnap", "pppoa-vcmux", "overhead 44 atm"):
        told = section["eqdisc_opts"] if name == "cake" else section["linklayer"]
        assert (framing if name == "cake" else "atm") in told


def test_framing_counts_from_the_ip_packet_on() -> None:
    """What is simulated has no Ethernet header, and a kernel's table of sizes has it already."""
    framed = scenario(Link(framing="docsis", hostile=("1mbit",)), "9s", "3s")["traffic"]
    assert [each["packet"] for each in framed] == ["1500B", "200B", "136B", "1500B"]
    assert [each["rate"] for each in framed[1:]] == ["80000bit", "65280bit", "1mbit"]
    plain = scenario(Link(), "9s", "3s")["traffic"]
    assert [each["packet"] for each in plain] == ["1514B", "214B", "150B"]
    for name, overhead in (
        ("wan", 18 - 14), ("tap0", 18 - 14), ("pppoe-wan", 18), ("ppp0", 18), ("wwan0", 18),
        ("wg0", 18), ("tun0", 18), ("3g-wan", 18), ("l2tp-vpn", 18), ("rmnet0", 18),
    ):  # fmt: skip
        link = Link(down="9mbit", up="9mbit", framing="docsis")
        assert uci(commands("fq-codel", link, "openwrt", name))["overhead"] == str(overhead)
        shapers = [line for line in commands("fq-codel", link, "linux", name) if "stab" in line]
        assert [f"stab overhead {overhead} mpu 64" in line for line in shapers] == [True, True]
        for box in ("openwrt", "linux"):
            assert "docsis" in " ".join(commands("cake", link, box, name))


@pytest.mark.parametrize(
    ("interface", "told"),
    [
        ("eth0", ["overhead 26 is for packets with an Ethernet header", "link/ether", "type 40"]),
        ("wwan0", ["overhead 40 is for packets without an Ethernet header", "type 26"]),
        ("wg0", ["overhead 40", "the tunnel's headers below it", "shape the provider's interface"]),
    ],
)
def test_what_is_supposed_of_packets_lengths_is_said(interface: str, told: list[str]) -> None:
    """The name of an interface only suggests its kind, which its kernel knows."""
    link = Link(down="8mbit", up="1mbit", framing="pppoe-llcsnap")
    for box in ("linux", "openwrt"):
        said = " ".join(lengths("fq-codel", link, box, interface))
        assert [each for each in told if each not in said] == []
        assert "ethtool -K DEVICE gro off gso off tso off" in said
    assert not [*lengths("cake", link, "linux", "eth0")]  # from the IP packet on
    assert not [*lengths("blue", link, "bluewater", interface)]


def test_raw_counts_packets_as_their_interface_does() -> None:
    """A table of sizes had an overhead of -14 bytes, and the simulation IP packets."""
    assert Link(framing="raw") == Link(framing=" raw ") == Link(framing="")
    slow = Link(down="8mbit", up="1mbit")
    assert slow.may_have_cells
    assert not replace(slow, framing="raw").may_have_cells  # the line is known
    assert simulated("fq-codel", slow, "up", "linux") == simulated(
        "fq-codel", replace(slow, framing="raw"), "up", "linux"
    )
    for name in candidates("linux"):
        assert "stab" not in " ".join(commands(name, Link(framing="raw")))
    with pytest.raises(InputError, match="stands alone") as raised:
        Link(framing="overhead 44 raw")
    assert raised.value.hint == "leave raw out: overhead 44"


@pytest.mark.parametrize("name", candidates("linux"))
def test_ptm_comes_off_the_rate_where_only_cake_can_count_it(name: str) -> None:
    """A shaper at the line's rate sent 1.6 % more than a VDSL modem can."""
    link = Link(down="50mbit", up="10mbit", framing="pppoe-ptm", margin=0)
    for way, kbit_ in (("down", 49_230), ("up", 9_846)):
        told = simulated(name, link, way, "linux")
        lines = [line for line in commands(name, link, "linux") if "tc " in line]
        if name == "cake":
            assert not any(key.startswith("link.") for key in told)
            assert any("bandwidth 10000kbit" in line and "pppoe-ptm" in line for line in lines)
            continue
        assert told["link.2.rate"] == f"{kbit_}kbit"
        assert told["link.2.framing"] == "overhead 30 mpu 0"
        assert any(f"htb rate {kbit_}kbit" in line for line in lines)
        assert any(f"stab overhead {30 - 14} mpu 0 htb" in line for line in lines)
    if name in candidates("openwrt"):
        section = uci(commands(name, link, "openwrt", "wan"))
        wanted = ("50000", "10000") if name == "cake" else ("49230", "9846")
        assert (section["download"], section["upload"]) == wanted
    assert simulated(name, link, "up", "bluewater") == {"queue.0.aqm": name}  # counts it itself


def test_lines_without_cells_have_one_set_of_commands() -> None:
    none = [
        Link(down="50mbit", up="10mbit"), Link(down="30mbit", up="2mbit"), Link("50mbit"),
        Link(down="8mbit", up="800kbit", framing="docsis"), Link(down="20mbit", up="10mbit"),
    ]  # fmt: skip
    some = [Link("1mbit"), Link(up="1mbit"), Link(down="8mbit")]
    assert [link.may_have_cells for link in none + some] == [False] * len(none) + [True] * 3


IPROUTE = shutil.which("tc") and shutil.which("unshare")


@pytest.mark.skipif(not IPROUTE or os.geteuid() != 0, reason="needs iproute2 and root")
@pytest.mark.parametrize("home", HOMES)
def test_tc_understands_what_a_home_types(home: str) -> None:
    """In a network namespace of its own; kernels without a discipline or ifb say so."""
    down, up, framing = HOMES[home]
    link = Link(down=down, up=up, framing=framing)
    if home == "office":
        link = replace(link, buffer="15000p")  # with limits of memory
    for name in candidates("linux-before-6.17"):
        lines = commands(name, link, "linux", "veth0")
        script = "\n".join(["ip link add veth0 type veth peer name veth1", *lines])
        run = subprocess.run(
            ["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, check=False
        )  # fmt: skip
        said = [
            line
            for line in run.stderr.splitlines()
            if "qdisc kind is unknown" not in line and "Cannot find device" not in line
            and "Unknown device type" not in line and "not supported" not in line.lower()
        ]  # fmt: skip
        for wrong in ("Usage", "What is", "Illegal", "unknown parameter", "Error: argument"):
            assert not any(wrong in line for line in said), (name, lines, run.stderr)


def test_a_slow_link_has_codel_s_target_as_the_box_sets_it() -> None:
    """OpenWrt: 33 cells of 53 bytes at the shaped rate; interval longer by as much."""
    for rate, target in (("808kbit", 17_316), ("500kbit", 27_984), ("2798kbit", 5_000)):
        told = settings("fq-codel", "openwrt", rate)["queue.0.params"]
        if target == 5_000:
            assert told == {"preset": "linux"}
            continue
        assert told["target"] == f"{target}us"
        assert told["interval"] == f"{95_000 + target}us"
        (line,) = (
            line for line in commands("fq-codel", Link(rate, margin=0)) if "fq_codel" in line
        )  # fmt: skip
        assert line.endswith(f"target {target}us interval {95_000 + target}us")


@pytest.mark.parametrize(
    ("interface", "hint"),
    [
        ("", None), ("eth0; rm -rf /", None), ("-x", None), ("much-too-long-a-name", None),
        ("eth0:1", None), ("eth0.2@eth0", "eth0.2"), ("veth@if5", "veth"),
    ],
)  # fmt: skip
def test_an_interface_has_a_name(interface: str, hint: str | None, cli: Cli) -> None:
    with pytest.raises(InputError, match="interface") as raised:
        commands("cake", Link(), "linux", interface)
    assert (hint or "") in (raised.value.hint or "")
    assert bool(raised.value.hint) == bool(hint)
    found = cli("advise", "--rate", "10gbit", f"--interface={interface}", keep_out=False)
    assert found.exit_code == 2  # at once, and not behind the runs


def test_all_are_all_but_what_is_named(cli: Cli) -> None:
    """The box `bluewater` has every discipline."""
    there = {entry["name"] for entry in bluewater.catalog()["aqms"]}
    assert set(candidates("bluewater")) == there - {*LEFT_OUT}
    assert {*LEFT_OUT} <= there
    for box in BOXES:
        assert set(candidates(box)) <= set(candidates("bluewater"))
    shown = " ".join(cli("advise", "--help", keep_out=False).stdout.split())
    assert all(name in shown for name in LEFT_OUT)

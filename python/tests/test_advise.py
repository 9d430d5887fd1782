from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from csv import DictReader
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from typer.testing import CliRunner

import bluewater
from bluewater.cli import app
from bluewater.errors import InputError
from bluewater.plots import advise as plots
from bluewater.study.advice.advise import (
    CALL,
    GAME,
    Link,
    Measured,
    Ranked,
    needed,
    rank,
    reasons,
    scenario,
    unmet,
)
from bluewater.study.advice.boxes import (
    BOXES,
    LEFT_OUT,
    around,
    candidates,
    commands,
    fitted,
    lengths,
    settings,
    simulated,
)
from bluewater.units import bits_per_second

LINKS = {
    "home": Link("50mbit", rtt=("20ms", "80ms")),
    "slow": Link("2mbit", rtt=("40ms",), bulk=3, buffer="100p"),
    "office": Link("100mbit", rtt=("10ms", "30ms", "100ms"), bulk=40, calls=5, games=0),
    "alone": Link("20mbit", rtt=("30ms",), bulk=1, calls=1),
    "bulk only": Link("20mbit", rtt=("50ms",), bulk=20, calls=0, games=0),
    "hostile": Link("10mbit", rtt=("40ms",), bulk=10, hostile=("8mbit",)),
    "two hostile": Link("20mbit", rtt=("20ms", "60ms"), bulk=5, hostile=("5mbit", "20mbit")),
    "Reno": Link("10mbit", rtt=("100ms",), bulk=10, transport="sack"),
    "no ECN": Link("30mbit", rtt=("25ms",), bulk=12, ecn=False),
    "crowd": Link("20mbit", rtt=("40ms",), bulk=100, calls=3),
}


TRIED = [
    *((name, "linux") for name in LINKS),
    ("home", "openwrt"), ("slow", "openwrt"), ("hostile", "docsis"), ("alone", "docsis"),
    ("Prague", "bluewater"), ("DCTCP", "bluewater"), ("BBR", "linux-before-6.17"),
    ("BBR 1", "openwrt"),
]  # fmt: skip
LINKS |= {
    "Prague": Link("30mbit", rtt=("20ms", "40ms"), bulk=4, transport="prague"),
    "DCTCP": Link("30mbit", rtt=("20ms",), bulk=4, transport="dctcp", games=0),
    "BBR": Link("20mbit", rtt=("40ms",), bulk=3, transport="bbr"),
    "BBR 1": Link("20mbit", rtt=("40ms",), bulk=3, transport="bbr1"),
}


def ranked_of(measured: dict[str, list[Measured]]) -> list[Ranked]:
    """The candidates of a link with one direction."""
    return rank(measured)[0]


def measured(throughput: float, delay: float, worth: float) -> Measured:
    return Measured(throughput, 1.0, delay, 0.0, worth)


@pytest.mark.parametrize(("name", "box"), TRIED)
def test_nothing_dominates_the_advice_on_other_seeds(name: str, box: str, tmp_path: Path) -> None:
    def ranked(first_seed: int) -> tuple[Ranked, ...]:
        return bluewater.advise(
            LINKS[name], box, reps=3, first_seed=first_seed, duration="9s", out=tmp_path,
            progress=False,
        ).ranked  # fmt: skip

    advised, again = ranked(1)[0].name, ranked(101)
    found = {each.name: each for each in again}
    assert set(found) == set(candidates(box))
    chosen = found[advised]
    for other in found.values():
        better = [
            a.mean(what).low > b.mean(what).high * 1.01
            for what, a, b in [
                ("throughput", other, chosen),
                ("jain", other, chosen),
                ("delay", chosen, other),
                ("loss", chosen, other),
            ]
        ]
        assert other.mean("throughput").high <= other.runs[0].rate
        worse = not other.means.dominates(chosen.means)
        assert worse or not any(better), f"{other.name} is better than {advised} in all"
    assert chosen.behind.low <= 0 or chosen.behind.mean < 0.3, (
        f"{advised} is far behind {again[0].name} elsewhere"
    )


def test_the_order_is_by_worth_and_pairs_seeds() -> None:
    fair = [measured(1e6, 0.01, 1.0), measured(1e6, 0.01, 2.0)]
    near = [measured(1e6, 0.01, 0.9), measured(1e6, 0.01, 1.9)]
    wild = [measured(1e6, 0.01, 3.0), measured(1e6, 0.01, -1.0)]
    found = ranked_of({"wild": wild, "near": near, "fair": fair})
    assert [each.name for each in found] == ["fair", "near", "wild"]
    assert found[1].behind.mean == pytest.approx(0.1)


def test_as_good_is_what_the_seeds_show_to_be_within_the_margin() -> None:
    """That they show no difference is no sign of it: of two seeds anything is within noise."""
    behind = {"same": (0.01, 0.02), "noise": (1.0, 1.8), "worse": (0.5, 0.51), "tiny": (0.05, 0.05)}
    runs = {name: [measured(1e6, 0.01, -each) for each in by] for name, by in behind.items()}
    found = {
        each.name: each for each in ranked_of({"first": [measured(1e6, 0.01, 0.0)] * 2, **runs})
    }
    assert found["noise"].behind.low < 0
    assert {name for name, each in found.items() if each.as_good} == {"first", "same", "tiny"}
    assert {name for name, each in found.items() if each.undecided} == {"noise"}
    more = [measured(1e6, 0.01, -each) for each in behind["noise"] * 4]
    told = ranked_of({"first": [measured(1e6, 0.01, 0.0)] * 8, "noise": more})[1]
    assert not told.as_good
    assert not told.undecided


def test_what_calls_lack_is_said_of_the_first_and_of_all() -> None:
    """The best row of a table lost a seventh of the calls, which only a cell of it said."""
    link = Link(down="8mbit", up="800kbit")
    good, lossy, late = (
        [Measured(1e6, 1.0, delay, loss, worth)] * 2
        for delay, loss, worth in ((0.01, 0.0, 0), (0.02, 0.139, 2), (0.3, 0.0, 1))
    )
    ways = dict(zip(("down", "up"), rank({"cake": good}, {"cake": lossy}), strict=True))
    said = unmet(ways, link)
    assert "a loss below 1 % and waits of at most 150 ms" in said
    assert "up, cake loses 13.9 % of them, and 99 % wait at most 20 ms" in said
    assert "down" not in said
    assert said.endswith("no candidate meets that")
    both = rank(
        {"cake": lossy, "pie": good, "sfq": late}, {"cake": lossy, "pie": good, "sfq": good}
    )
    assert unmet(dict(zip(("down", "up"), both, strict=True)), link).endswith("pie would do")
    assert unmet({"": ranked_of({"cake": good})}, link) == ""
    assert unmet({"": ranked_of({"cake": lossy})}, Link(calls=0, games=0)) == ""


def test_what_calls_lack_is_on_the_first_screen(tmp_path: Path) -> None:
    wish = ["advise", "--down", "8mbit", "--up", "800kbit", "--box", "openwrt", "--duration", "4s",
            "--reps", "2", "--out", str(tmp_path)]  # fmt: skip
    found = CliRunner().invoke(app, wish)
    lines = [line for line in found.stdout.splitlines() if line]
    advice = next(place for place, line in enumerate(lines) if line.startswith("Advice:"))
    assert lines[advice + 1].startswith("But calls and games need")
    heads = ["What to type on a line without ATM cells:",
             "What to type on ADSL, or if you do not know the line:"]  # fmt: skip
    assert [line for line in lines if line.startswith("What to type")] == heads
    assert "ADSL and some SHDSL lines carry ATM cells" in found.stderr
    told = json.loads(CliRunner().invoke(app, [*wish, "--json"]).stdout)
    assert told["unmet"].startswith("calls and games need")
    assert "conservative" in " ".join(told["commands_if_atm"])
    assert "conservative" not in " ".join(told["commands"])


def test_what_dominates_is_worth_more() -> None:
    link = LINKS["home"]
    assert measured(2.0, 1.0, 0).dominates(measured(1.0, 1.0, 0))
    assert not measured(2.0, 2.0, 0).dominates(measured(1.0, 1.0, 0))
    assert not measured(1.0, 1.0, 0).dominates(measured(1.0, 1.0, 0))
    assert "a plain queue" not in " ".join(
        reasons(
            [
                Ranked(
                    "red",
                    (measured(1, 1, 0),) * 2,
                    ranked_of({"red": [measured(1, 1, 0)] * 2})[0].behind,
                )
            ],
            link,
        )
    )


def test_the_link_sends_no_more_than_it_can(tmp_path: Path) -> None:
    """At the receivers it was 51.8 Mb/s of 50: what was queued as the warm-up ended came on top."""
    advice = bluewater.advise(
        Link("50mbit", bulk=4, transport="prague", ecn=True), "bluewater", reps=2, duration="6s",
        progress=False, out=tmp_path,
    )  # fmt: skip
    for each in advice.ranked:
        for run in each.runs:
            assert run.throughput <= 50e6
            assert run.jain <= 1
        for what, least, most in [
            ("throughput", 0, 50e6), ("jain", 0, 1), ("delay", 0, 60), ("loss", 0, 1),
        ]:  # fmt: skip
            found = each.mean(what)
            assert least <= found.low <= found.mean <= found.high <= most


@pytest.mark.parametrize("box", BOXES)
def test_each_candidate_has_something_to_type_on_its_box(box: str) -> None:
    there = candidates(box)
    assert "droptail" in there
    for name in there:
        lines = commands(name, LINKS["home"], box, "wan0")
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
    tins = next(
        each["default"]
        for entry in bluewater.catalog()["aqms"]
        if entry["name"] == "cake"
        for each in entry["parameters"]
        if each["name"] == "diffserv"
    )
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
    for name, least in (("red", 8), ("sfq", 2), ("choke", 46)):
        assert commands(name, Link(buffer=f"{least}p"))[-1].startswith("tc qdisc add")
        (said,) = commands(name, Link(buffer=f"{least - 1}p"))
        assert said == f"# tc's {name} needs a buffer of {least} packets or more"
    for name in ("red", "choke"):  # 32 bits of bytes a second
        fast = commands(name, Link(rate="40gbit", margin=0))
        assert "htb rate 40000000kbit" in fast[2]
        assert "bandwidth 34359738kbit" in fast[3]


def test_buffers_and_rates_that_tc_does_not_take_are_not_typed() -> None:
    """A kernel cuts SFQ's limit to 127 packets in each of 128 flows, and says nothing."""
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


def test_red_s_thresholds_have_the_bits_that_the_kernel_has() -> None:
    """The kernel adds the weight's four bits to a threshold's, and takes less than 32."""
    words = commands("red", Link(buffer="295503p"))[-1].split()
    assert int(words[words.index("max") + 1]).bit_length() + 4 < 32
    assert (3 * (295_504 * 1514) // 10).bit_length() + 4 == 32


@pytest.mark.parametrize("name", ["fq-codel", "fq-pie"])
def test_the_memory_that_a_buffer_takes_is_allowed(name: str) -> None:
    """By themselves they keep to 32 MiB: of a buffer of 30,000 packets 11,000 had room."""
    big = commands(name, Link(buffer="30000p"))[-1]
    assert "limit 30000 memory_limit 90840000" in big
    assert "memory_limit" not in commands(name, Link(buffer="10000p"))[-1]


def test_openwrt_s_fq_codel_gets_its_memory() -> None:
    """By itself it keeps to 4 MiB there."""
    home = Link(down="50mbit", up="10mbit")
    big = uci(commands("fq-codel", replace(home, buffer="2000p"), "openwrt", "wan"))
    assert (big["iqdisc_opts"], big["eqdisc_opts"]) == ("memory_limit 6056000",) * 2
    usual = uci(commands("fq-codel", home, "openwrt", "wan"))
    assert (usual["iqdisc_opts"], usual["eqdisc_opts"]) == ("", "")


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


def test_a_discipline_that_the_box_cannot_have_is_no_candidate(tmp_path: Path) -> None:
    """The first of the table was one for which there was nothing to type."""
    wish: dict[str, Any] = {"reps": 2, "duration": "300ms", "progress": False, "out": tmp_path}
    big = bluewater.advise(rate="5mbit", rtt=("10ms",), bulk=1, buffer="20000p", **wish)
    assert {*candidates("linux")} - {each.name for each in big.ranked} == {"sfq"}
    small = ["--rate", "5mbit", "--rtt", "10ms", "--bulk", "1", "--buffer", "20p", "--reps", "2"]
    found = CliRunner().invoke(
        app, ["advise", *small, "--duration", "300ms", "--out", str(tmp_path)]
    )
    assert "choke" not in found.stdout
    assert "choke is no candidate: tc's choke needs a buffer of 46" in " ".join(
        found.stderr.split()
    )


def advised(link: Link, tmp_path: Path, duration: str = "3s") -> tuple[Ranked, ...]:
    return bluewater.advise(
        link, "openwrt", reps=2, duration=duration, progress=False, out=tmp_path
    ).ranked


def test_the_link_is_the_narrowest_at_any_rate(tmp_path: Path) -> None:
    """At 20 Gb/s the links before it had 10, and no queue differed from another."""
    link = Link("20gbit", margin=0, rtt=("1ms",), bulk=8, calls=0, games=0, buffer="3000p")
    ranked = advised(link, tmp_path, "500ms")
    assert max(each.means.throughput for each in ranked) > 18e9
    assert max(each.means.delay for each in ranked) > 1e-4


def test_loss_is_of_what_always_has_data_where_nothing_is_interactive(tmp_path: Path) -> None:
    """It was 0 % for all, also where TCP lost a tenth."""
    link = Link(
        "10mbit",
        rtt=("20ms",),
        bulk=10,
        calls=0,
        games=0,
        hostile=("9mbit",),
        ecn=False,
        buffer="60p",
    )
    ranked = {each.name: each for each in advised(link, tmp_path)}
    lost = ranked["droptail"].means.loss
    assert lost > 0.01
    assert "bulk flows lose" in " ".join(reasons(list(ranked.values()), link))
    assert any(mine < lost for mine in (each.means.loss for each in ranked.values()))


def test_loss_is_a_share_also_on_a_link_of_a_packet_in_seconds(tmp_path: Path) -> None:
    """What is dropped in the window may have come before it: it was 101 %."""
    for each in advised(Link("1kbit", buffer="10p"), tmp_path, "4s"):
        assert 0 <= each.mean("loss").low <= each.means.loss <= each.mean("loss").high <= 1


def test_a_link_that_nothing_fills_is_told(tmp_path: Path) -> None:
    link = Link("50mbit", rtt=("300ms",), bulk=1, calls=0, games=0)
    assert "candidates differ little" in " ".join(reasons(advised(link, tmp_path), link))
    busy = Link("5mbit", rtt=("20ms",), bulk=4)
    assert "candidates differ little" not in " ".join(reasons(advised(busy, tmp_path), busy))


def test_a_single_text_is_one() -> None:
    one: Any = {"rtt": "20ms", "hostile": "5mbit"}
    assert Link(**one) == Link(rtt=("20ms",), hostile=("5mbit",))
    for wrong in ({"rtt": 20}, {"hostile": [5]}, {"rtt": ()}):
        any_: Any = wrong
        with pytest.raises(InputError) as raised:
            Link(**any_)
        assert raised.value.key == next(iter(wrong))


def test_dualpi2_is_for_kernels_that_have_it() -> None:
    assert "dualpi2" in candidates("linux")
    assert "dualpi2" not in candidates("linux-before-6.17")
    since, *_, last = commands("dualpi2", Link())
    assert "6.17" in since
    assert last == "tc qdisc add dev eth0 parent 1:1 dualpi2 limit 1000 min_qlen_step 2"
    assert settings("dualpi2", "linux", "10mbit")["queue.0.params"] == {
        "preset": "linux",
        "th_len": 2,
    }


def test_dualpi2_as_advised_does_not_starve_l4s_flows_on_a_slow_link() -> None:
    """By itself the kernel's step marks single packets, which take longer than it here."""
    link = Link("10mbit", rtt=("80ms",), bulk=1, transport="prague", calls=0, games=0)
    made = scenario(link, "60s", "20s")
    cubic = {**made["traffic"][0], "name": "cubic", "transport": "cubic", "preset": "linux"}
    made["traffic"] = [*made["traffic"], cubic]

    def prague(params: dict[str, Any]) -> float:
        queue = {**made["queue"][0], "aqm": "dualpi2", "params": params}
        flows = bluewater.run({**made, "queue": [queue]}).flows
        rates = dict(zip(flows["group"], flows["throughput_bps"], strict=True))
        return float(rates["bulk"] / rates["cubic"])

    assert prague({"preset": "linux"}) < 0.2
    assert 0.8 < prague(settings("dualpi2", "linux", "10mbit")["queue.0.params"]) < 3  # nor CUBIC


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
    assert around(commands("cake", Link()), Link(), "linux", "wan")[1] == [
        "tc qdisc del dev wan root"
    ]
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


HOWTO = Path(__file__).parents[2] / "docs/howto.md"


def test_the_page_s_figure_of_both_ways_at_once() -> None:
    """The link of one direction, with acknowledgements of the other direction and without."""
    wide = {"rate": "1gbit", "delay": "0ms"}
    bulk = {"transport": "cubic", "preset": "linux", "start": "0s..1s", "ecn": True, "flows": 8}
    adsl = {"delay": "0ms", "framing": "overhead 44 atm", "duplex": False}
    slow = settings("fq-codel", "linux", "760kbit")["queue.0.params"]
    made: dict[str, Any] = {
        "duration": "30s", "warmup": "10s",
        "link": [
            {"from": "far", "to": "S", **wide, "delay": "10ms"},
            {"from": "S", "to": "R", "rate": "7200kbit", **adsl},
            {"from": "R", "to": "S", "rate": "760kbit", **adsl},
            {"from": "R", "to": "home", **wide},
        ],
        "queue": [
            {"link": "S->R", "aqm": "fq-codel", "buffer": "1000p", "params": {"preset": "linux"}},
            {"link": "R->S", "aqm": "fq-codel", "buffer": "1000p", "params": slow},
        ],
    }  # fmt: skip
    up = {"name": "up", "from": ["home"], "to": ["far"], **bulk}
    down = {"name": "down", "from": ["far"], "to": ["home"], **bulk}
    found = []
    for traffic in ([up], [up, down]):
        flows = bluewater.run({**made, "traffic": traffic}).flows
        found.append(float(flows.filter(flows["group"] == "up")["goodput_bps"].sum()) / 1e6)
    told = re.search(r"get ([\d.]+) Mb/s alone, and ([\d.]+) Mb/s beside", HOWTO.read_text())
    assert told
    assert found == pytest.approx([float(each) for each in told.groups()], rel=0.02)


def test_the_page_s_figure_of_a_rate_that_varies() -> None:
    varies = {"rate_trace": {"model": "cellular", "mean": "30mbit"}}
    made = {
        "duration": "60s", "warmup": "10s",
        "link": [
            {"from": "far", "to": "R", "rate": "27mbit", "delay": "30ms"},
            {"from": "R", "to": "home", "rate": "30mbit", "delay": "0ms", **varies},
        ],
        "queue": [
            {"link": "far->R", "aqm": "cake", "buffer": "1000p"},
            {"link": "R->home", "aqm": "droptail", "buffer": "1000p"},
        ],
        "traffic": [
            {"from": ["far"], "to": ["home"], "flows": 8, "transport": "cubic", "preset": "linux",
             "start": "0s..1s"},
        ],
    }  # fmt: skip
    modem = bluewater.run(made).queues.to_dicts()[1]
    told = re.search(r"percentile of ([\d.]+) s in its own queue", HOWTO.read_text())
    assert told
    assert modem["delay_p99_s"] == pytest.approx(float(told[1]), rel=0.02)


def test_a_long_work_is_announced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("here the runs would begin")

    monkeypatch.setattr(bluewater.lab, "advise", refuse)
    for wish, told in (
        (["--rate", "10gbit"], True),
        (["--down", "50mbit", "--up", "10mbit"], False),
    ):
        found = CliRunner().invoke(app, ["advise", *wish])
        assert "the runs would begin" in found.stderr
        assert ("million packets" in found.stderr) == told
        assert ("--duration 3s" in found.stderr) == told


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


def test_no_queue_forms_in_a_vdsl_modem_behind_the_box() -> None:
    link = Link("10mbit", framing="pppoe-ptm", margin=0, bulk=4, calls=0, games=0)
    made = scenario(link, "10s", "2s")
    told = simulated("fq-codel", link, "", "linux")
    *before, box, last = made["link"]
    box |= {"rate": told["link.2.rate"], "framing": told["link.2.framing"]}
    modem = {"from": "S", "to": "M", "rate": "10mbit", "delay": "0s", "framing": "pppoe-ptm"}
    made["link"] = [*before, box, modem, last | {"from": "M"}]
    made["queue"] = [
        {"link": "R->S", "aqm": "fq-codel", "buffer": "1000p"},
        {"link": "S->M", "aqm": "droptail", "buffer": "1000p"},
    ]
    here, there = bluewater.run(made).queues.to_dicts()
    assert here["throughput_bps"] > 9e6
    assert there["delay_p99_s"] < 0.002 < here["delay_p99_s"]


def typed(link: Link, name: str, way: str) -> tuple[str, str]:
    """The rate and the framing that a router's section has; empty without."""
    section = uci(commands(name, link, "openwrt", "wan"))
    egress = way == "up"
    rate = f"{section['upload' if egress else 'download']}kbit"
    if name == "cake":
        options = section["eqdisc_opts" if egress else "iqdisc_opts"]
        return rate, options.partition("memlimit ")[2].partition(" ")[2]
    if section["linklayer"] == "none":
        return rate, ""
    atm = " atm" if section["linklayer"] == "atm" else ""
    return rate, f"overhead {int(section['overhead']) + 14}{atm} mpu {section['tcMPU']}"


def behind_a_modem(
    link: Link, name: str, way: str, time: tuple[str, str], seed: int
) -> tuple[Measured, float]:
    """Users behind a box as typed and a modem at the line's rate; the modem's delay (99 %), s."""
    rate, framing = typed(link, name, way)
    made = scenario(link, *time, link.ways[way])
    *before, line, last = made["link"]
    box = line | {"rate": rate} | ({"framing": framing} if framing else {})
    made["link"] = [*before, box, line | {"from": "S", "to": "M"}, last | {"from": "M"}]
    told = simulated(name, link, way, "openwrt")
    queue = {"aqm": told["queue.0.aqm"], "params": told.get("queue.0.params", {})}
    made["queue"] = [
        {"link": "R->S", "buffer": link.buffer, **queue},
        {"link": "S->M", "aqm": "droptail", "buffer": "1000p"},
    ]
    found = bluewater.run(made | {"seed": seed})
    return Measured.of(found, bits_per_second(rate)), found.queues["delay_p99_s"].to_list()[1]


@pytest.mark.parametrize("home", [home for home in HOMES if home not in {"fibre", "10 G"}])
def test_the_typed_rates_give_what_was_promised(home: str, tmp_path: Path) -> None:
    """With other seeds, and a modem behind the box: throughput within a tenth, no queue there."""
    down, up, framing = HOMES[home]
    link = Link(down=down, up=up, framing=framing, rtt=("30ms",), bulk=4, calls=1, games=0)
    slowest = min(kbit(down), kbit(up))
    for name, way in product(("fq-codel", "cake"), ("down", "up")):
        length = min(max(60_000 / slowest, 6), 120)
        time = f"{length:.0f}s"
        advice = bluewater.advise(
            link, "openwrt", reps=2, duration=time, progress=False, out=tmp_path
        )
        (promised,) = (each.means for each in advice.ways[way] if each.name == name)
        both = [
            behind_a_modem(link, name, way, (time, f"{length / 4:.0f}s"), seed)
            for seed in (101, 102)
        ]
        throughput = sum(found.throughput for found, _ in both) / 2
        assert throughput == pytest.approx(promised.throughput, rel=0.1), (name, way)
        a_packet = 12_000 / bits_per_second(link.ways[way])
        assert max(delay for _, delay in both) < 0.002 + 2 * a_packet, (name, way)


def on_the_line(
    link: Link, name: str, way: str, line: str, params: dict[str, Any] | None = None
) -> tuple[float, float]:
    """What typed commands give on a line of another framing.

    The delay (99 %) in the modem, or at the provider, s; the bulk flows' goodput, bit/s.
    """
    rate, framing = typed(link, name, way)
    made = scenario(replace(link, framing=line), "24s", "8s", link.ways[way])
    *before, whole, last = made["link"]
    box = whole | {"rate": rate, "framing": framing or "overhead 14"}  # a frame, as at wan
    first, second = (box, whole) if way == "up" else (whole, box)
    made["link"] = [*before, first, second | {"from": "S", "to": "M"}, last | {"from": "M"}]
    here, there = ("R->S", "S->M") if way == "up" else ("S->M", "R->S")
    told = simulated(name, link, way, "openwrt")
    queue = {"aqm": name, "params": told.get("queue.0.params", {}) | (params or {})}
    made["queue"] = [
        {"link": here, "buffer": link.buffer, **queue},
        {"link": there, "aqm": "droptail", "buffer": "1000p"},
    ]
    found = bluewater.run(made)
    _, other = found.queues.to_dicts()
    bulk = found.flows.filter(found.flows["group"] == "bulk")
    return other["delay_p99_s"], float(bulk["goodput_bps"].sum())


@pytest.mark.parametrize(
    "rates", [("8mbit", "800kbit"), ("16mbit", "1mbit"), ("24mbit", "3300kbit"), ("4mbit", "4mbit")]
)
@pytest.mark.parametrize("name", ["fq-codel", "cake"])
def test_without_a_framing_commands_are_there_for_lines_with_cells(
    rates: tuple[str, str], name: str
) -> None:
    """Those without overfill ADSL; those with hold on each line that may be there."""
    link = Link(down=rates[0], up=rates[1], rtt=("30ms",), bulk=3, calls=1, games=0)
    assert link.may_have_cells
    safe = replace(link, framing="conservative")
    for way in link.ways:
        a_packet = 12_000 / bits_per_second(link.ways[way])
        overfilled, _ = on_the_line(link, name, way, "pppoe-llcsnap")
        assert overfilled > 0.1
        if (name, link.ways[way]) == ("fq-codel", "800kbit"):
            told = re.search(r"a 99th percentile of ([\d.]+) s in the modem", HOWTO.read_text())
            assert told
            assert overfilled == pytest.approx(float(told[1]), rel=0.02)
        _, most = on_the_line(link, name, way, "ethernet")
        for line in ("pppoe-llcsnap", "pppoa-vcmux", "bridged-llcsnap", "pppoe-ptm", "ethernet"):
            delay, bulk = on_the_line(safe, name, way, line)
            assert delay < (0.002 if way == "up" else 0.005) + 5 * a_packet, (way, line)
            assert bulk > 0.75 * most, (way, line)


def test_lines_without_cells_have_one_set_of_commands() -> None:
    none = [
        Link(down="50mbit", up="10mbit"), Link(down="30mbit", up="2mbit"), Link("50mbit"),
        Link(down="8mbit", up="800kbit", framing="docsis"), Link(down="20mbit", up="10mbit"),
    ]  # fmt: skip
    assert not any(link.may_have_cells for link in none)
    assert all(
        link.may_have_cells for link in (Link("1mbit"), Link(up="1mbit"), Link(down="8mbit"))
    )


def test_cake_on_the_way_down_counts_what_it_drops() -> None:
    """Without `ingress` the flows of a slow line, without ECN, filled the provider's queue."""
    link = Link(down="8mbit", rtt=("40ms",), bulk=32, calls=1, games=0, ecn=False,
                framing="pppoe-llcsnap")  # fmt: skip
    for box in ("linux", "openwrt", "bluewater"):
        both = replace(link, up="1mbit")
        down, up = (
            simulated("cake", both, way, box).get("queue.0.params") for way in ("down", "up")
        )
        assert (down, up) == ({"ingress": True}, None)
    shaped = [line for line in commands("cake", both, "linux") if "cake" in line]
    assert [" ingress " in line for line in shaped] == [True, False]
    assert (
        "--aqm cake --param ingress=true --up-aqm cake" in commands("cake", both, "bluewater")[-1]
    )
    with_it, least = on_the_line(link, "cake", "down", "pppoe-llcsnap")
    without, most = on_the_line(link, "cake", "down", "pppoe-llcsnap", {"ingress": False})
    page = (HOWTO.parent / "last-mile.md").read_text()
    told = re.search(
        r"of ([\d.]+) s at the provider without it, and of ([\d.]+) s with it. That costs (\d+) %",
        page,
    )
    assert told
    measured_ = (without, with_it, 100 * (1 - least / most))
    assert measured_ == pytest.approx([float(each) for each in told.groups()], rel=0.03)


def test_incoming_packets_keep_cake_s_tins_on_openwrt() -> None:
    """By default sqm-scripts' layer_cake adds ``besteffort wash`` to the way down."""
    section = uci(commands("cake", Link(down="50mbit", up="10mbit"), "openwrt", "wan"))
    assert (section["squash_dscp"], section["squash_ingress"]) == ("0", "0")


def test_a_modem_that_runs_the_queue_has_no_margin(tmp_path: Path) -> None:
    wish: dict[str, Any] = {"reps": 2, "duration": "1s", "progress": False, "out": tmp_path}
    home = Link(down="5mbit", up="1mbit")
    made = bluewater.advise(home, "docsis", **wish)
    assert [made.link.shaped(way) for way in made.link.ways] == ["5000kbit", "1000kbit"]
    assert fitted(Link(margin=3), "docsis").margin == 3
    assert fitted(home, "linux") == home


@pytest.mark.parametrize(
    ("wish", "below", "ptm"),
    [
        (["docsis", "--rate", "5mbit", "--margin", "0"], False, False),
        (["openwrt", "--rate", "1kbit"], False, False),
        (["docsis", "--down", "5mbit", "--up", "2mbit"], False, False),
        (["openwrt", "--rate", "5mbit", "--margin", "0", "--framing", "pppoe-ptm"], False, True),
        (["openwrt", "--down", "5mbit", "--up", "1kbit"], True, False),
    ],
)
def test_a_rate_below_the_link_s_is_said_where_it_is(
    wish: list[str], below: bool, ptm: bool, tmp_path: Path
) -> None:
    short = ["--bulk", "1", "--duration", "4s", "--reps", "2", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, ["advise", *short, "--box", *wish])
    assert found.exit_code == 0, found.output
    said = " ".join(found.stderr.split())
    assert ("modem" in said) == ("docsis" not in wish)  # it is the modem
    assert ("each direction is simulated alone" in said) == ("--down" in wish)
    assert ("shape below the link's rate" in found.stderr) == below
    assert not below or "4500kbit of 5mbit down)" in found.stderr
    assert ("64/65" in found.stderr) == (ptm and "Advice: cake" not in found.stdout)


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


def test_calls_survive_on_a_slow_link(tmp_path: Path) -> None:
    """With a target below the time that a packet takes FQ-CoDel lost a twentieth of the calls."""
    link = Link("500kbit", bulk=2, calls=1, games=0)
    advice = bluewater.advise(link, "linux", reps=2, duration="30s", progress=False, out=tmp_path)
    (found,) = (each for each in advice.ranked if each.name == "fq-codel")
    assert found.means.loss < 0.002


TYPED = {"fq_codel": "fq-codel", "cake": "cake", "pfifo": "droptail"}


@pytest.mark.parametrize("home", ["ADSL", "LTE", "modem"])
def test_tables_pictures_and_lines_name_one_winner(home: str, tmp_path: Path) -> None:
    """And have one order in both directions."""
    down, up, framing = HOMES[home]
    wish = ["advise", "--down", down, "--up", up, "--framing", framing, "--box", "openwrt"]
    wish += ["--bulk", "2", "--duration", "2s", "--reps", "2", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, wish)
    assert found.exit_code == 0, found.output
    tables = re.findall(r"^ *(droptail|fq-codel|cake)\S* +[\d.]", found.stdout, re.M)
    assert len(tables) == 6
    assert tables[:3] == tables[3:]
    assert f"Advice: {tables[0]}" in found.stdout
    lines, undo = found.stdout.split("\nTo undo it:\n")
    typed = uci([line.strip() for line in lines.splitlines() if line.startswith("  uci")])
    assert undo.startswith("  uci delete sqm.bluewater; uci commit sqm")
    assert "another enabled section for this interface" in found.stderr
    assert TYPED[typed["qdisc"]] == tables[0]
    drawn = {path.stem.rpartition("-")[2]: path for path in tmp_path.glob("advise-*.csv")}
    assert sorted(drawn) == ["down", "up"]
    for path in drawn.values():
        assert path.with_suffix(".png").exists()
        rows = DictReader(path.read_text().splitlines())
        assert [*dict.fromkeys(row["line"] for row in rows)] == tables[:3]


def test_names_in_the_picture_cover_neither_one_another_nor_points() -> None:
    """Twenty candidates in one corner, and one far away."""
    near = {
        f"candidate-{k}": [Measured(49e6 + 1e4 * (k % 5), 1.0, 0.01 + 2e-4 * k, k / 500, -k)] * 2
        for k in range(20)
    }
    ranked = ranked_of({**near, "far": [Measured(20e6, 0.5, 0.2, 0.0, -30)] * 2})
    made = plots.figure(ranked, "a title")
    made.draw_without_rendering()
    axes = made.axes[0]
    names: list[Any] = list(axes.texts)
    assert len(names) == 21
    boxes = [Text.get_window_extent(each) for each in names]
    for one, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:one]), names[one]
        inside = axes.get_window_extent()
        assert inside.x0 <= box.x0, names[one]
        assert box.x1 <= inside.x1, names[one]
    points = axes.transData.transform([each.xy for each in names])
    assert not any(box.contains(*point) for box in boxes for point in points)


def test_ticks_are_numbers() -> None:
    """The default of a logarithmic axis is mathematical markup, which was shown as it stands."""
    for delays in ((0.001, 0.02), (1e-5, 0.7)):
        ranked = ranked_of({f"x{d}": [Measured(20e6, 0.5, d, 0.0, -d)] * 2 for d in delays})
        made = plots.figure(ranked, "a title")
        made.draw_without_rendering()
        ticks = [tick.get_text() for tick in made.axes[0].get_xticklabels(which="both")]
        told = [text for text in ticks if text]
        assert len(told) >= 3, told
        assert all(float(text) > 0 for text in told)
        every = [text.get_text() for text in made.findobj(Text)]
        assert not [text for text in every if "$" in text or "\\" in text]


def test_the_picture_names_the_table_s_winner_and_shows_what_loses_calls() -> None:
    """The last of a table had the best throughput, and was on a line through the best points."""
    runs = {
        "codel": Measured(6.52e5, 0.7, 0.161, 1.0, -200),
        "near": Measured(4.4e5, 1.0, 0.1, 0.009, -5.01),
        "sfq": Measured(4.3e5, 1.0, 0.2, 0.286, -5),
        "pie": Measured(4.5e5, 0.9, 0.05, 0.01, -6),
    }
    ranked = ranked_of({name: [each] * 2 for name, each in runs.items()})
    axes = plots.figure(ranked, "a title").axes[0]
    lines = {str(each.get_label()): each for each in axes.get_lines()}
    (ring,) = (each for label, each in lines.items() if label.startswith("advice"))
    best = runs[ranked[0].name]
    assert ranked[0].name == "sfq"
    assert np.asarray(ring.get_xydata())[0] == pytest.approx([200, best.throughput / 1e6])
    assert not any("front" in label for label in lines)
    names = [each.get_text() for each in axes.texts]
    assert names == ["sfq, loses 28.6 %", "near", "pie, loses 1 %", "codel, loses 100 %"]
    hollow = {
        round(float(points[0][1]), 3): each.get_markerfacecolor() == "white"
        for each in axes.get_lines()
        if len(points := np.asarray(each.get_xydata())) == 1 and each is not ring
    }
    told = {round(each.throughput / 1e6, 3): each.loss >= 0.01 for each in runs.values()}
    assert hollow == told


@pytest.mark.parametrize(
    ("interface", "hint"),
    [
        ("", None), ("eth0; rm -rf /", None), ("-x", None), ("much-too-long-a-name", None),
        ("eth0:1", None), ("eth0.2@eth0", "eth0.2"), ("veth@if5", "veth"),
    ],
)  # fmt: skip
def test_an_interface_has_a_name(interface: str, hint: str | None) -> None:
    with pytest.raises(InputError, match="interface") as raised:
        commands("cake", Link(), "linux", interface)
    assert (hint or "") in (raised.value.hint or "")
    assert bool(raised.value.hint) == bool(hint)
    found = CliRunner().invoke(app, ["advise", "--rate", "10gbit", f"--interface={interface}"])
    assert found.exit_code == 2  # at once, and not behind the runs


def test_more_than_the_link_has_is_said() -> None:
    measured_ = ranked_of({"droptail": [measured(1, 1, 0)] * 2})
    assert any(
        "more than the link" in each for each in reasons(measured_, Link(rate="1mbit", calls=20))
    )
    assert not any("more than the link" in each for each in reasons(measured_, Link(calls=20)))


def test_a_share_below_what_a_call_needs_is_said() -> None:
    """Of 500 kbit/s for eleven flows fair queues lost half of the calls, without a word."""
    measured_ = ranked_of({"droptail": [measured(1, 1, 0)] * 2})
    slow = Link(up="500kbit", bulk=8, calls=2, games=1)
    (said,) = (each for each in reasons(measured_, slow, "up") if "equal share" in each)
    assert "each of 11 flows is 43.2 kb/s" in said
    assert "a call needs 85.6 kb/s and a game needs 72 kb/s" in said
    for enough in (Link(up="500kbit", bulk=1, calls=2, games=1), Link(up="1mbit", bulk=3, calls=3)):
        assert not any("equal share" in each for each in reasons(measured_, enough, "up"))


@pytest.mark.parametrize("framing", ["", "overhead 44 atm", "pppoe-ptm", "docsis", "ethernet"])
@pytest.mark.parametrize("kind", [CALL, GAME])
def test_what_a_call_needs_is_what_its_link_carries(kind: dict[str, Any], framing: str) -> None:
    """The simulated link is busy for as long as the computed rate on the wire says."""
    one: dict[str, Any] = {"calls": 1, "games": 0} if kind is CALL else {"calls": 0, "games": 1}
    made = scenario(Link("1mbit", framing=framing, bulk=1, **one), "60s", "10s")
    made["traffic"] = made["traffic"][1:]
    busy = float(bluewater.run(made).summary["utilisation"])
    assert busy == pytest.approx(needed(kind, framing) / 1e6, rel=0.01)


def test_shares_are_compared_with_needs_on_the_wire() -> None:
    """A game takes 102 kb/s of ATM, more than a tenth of 760 kb/s."""
    measured_ = ranked_of({"droptail": [measured(1, 1, 0)] * 2})
    adsl: dict[str, Any] = {"up": "800kbit", "framing": "overhead 44 atm", "games": 1}
    (said,) = (
        each
        for each in reasons(measured_, Link(bulk=9, calls=0, **adsl), "up")
        if "equal share" in each
    )
    assert "each of 10 flows is 76 kb/s, and a game needs 102 kb/s on the wire" in said
    for calls, told in ((5, False), (6, True)):  # each 127 kb/s, and the game, of 760
        lines = reasons(measured_, Link(bulk=1, calls=calls, **adsl), "up")
        assert any("alone need" in each for each in lines) == told
    (said,) = (
        each
        for each in reasons(measured_, Link("1mbit", margin=50, calls=6))
        if "alone need" in each
    )
    assert "500 kb/s" in said  # of the shaped rate


@pytest.mark.parametrize(
    ("wish", "allowed"),
    [
        ({"down": 50, "up": 10}, "a rate such as 50mbit"), ({"rate": 50}, "a rate such as 50mbit"),
        ({"framing": 3}, "pppoe-ptm"), ({"transport": 1}, "cubic"), ({"buffer": 100}, "1000p"),
        ({"bulk": "8"}, "whole number"), ({"bulk": 2.5}, "whole number"),
        ({"calls": -1}, "0 or more"), ({"games": True}, "whole number"), ({"margin": "5"}, "50 %"),
        ({"ecn": "yes"}, "True or False"),
    ],
)  # fmt: skip
def test_a_field_of_a_wrong_type_is_refused(wish: dict[str, Any], allowed: str) -> None:
    with pytest.raises(InputError) as raised:
        bluewater.advise(**wish)
    key, value = next(iter(wish.items()))
    assert (raised.value.key, raised.value.value) == (key, value)
    assert allowed in str(raised.value.allowed)


@pytest.mark.parametrize(("buffer", "framing"), [("100B", ""), ("1513B", ""), ("1499B", "docsis")])
def test_a_buffer_below_a_full_packet_is_refused(buffer: str, framing: str) -> None:
    """The message was that the run is too short."""
    with pytest.raises(InputError, match="a full packet has no room") as raised:
        bluewater.advise(rate="20mbit", buffer=buffer, framing=framing)
    assert raised.value.key == "buffer"
    least = f"{int(buffer[:-1]) + 1 if buffer != '100B' else 1514}B"
    assert least in str(raised.value.allowed)
    scenario(Link(buffer=least, framing=framing), "9s", "3s")


def test_silly_wishes(tmp_path: Path) -> None:
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"rate": "fast"}, "not a rate"),
        ({"rtt": ("20",)}, "not a duration"),
        ({"bulk": 0}, "needs bulk flows, which fill the link"),
        ({"reps": 1}, "an interval needs two seeds"),
        ({"rtt": ("20s",), "duration": "6s", "reps": 2}, "gets through in this time"),
        ({"box": "toaster"}, "unknown box"),
    ]
    for wish, told in wishes:
        with pytest.raises((InputError, bluewater.ScenarioError), match=told):
            bluewater.advise(Link(), out=tmp_path, progress=False, **wish)


def test_the_command_says_why_and_what_to_type(tmp_path: Path) -> None:
    wish = ["advise", "--up", "5mbit", "--bulk", "3", "--box", "openwrt", "--duration", "6s"]
    file = tmp_path / "ranking.csv"
    wish += ["--reps", "2", "--table", str(file)]
    found = CliRunner().invoke(app, [*wish, "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    for told in ("fq-codel", "a plain queue", "uci set sqm.bluewater", "upload='4750'"):
        assert told in found.output
    rows = [*DictReader(file.read_text().splitlines())]
    assert sorted(row["discipline"] for row in rows) == ["cake", "droptail", "fq-codel"]
    assert f"Advice: {rows[0]['discipline']}" in found.output
    assert all(2 < float(row["throughput (Mb/s)"]) < 4.75 for row in rows)
    assert float(rows[-1]["worth less low"]) <= float(rows[-1]["worth less"])
    (picture,) = tmp_path.glob("advise-*.png")
    assert picture.stat().st_size > 10_000


def test_another_question_in_the_same_folder_has_another_picture(tmp_path: Path) -> None:
    """The second overwrote the first."""
    for rate in ("5mbit", "8mbit"):
        wish = ["advise", "--rate", rate, "--box", "docsis", "--duration", "3s", "--reps", "2"]
        found = CliRunner().invoke(app, [*wish, "--out", str(tmp_path)])
        assert found.exit_code == 0, found.output
    pictures = sorted(tmp_path.glob("advise*.png"))
    assert len(pictures) == 2
    assert str(pictures[0]) in found.output or str(pictures[1]) in found.output


def test_all_are_all_but_what_is_named() -> None:
    """The box `bluewater` has every discipline."""
    there = {entry["name"] for entry in bluewater.catalog()["aqms"]}
    assert set(candidates("bluewater")) == there - {*LEFT_OUT}
    assert {*LEFT_OUT} <= there
    for box in BOXES:
        assert set(candidates(box)) <= set(candidates("bluewater"))
    shown = " ".join(CliRunner().invoke(app, ["advise", "--help"]).stdout.split())
    assert all(name in shown for name in LEFT_OUT)

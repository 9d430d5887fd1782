from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text
from typer.testing import CliRunner

import bluewater
from bluewater.cli import app
from bluewater.errors import InputError
from bluewater.plots import advise as plots
from bluewater.study.advise import Link, Measured, Ranked, rank, reasons, scenario
from bluewater.study.boxes import BOXES, LEFT_OUT, candidates, commands, settings

LINKS = {
    "home": Link("50mbit", ("20ms", "80ms"), 8),
    "slow": Link("2mbit", ("40ms",), 3, buffer="100p"),
    "office": Link("100mbit", ("10ms", "30ms", "100ms"), 40, calls=5, games=0),
    "alone": Link("20mbit", ("30ms",), 1, calls=1),
    "bulk only": Link("20mbit", ("50ms",), 20, calls=0, games=0),
    "hostile": Link("10mbit", ("40ms",), 10, hostile=("8mbit",)),
    "two hostile": Link("20mbit", ("20ms", "60ms"), 5, hostile=("5mbit", "20mbit")),
    "Reno": Link("10mbit", ("100ms",), 10, transport="sack"),
    "no ECN": Link("30mbit", ("25ms",), 12, ecn=False),
    "crowd": Link("20mbit", ("40ms",), 100, calls=3),
}


TRIED = [
    *((name, "linux") for name in LINKS),
    ("home", "openwrt"), ("slow", "openwrt"), ("hostile", "docsis"), ("alone", "docsis"),
    ("Prague", "bluewater"), ("DCTCP", "bluewater"), ("BBR", "linux-before-6.17"),
    ("BBR 1", "openwrt"),
]  # fmt: skip
LINKS |= {
    "Prague": Link("30mbit", ("20ms", "40ms"), 4, transport="prague"),
    "DCTCP": Link("30mbit", ("20ms",), 4, transport="dctcp", games=0),
    "BBR": Link("20mbit", ("40ms",), 3, transport="bbr"),
    "BBR 1": Link("20mbit", ("40ms",), 3, transport="bbr1"),
}


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
    found = rank({"wild": wild, "near": near, "fair": fair})
    assert [each.name for each in found] == ["fair", "near", "wild"]
    assert found[1].behind.mean == pytest.approx(0.1)


def test_as_good_is_what_the_seeds_show_to_be_within_the_margin() -> None:
    """That they show no difference is no sign of it: of two seeds anything is within noise."""
    behind = {"same": (0.01, 0.02), "noise": (1.0, 1.8), "worse": (0.5, 0.51), "tiny": (0.05, 0.05)}
    runs = {name: [measured(1e6, 0.01, -each) for each in by] for name, by in behind.items()}
    found = {each.name: each for each in rank({"first": [measured(1e6, 0.01, 0.0)] * 2, **runs})}
    assert found["noise"].behind.low < 0
    assert {name for name, each in found.items() if each.as_good} == {"first", "same", "tiny"}
    assert {name for name, each in found.items() if each.undecided} == {"noise"}
    more = [measured(1e6, 0.01, -each) for each in behind["noise"] * 4]
    told = rank({"first": [measured(1e6, 0.01, 0.0)] * 8, "noise": more})[1]
    assert not told.as_good
    assert not told.undecided


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
                    rank({"red": [measured(1, 1, 0)] * 2})[0].behind,
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
    link = Link(buffer="250kB")
    for name in candidates("linux"):
        assert settings(name, "bluewater") == {"queue.0.aqm": name}
    assert settings("red", "linux")["queue.0.params"] == {"preset": "linux"}
    red, sfq, fq_codel = (commands(name, link)[3] for name in ("red", "sfq", "fq-codel"))
    assert red.endswith(
        "red limit 249810 min 24981 max 74943 avpkt 1000 burst 34 probability 0.1 "
        "bandwidth 50000kbit ecn"
    )
    assert sfq.endswith("sfq limit 165 perturb 600")
    assert fq_codel.endswith("fq_codel limit 165")
    tins = next(
        each["default"]
        for entry in bluewater.catalog()["aqms"]
        if entry["name"] == "cake"
        for each in entry["parameters"]
        if each["name"] == "diffserv"
    )
    assert settings("cake", "linux") == settings("cake", "openwrt") == {"queue.0.aqm": "cake"}
    memory = 165 * 2 * 1514
    assert f"cake bandwidth 50000kbit {tins} memlimit {memory}" in commands("cake", link)[1]
    assert tins == "diffserv3"  # which is sqm-scripts' layer_cake; piece_of_cake is besteffort
    uci = " ".join(commands("cake", link, "openwrt"))
    assert "script='layer_cake.qos'" in uci
    assert f"eqdisc_opts='memlimit {memory}'" in uci
    for name, qdisc in (("fq-codel", "fq_codel"), ("droptail", "pfifo")):
        uci = " ".join(commands(name, link, "openwrt"))
        assert f"qdisc='{qdisc}'" in uci
        assert "elimit='165'" in uci
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
        assert said == f"# tc's {name} wants a buffer of {least} packets or more"
    for name in ("red", "choke"):  # 32 bits of bytes a second
        fast = commands(name, Link(rate="40gbit"))
        assert "htb rate 40000000kbit" in fast[2]
        assert "bandwidth 34359738kbit" in fast[3]


def test_buffers_and_rates_that_tc_does_not_take_are_not_typed() -> None:
    """Between RED's thresholds there is room for less than 2^28 bytes, in CAKE's limit for 2^32."""
    for name, most in (("red", 886_510), ("cake", 1_418_417)):
        assert commands(name, Link(buffer=f"{most}p"))[-1].startswith("tc qdisc add")
        (said,) = commands(name, Link(buffer=f"{most + 1}p"))
        assert said == f"# tc's {name} wants a buffer of {most} packets at the most"
    assert commands("cake", Link(buffer="5000MB"), "openwrt")[0].startswith("#")
    assert "rate 1400bit" in commands("pie", Link(rate="1400bit"))[2]
    assert "upload='1'" in " ".join(commands("cake", Link(rate="400bit"), "openwrt"))


def advised(link: Link, tmp_path: Path, duration: str = "3s") -> tuple[Ranked, ...]:
    return bluewater.advise(
        link, "openwrt", reps=2, duration=duration, progress=False, out=tmp_path
    ).ranked


def test_the_link_is_the_narrowest_at_any_rate(tmp_path: Path) -> None:
    """At 20 Gb/s the links before it had 10, and no queue differed from another."""
    link = Link("20gbit", ("1ms",), 8, calls=0, games=0, buffer="3000p")
    ranked = advised(link, tmp_path, "500ms")
    assert max(each.means.throughput for each in ranked) > 18e9
    assert max(each.means.delay for each in ranked) > 1e-4


def test_loss_is_of_what_always_has_data_where_nothing_is_interactive(tmp_path: Path) -> None:
    """It was 0 % for all, also where TCP lost a tenth."""
    link = Link(
        "10mbit", ("20ms",), 10, calls=0, games=0, hostile=("9mbit",), ecn=False, buffer="60p"
    )
    ranked = {each.name: each for each in advised(link, tmp_path)}
    lost = ranked["droptail"].means.loss
    assert lost > 0.01
    assert "of what always has data" in " ".join(reasons(list(ranked.values()), link))
    assert any(mine < lost for mine in (each.means.loss for each in ranked.values()))


def test_loss_is_a_share_also_on_a_link_of_a_packet_in_seconds(tmp_path: Path) -> None:
    """What is dropped in the window may have come before it: it was 101 %."""
    for each in advised(Link("1kbit", buffer="10p"), tmp_path, "4s"):
        assert 0 <= each.mean("loss").low <= each.means.loss <= each.mean("loss").high <= 1


def test_a_link_that_nothing_fills_is_told(tmp_path: Path) -> None:
    link = Link("50mbit", ("300ms",), 1, calls=0, games=0)
    assert "little to choose by" in " ".join(reasons(advised(link, tmp_path), link))
    busy = Link("5mbit", ("20ms",), 4)
    assert "little to choose by" not in " ".join(reasons(advised(busy, tmp_path), busy))


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
    assert settings("dualpi2", "linux")["queue.0.params"] == {"preset": "linux", "th_len": 2}


def test_dualpi2_as_advised_does_not_starve_l4s_flows_on_a_slow_link() -> None:
    """By itself the kernel's step marks single packets, which take longer than it here."""
    link = Link("10mbit", ("80ms",), 1, transport="prague", calls=0, games=0)
    made = scenario(link, "60s", "20s")
    cubic = {**made["traffic"][0], "name": "cubic", "transport": "cubic", "preset": "linux"}
    made["traffic"] = [*made["traffic"], cubic]

    def prague(params: dict[str, Any]) -> float:
        queue = {**made["queue"][0], "aqm": "dualpi2", "params": params}
        flows = bluewater.run({**made, "queue": [queue]}).flows
        rates = dict(zip(flows["group"], flows["throughput_bps"], strict=True))
        return float(rates["bulk"] / rates["cubic"])

    assert prague({"preset": "linux"}) < 0.2
    assert 0.8 < prague(settings("dualpi2", "linux")["queue.0.params"]) < 3  # nor CUBIC


def test_openwrt_leaves_the_way_down_alone() -> None:
    uci = " ".join(commands("cake", Link(), "openwrt", "pppoe-wan"))
    assert "sqm.bluewater.interface='pppoe-wan'" in uci
    assert "sqm.bluewater.download='0'" in uci
    assert "sqm.pppoe" not in uci
    assert "--lan eth0 --wan eth1" in commands("blue", Link(), "bluewater", "eth1")[-1]


def test_names_in_the_picture_cover_neither_one_another_nor_points() -> None:
    """Twenty candidates in one corner, and one far away."""
    near = {
        f"candidate-{k}": [Measured(49e6 + 1e4 * (k % 5), 1.0, 0.01 + 2e-4 * k, 0.0, -k)] * 2
        for k in range(20)
    }
    ranked = rank({**near, "far": [Measured(20e6, 0.5, 0.2, 0.0, -30)] * 2})
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
        ranked = rank({f"x{d}": [Measured(20e6, 0.5, d, 0.0, -d)] * 2 for d in delays})
        made = plots.figure(ranked, "a title")
        made.draw_without_rendering()
        ticks = [tick.get_text() for tick in made.axes[0].get_xticklabels(which="both")]
        told = [text for text in ticks if text]
        assert len(told) >= 3, told
        assert all(float(text) > 0 for text in told)
        every = [text.get_text() for text in made.findobj(Text)]
        assert not [text for text in every if "$" in text or "\\" in text]


def test_the_front_is_what_nobody_surpasses() -> None:
    points = [(1.0, 40.0), (2.0, 50.0), (3.0, 45.0), (4.0, 50.1), (0.5, 30.0), (6.0, 60.0)]
    assert plots.front(points) == [(0.5, 30.0), (1.0, 40.0), (2.0, 50.0), (6.0, 60.0)]


@pytest.mark.parametrize("interface", ["", "eth0; rm -rf /", "-x", "much-too-long-a-name"])
def test_an_interface_has_a_name(interface: str) -> None:
    with pytest.raises(InputError, match="interface"):
        commands("cake", Link(), "linux", interface)


def test_more_than_the_link_has_is_said() -> None:
    measured_ = rank({"droptail": [measured(1, 1, 0)] * 2})
    assert any(
        "more than the link" in each for each in reasons(measured_, Link(rate="1mbit", calls=20))
    )
    assert not any("more than the link" in each for each in reasons(measured_, Link(calls=20)))


def test_silly_wishes(tmp_path: Path) -> None:
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"rate": "fast"}, "not a rate"),
        ({"rtt": ("20",)}, "not a duration"),
        ({"bulk": 0}, "nothing fills the link"),
        ({"reps": 1}, "no interval"),
        ({"rtt": ("20s",), "duration": "6s", "reps": 2}, "nothing comes through"),
        ({"box": "toaster"}, "unknown box"),
    ]
    for wish, told in wishes:
        with pytest.raises((InputError, bluewater.ScenarioError), match=told):
            bluewater.advise(Link(), out=tmp_path, progress=False, **wish)


def test_the_command_says_why_and_what_to_type(tmp_path: Path) -> None:
    wish = ["advise", "--rate", "5mbit", "--bulk", "3", "--box", "openwrt", "--duration", "6s"]
    found = CliRunner().invoke(app, [*wish, "--reps", "2", "--out", str(tmp_path)])
    assert found.exit_code == 0, found.output
    for told in ("fq-codel", "a plain queue", "uci set sqm.bluewater", "upload='5000'"):
        assert told in found.output
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
    """The box `bluewater` had twenty of thirty-five, and said that these were all."""
    there = {entry["name"] for entry in bluewater.catalog()["aqms"]}
    assert set(candidates("bluewater")) == there - {*LEFT_OUT}
    assert {*LEFT_OUT} <= there
    for box in BOXES:
        assert set(candidates(box)) <= set(candidates("bluewater"))
    shown = " ".join(CliRunner().invoke(app, ["advise", "--help"]).stdout.split())
    assert all(name in shown for name in LEFT_OUT)

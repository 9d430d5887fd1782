from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bluewater
from bluewater.cli import app
from bluewater.errors import InputError
from bluewater.study.advise import (
    BOXES,
    Link,
    Measured,
    Ranked,
    candidates,
    commands,
    rank,
    reasons,
    settings,
)

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


def measured(throughput: float, delay: float, worth: float) -> Measured:
    return Measured(throughput, 1.0, delay, 0.0, worth)


@pytest.mark.parametrize("name", LINKS)
def test_nothing_dominates_the_advice_on_other_seeds(name: str, tmp_path: Path) -> None:
    def ranked(first_seed: int) -> tuple[Ranked, ...]:
        return bluewater.advise(
            LINKS[name], reps=3, first_seed=first_seed, duration="12s", out=tmp_path, progress=False
        ).ranked

    advised, again = ranked(1)[0].name, ranked(101)
    found = {each.name: each for each in again}
    assert set(found) == set(candidates("linux"))
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
        worse = not other.means.dominates(chosen.means)
        assert worse or not any(better), f"{other.name} is better than {advised} in all"
    assert chosen.as_good or chosen.behind.mean < 0.3, (
        f"{advised} is far behind {again[0].name} elsewhere"
    )


def test_the_order_is_by_worth_and_pairs_seeds() -> None:
    fair = [measured(1e6, 0.01, 1.0), measured(1e6, 0.01, 2.0)]
    near = [measured(1e6, 0.01, 0.9), measured(1e6, 0.01, 1.9)]
    wild = [measured(1e6, 0.01, 3.0), measured(1e6, 0.01, -1.0)]
    found = rank({"wild": wild, "near": near, "fair": fair})
    assert [each.name for each in found] == ["fair", "near", "wild"]
    assert [each.as_good for each in found] == [True, False, True]
    assert found[1].behind.mean == pytest.approx(0.1)


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


@pytest.mark.parametrize("box", BOXES)
def test_each_candidate_has_something_to_type(box: str) -> None:
    there = candidates(box)
    assert "droptail" in there
    for name in there:
        lines = commands(name, LINKS["home"], "wan0")
        assert any(name in line for line in lines if line.startswith("bluewater gateway"))
        if box == "linux":
            assert lines[0] == "tc qdisc del dev wan0 root 2>/dev/null"  # so that they work again
            assert any(line.startswith("tc qdisc add") and "wan0" in line for line in lines)


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


def test_openwrt_leaves_the_way_down_alone() -> None:
    lines = commands("cake", Link(), "pppoe-wan")
    uci = " ".join(line for line in lines if line.startswith("uci"))
    assert "sqm.bluewater.interface='pppoe-wan'" in uci
    assert "sqm.bluewater.download='0'" in uci
    assert "sqm.pppoe" not in uci
    assert "--lan eth0 --wan eth1" in commands("blue", Link(), "eth1")[-1]


@pytest.mark.parametrize("interface", ["", "eth0; rm -rf /", "-x", "much-too-long-a-name"])
def test_an_interface_has_a_name(interface: str) -> None:
    with pytest.raises(InputError, match="interface"):
        commands("cake", Link(), interface)


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
    for told in ("fq-codel", "a plain queue", "uci set sqm.bluewater", "5000kbit"):
        assert told in found.output
    assert (tmp_path / "advise.png").stat().st_size > 10_000

from __future__ import annotations

import json
import re
from csv import DictReader
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from test_boxes import HOMES, uci
from typer.testing import Result

import bluewater
from bluewater.errors import InputError
from bluewater.lab.advice import Advice
from bluewater.study.advice.advise import (
    Link,
    Measured,
    Ranked,
    rank,
    reasons,
    scenario,
    unmet,
)
from bluewater.study.advice.boxes import candidates, fitted

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
    "Prague": Link("30mbit", rtt=("20ms", "40ms"), bulk=4, transport="prague"),
    "DCTCP": Link("30mbit", rtt=("20ms",), bulk=4, transport="dctcp", games=0),
    "BBR": Link("20mbit", rtt=("40ms",), bulk=3, transport="bbr"),
    "BBR 1": Link("20mbit", rtt=("40ms",), bulk=3, transport="bbr1"),
}
TRIED = [
    *((name, "linux") for name, link in LINKS.items() if link.transport in {"cubic", "sack"}),
    ("home", "openwrt"), ("slow", "openwrt"), ("hostile", "docsis"), ("alone", "docsis"),
    ("Prague", "bluewater"), ("DCTCP", "bluewater"), ("BBR", "linux-before-6.17"),
    ("BBR 1", "openwrt"),
]  # fmt: skip


def advised(
    link: Link, tmp_path: Path, duration: str = "3s", box: str = "openwrt", **more: Any
) -> Advice:
    wish: dict[str, Any] = {
        "reps": 2,
        "duration": duration,
        "progress": False,
        "out": tmp_path,
    } | more
    return bluewater.advise(link, box, **wish)


def ask(cli: Cli, *wish: str) -> Result:
    found = cli("advise", *wish, "--reps", "2")
    assert found.exit_code == 0, found.output
    return found


def ranked_of(measured: dict[str, list[Measured]]) -> list[Ranked]:
    """The candidates of a link with one direction."""
    return rank(measured)[0]


def measured(throughput: float, delay: float, worth: float) -> Measured:
    return Measured(throughput, 1.0, delay, 0.0, worth)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "box"), TRIED)
def test_nothing_dominates_the_advice_on_other_seeds(name: str, box: str, tmp_path: Path) -> None:
    first, again = (
        advised(LINKS[name], tmp_path, "9s", box, reps=3, first_seed=seed).ranked
        for seed in (1, 101)
    )
    found = {each.name: each for each in again}
    assert set(found) == set(candidates(box))
    chosen = found[first[0].name]
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
        assert worse or not any(better), f"{other.name} is better than {chosen.name} in all"
    assert chosen.behind.low <= 0 or chosen.behind.mean < 0.3, (
        f"{chosen.name} is far behind {again[0].name} elsewhere"
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
    ranked = ranked_of({"first": [measured(1e6, 0.01, 0.0)] * 2, **runs})
    found = {each.name: each for each in ranked}
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


@pytest.mark.slow
def test_what_calls_lack_is_on_the_first_screen(cli: Cli) -> None:
    wish = ["--down", "8mbit", "--up", "800kbit", "--box", "openwrt", "--duration", "4s"]
    found = ask(cli, *wish)
    lines = [line for line in found.stdout.splitlines() if line]
    advice = next(place for place, line in enumerate(lines) if line.startswith("Advice:"))
    assert lines[advice + 1].startswith("But calls and games need")
    heads = ["What to type on a line without ATM cells:",
             "What to type on ADSL, or if you do not know the line:"]  # fmt: skip
    assert [line for line in lines if line.startswith("What to type")] == heads
    assert "ADSL and some SHDSL lines carry ATM cells" in found.stderr
    told = json.loads(ask(cli, *wish, "--json").stdout)
    assert told["unmet"].startswith("calls and games need")
    assert "conservative" in " ".join(told["commands_if_atm"])
    assert "conservative" not in " ".join(told["commands"])


def test_what_dominates_is_worth_more() -> None:
    assert measured(2.0, 1.0, 0).dominates(measured(1.0, 1.0, 0))
    assert not measured(2.0, 2.0, 0).dominates(measured(1.0, 1.0, 0))
    assert not measured(1.0, 1.0, 0).dominates(measured(1.0, 1.0, 0))
    alone = ranked_of({"red": [measured(1, 1, 0)] * 2})
    assert "a plain queue" not in " ".join(reasons(alone, LINKS["home"]))


def test_the_link_sends_no_more_than_it_can(tmp_path: Path) -> None:
    """At the receivers it was 51.8 Mb/s of 50: what was queued as the warm-up ended came on top."""
    link = Link("50mbit", bulk=4, transport="prague", ecn=True)
    for each in advised(link, tmp_path, "6s", "bluewater").ranked:
        for run in each.runs:
            assert run.throughput <= 50e6
            assert run.jain <= 1
        for what, least, most in [
            ("throughput", 0, 50e6), ("jain", 0, 1), ("delay", 0, 60), ("loss", 0, 1),
        ]:  # fmt: skip
            found = each.mean(what)
            assert least <= found.low <= found.mean <= found.high <= most


def test_a_discipline_that_the_box_cannot_have_is_no_candidate(cli: Cli, tmp_path: Path) -> None:
    """The first of the table was one for which there was nothing to type."""
    link = Link("5mbit", rtt=("10ms",), bulk=1, buffer="20000p")
    there = {each.name for each in advised(link, tmp_path, "300ms", "linux").ranked}
    assert {*candidates("linux")} - there == {"sfq"}
    small = ["--rate", "5mbit", "--rtt", "10ms", "--bulk", "1", "--buffer", "20p"]
    found = ask(cli, *small, "--duration", "300ms")
    assert "choke" not in found.stdout
    told = "choke is no candidate: tc's choke needs a buffer of 46"
    assert told in " ".join(found.stderr.split())


def test_the_link_is_the_narrowest_at_any_rate(tmp_path: Path) -> None:
    """At 20 Gb/s the links before it had 10, and no queue differed from another."""
    link = Link("20gbit", margin=0, rtt=("1ms",), bulk=8, calls=0, games=0, buffer="3000p")
    ranked = advised(link, tmp_path, "500ms").ranked
    assert max(each.means.throughput for each in ranked) > 18e9
    assert max(each.means.delay for each in ranked) > 1e-4


def test_loss_is_of_what_always_has_data_where_nothing_is_interactive(tmp_path: Path) -> None:
    """It was 0 % for all, also where TCP lost a tenth."""
    link = Link("10mbit", rtt=("20ms",), bulk=10, calls=0, games=0, hostile=("9mbit",), ecn=False,
                buffer="60p")  # fmt: skip
    ranked = advised(link, tmp_path).ranked
    losses = {each.name: each.means.loss for each in ranked}
    assert losses["droptail"] > 0.01
    assert "bulk flows lose" in " ".join(reasons(ranked, link))
    assert min(losses.values()) < losses["droptail"]


def test_loss_is_a_share_also_on_a_link_of_a_packet_in_seconds(tmp_path: Path) -> None:
    """What is dropped in the window may have come before it: it was 101 %."""
    for each in advised(Link("1kbit", buffer="10p"), tmp_path, "4s").ranked:
        assert 0 <= each.mean("loss").low <= each.means.loss <= each.mean("loss").high <= 1


def test_a_link_that_nothing_fills_is_told(tmp_path: Path) -> None:
    idle = Link("50mbit", rtt=("300ms",), bulk=1, calls=0, games=0)
    busy = Link("5mbit", rtt=("20ms",), bulk=4)
    for link in (idle, busy):
        told = " ".join(reasons(advised(link, tmp_path).ranked, link))
        assert ("candidates differ little" in told) == (link is idle)


def test_a_single_text_is_one() -> None:
    one: Any = {"rtt": "20ms", "hostile": "5mbit"}
    assert Link(**one) == Link(rtt=("20ms",), hostile=("5mbit",))
    for wrong in ({"rtt": 20}, {"hostile": [5]}, {"rtt": ()}):
        any_: Any = wrong
        with pytest.raises(InputError) as raised:
            Link(**any_)
        assert raised.value.key == next(iter(wrong))


def test_a_long_work_is_announced_at_once(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise InputError("here the runs would begin")

    monkeypatch.setattr(bluewater.lab, "advise", refuse)
    for wish, told in ((["--rate", "10gbit"], True), (["--down", "5mbit", "--up", "1mbit"], False)):
        found = cli("advise", *wish)
        assert "the runs would begin" in found.stderr
        assert ("million packets" in found.stderr) == told
        assert ("--duration 3s" in found.stderr) == told


def test_a_modem_that_runs_the_queue_has_no_margin(tmp_path: Path) -> None:
    home = Link(down="5mbit", up="1mbit")
    made = advised(home, tmp_path, "1s", "docsis")
    assert [made.link.shaped(way) for way in made.link.ways] == ["5000kbit", "1000kbit"]
    assert fitted(Link(margin=3), "docsis").margin == 3
    assert fitted(home, "linux") == home


@pytest.mark.slow
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
    wish: list[str], below: bool, ptm: bool, cli: Cli
) -> None:
    found = ask(cli, "--bulk", "1", "--duration", "4s", "--box", *wish)
    said = " ".join(found.stderr.split())
    assert ("modem" in said) == ("docsis" not in wish)  # it is the modem
    assert ("each direction is simulated alone" in said) == ("--down" in wish)
    assert ("shape below the link's rate" in found.stderr) == below
    assert not below or "4500kbit of 5mbit down)" in found.stderr
    assert ("64/65" in found.stderr) == (ptm and "Advice: cake" not in found.stdout)


TYPED = {"fq_codel": "fq-codel", "cake": "cake", "pfifo": "droptail"}


@pytest.mark.slow
@pytest.mark.parametrize("home", ["ADSL", "LTE", "modem"])
def test_tables_pictures_and_lines_name_one_winner(home: str, cli: Cli) -> None:
    """And have one order in both directions."""
    down, up, framing = HOMES[home]
    wish = ["--down", down, "--up", up, "--framing", framing, "--box", "openwrt"]
    found = ask(cli, *wish, "--bulk", "2", "--duration", "2s")
    tables = re.findall(r"^ *(droptail|fq-codel|cake)\S* +[\d.]", found.stdout, re.M)
    assert len(tables) == 6
    assert tables[:3] == tables[3:]
    assert f"Advice: {tables[0]}" in found.stdout
    lines, undo = found.stdout.split("\nTo undo it:\n")
    typed = uci([line.strip() for line in lines.splitlines() if line.startswith("  uci")])
    assert undo.startswith("  uci delete sqm.bluewater; uci commit sqm")
    assert "another enabled section for this interface" in found.stderr
    assert TYPED[typed["qdisc"]] == tables[0]
    drawn = {path.stem.rpartition("-")[2]: path for path in cli.out.glob("advise-*.csv")}
    assert sorted(drawn) == ["down", "up"]
    for path in drawn.values():
        assert path.with_suffix(".png").exists()
        rows = DictReader(path.read_text().splitlines())
        assert [*dict.fromkeys(row["line"] for row in rows)] == tables[:3]


# What the users of a link need does not depend on what the candidates reached.
ONE = ranked_of({"droptail": [measured(1, 1, 0)] * 2})


def told(link: Link, what: str, way: str = "") -> list[str]:
    """The reasons with these words."""
    return [each for each in reasons(ONE, link, way) if what in each]


def test_more_than_the_link_has_is_said() -> None:
    assert told(Link(rate="1mbit", calls=20), "more than the link")
    assert not told(Link(calls=20), "more than the link")


def test_a_share_below_what_a_call_needs_is_said() -> None:
    """Of 500 kbit/s for eleven flows fair queues lost half of the calls, without a word."""
    (said,) = told(Link(up="500kbit", bulk=8, calls=2, games=1), "equal share", "up")
    assert "each of 11 flows is 43.2 kb/s" in said
    assert "a call needs 85.6 kb/s and a game needs 72 kb/s" in said
    for enough in (Link(up="500kbit", bulk=1, calls=2, games=1), Link(up="1mbit", bulk=3, calls=3)):
        assert not told(enough, "equal share", "up")


def test_shares_are_compared_with_needs_on_the_wire() -> None:
    """A game takes 102 kb/s of ATM, more than a tenth of 760 kb/s."""
    adsl: dict[str, Any] = {"up": "800kbit", "framing": "overhead 44 atm", "games": 1}
    (said,) = told(Link(bulk=9, calls=0, **adsl), "equal share", "up")
    assert "each of 10 flows is 76 kb/s, and a game needs 102 kb/s on the wire" in said
    for calls, more in ((5, False), (6, True)):  # each 127 kb/s, and the game, of 760
        assert bool(told(Link(bulk=1, calls=calls, **adsl), "alone need", "up")) == more
    (said,) = told(Link("1mbit", margin=50, calls=6), "alone need")
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


def test_the_command_says_why_and_what_to_type(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "ranking.csv"
    wish = ["--up", "5mbit", "--bulk", "3", "--box", "openwrt", "--duration", "6s"]
    found = ask(cli, *wish, "--table", str(file))
    for told in ("fq-codel", "a plain queue", "uci set sqm.bluewater", "upload='4750'"):
        assert told in found.output
    rows = [*DictReader(file.read_text().splitlines())]
    assert sorted(row["discipline"] for row in rows) == ["cake", "droptail", "fq-codel"]
    assert f"Advice: {rows[0]['discipline']}" in found.output
    assert all(2 < float(row["throughput (Mb/s)"]) < 4.75 for row in rows)
    assert float(rows[-1]["worth less low"]) <= float(rows[-1]["worth less"])
    (picture,) = cli.out.glob("advise-*.png")
    assert picture.stat().st_size > 10_000


@pytest.mark.slow
def test_another_question_in_the_same_folder_has_another_picture(cli: Cli) -> None:
    """The second overwrote the first."""
    for rate in ("5mbit", "8mbit"):
        found = ask(cli, "--rate", rate, "--box", "docsis", "--duration", "3s")
    pictures = sorted(cli.out.glob("advise*.png"))
    assert len(pictures) == 2
    assert str(pictures[0]) in found.output or str(pictures[1]) in found.output

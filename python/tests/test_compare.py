"""What `compare` takes: other traffic, presets of TCP, and what its help says of them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import bluewater
from bluewater.cli import app
from bluewater.errors import InputError
from bluewater.study.comparison.compare import AGAINST, Setup, scenario
from bluewater.study.scenarios.tcp import PRESETS, TCPS
from bluewater.text import number

SMALL: Any = {"rate": "5mbit", "rtt": "40ms", "flows": 3, "duration": "4s", "warmup": "1s"}


@pytest.mark.parametrize("kind", AGAINST)
def test_all_other_traffic_gets_something_through(kind: str, tmp_path: Path) -> None:
    made = bluewater.compare(["red"], against=(kind,), **SMALL, out=tmp_path, progress=False)
    through = made.table("flows").group_by("group").agg(pl.sum("throughput_bps"))
    assert dict(through.iter_rows())[kind] > 10_000


def owners() -> dict[str, dict[str, Any]]:
    """Whose keys each transport takes, as the schema has them."""
    kinds = json.loads(bluewater.schema())["$defs"]
    found: dict[str, dict[str, Any]] = {}
    for each in kinds["TrafficSpec"]["allOf"]:
        name = each["then"]["$ref"].rpartition("/")[2]
        words = each["if"]["properties"].get("transport", {}).get("enum", [])
        found |= {word: {"name": name, "required": [], **kinds[name]} for word in words}
    return found


def test_every_transport_is_offered_unless_it_needs_more_than_a_number() -> None:
    """A transport without a required key needs only a number of flows; `cbr` needs its rate."""
    free = {name for name, owner in owners().items() if not owner["required"]}
    assert {*AGAINST} == {*free, "cbr", "web", "call", "game"}


def test_what_is_told_of_transports() -> None:
    told = {entry["name"]: entry for entry in bluewater.catalog()["transports"]}
    assert {name: entry["tcp"] for name, entry in told.items()} == {
        name: owner["name"] == "tcp" for name, owner in owners().items()
    }
    assert [told[name]["answers"] for name in ("sack", "scream", "cbr")] == [True, True, False]
    assert told["cbr"]["summary"].startswith("Datagrams at a constant rate")
    assert told["window"]["summary"].startswith("Datagrams with a constant number")


def test_all_tcp_is_known_and_nothing_else() -> None:
    """By the keys that the schema allows a transport."""
    for entry in bluewater.catalog()["transports"]:
        group = {"transport": entry["name"], "initial_window": 3, "ecn": True}
        wish = {"duration": "1s", "network": {"preset": "dumbbell"}, "traffic": [group],
                "queue": [{"aqm": "red", "buffer": "9p"}]}  # fmt: skip
        try:
            bluewater.Scenario(wish)
        except bluewater.ScenarioError:
            assert entry["name"] not in TCPS
        else:
            assert entry["name"] in TCPS


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", "advise"])
def test_the_help_lists_each_tcp_and_each_is_taken(command: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).output
    told = " ".join(shown.replace("│", " ").split())
    assert ", ".join(TCPS) in told
    for transport in TCPS:
        if command == "compare":
            made = bluewater.compare(
                ["red"], transport=transport, **SMALL, out=tmp_path, progress=False
            )
            assert made.runs["throughput_bps"][0] > 10_000
        else:
            advice = bluewater.advise(
                transport=transport, box="docsis", rate="5mbit", bulk=2, duration="4s", reps=2,
                out=tmp_path, progress=False,
            )  # fmt: skip
            assert len(advice.ranked) == 2
    with pytest.raises(InputError, match="unknown TCP"):
        if command == "compare":
            bluewater.compare(["red"], transport="cubik", out=tmp_path, progress=False)
        else:
            bluewater.advise(transport="cubik", out=tmp_path, progress=False)


@pytest.mark.parametrize("transport", ["quinn", "quinn:newreno", "noq:cubic"])
def test_quic_is_compared_with_the_controller_that_is_named(transport: str, tmp_path: Path) -> None:
    made = bluewater.compare(["codel"], transport=transport, **SMALL, out=tmp_path, progress=False)
    assert made.runs["throughput_bps"][0] > 4e6
    assert made.table("flows")["transport"].unique().to_list() == [transport.partition(":")[0]]
    assert f" {transport} flows" in Setup(transport=transport).title


@pytest.mark.parametrize(
    ("wish", "key", "hint"),
    [
        ({"transport": "quinn:bbr"}, "--transport", "pacing rate"),
        ({"transport": "noq:bbr3"}, "--transport", "no run could be repeated"),
        ({"transport": "quinn", "preset": "linux"}, "--preset", "leave it out"),
    ],
)
def test_what_a_quic_stack_cannot_be_says_why(
    wish: Any, key: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        bluewater.compare(["codel"], **wish, out=tmp_path, progress=False)
    assert refused.value.key == key
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_for_all_that_can_have_it(preset: str) -> None:
    made = scenario(Setup(transport="cubic", preset=preset, against=("reno:2", "sack", "web:3")))
    cubic, reno, sack, web = made["traffic"]
    assert [each.get("preset") for each in (cubic, reno, sack, web)] == [
        preset,
        None,
        preset,
        preset,
    ]
    assert {each["packet"] for each in made["traffic"]} == {"1500B"}
    assert "packet" not in json.dumps(scenario(Setup(against=("cubic:3",)))["traffic"])


def test_compare_says_which_settings_it_shows(tmp_path: Path) -> None:
    wish = [
        "compare",
        "red",
        "droptail",
        "--rate",
        "5mbit",
        "--flows",
        "3",
        "--duration",
        "3s",
        "--warmup",
        "1s",
        "--transport",
        "cubic",
        "--preset",
        "modern",
        "--out",
        str(tmp_path),
    ]
    found = CliRunner().invoke(app, wish)
    assert found.exit_code == 0, found.output
    assert "these ran with their defaults; they also have presets: red (feng, linux)" in " ".join(
        found.stderr.split()
    )
    chosen = CliRunner().invoke(app, [*wish[:2], *wish[3:], "--set", "queue.0.params.preset=feng"])
    assert chosen.exit_code == 0, chosen.output
    assert "preset that there is" not in chosen.output


@pytest.mark.slow
def test_delays_of_all_kinds_are_shown_where_they_are_asked_for(tmp_path: Path) -> None:
    base = ["compare", "droptail", "codel", "--rate", "5mbit", "--rtt", "40ms", "--flows", "3",
            "--duration", "4s", "--warmup", "1s", "--out", str(tmp_path)]  # fmt: skip
    plain = CliRunner().invoke(app, base)
    assert "round trip" not in plain.stdout
    assert not list(tmp_path.glob("*-delays.png"))
    shown = CliRunner().invoke(app, [*base, "--delays", "--reps", "2"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    made = bluewater.compare(
        ["droptail", "codel"], rate="5mbit", rtt="40ms", flows=3, duration="4s", warmup="1s",
        delays=True, reps=2, out=tmp_path, progress=False,
    )  # fmt: skip
    delays = made.table("delays")
    header, *lines = shown.stdout[shown.stdout.index("delay 50 %") :].splitlines()
    assert header.split("99 %")[1].split() == ["in", "the", "queue", "one", "way", "round", "trip"]
    for aqm in ("droptail", "codel"):
        (line,) = (line for line in lines if line.split()[:1] == [aqm])
        for kind in ("queueing", "one-way", "round-trip"):
            own = delays.filter((pl.col("aqm") == aqm) & (pl.col("kind") == kind))
            means = own.select(pl.mean(f"delay_p{p}_s") for p in (50, 95, 99)).row(0)
            cells = [number(1e3 * mean) for mean in means]
            assert f"{', '.join(cells)} ms" in line
    mean = dict(delays.group_by("kind").agg(pl.col("delay_p50_s").mean()).iter_rows())
    # Three hops of a sixth of 40 ms each way, beside what is waited for. Samples of the round trip
    # are not one a packet, so that their quantiles are others.
    assert mean["queueing"] + 0.02 < mean["one-way"] < mean["round-trip"]
    assert mean["round-trip"] > 0.04
    (picture,) = tmp_path.glob("*-delays.png")
    points = pl.read_csv(picture.with_suffix(".csv"))
    assert set(points["panel"]) == {"in the queue", "one way", "round trip"}
    assert points.height == 2 * 2 * 3 * 3
    rows = json.loads(CliRunner().invoke(app, [*base, "--delays", "--json"]).stdout)
    assert {each["kind"] for each in rows[0]["delays"]} == {"queueing", "one-way", "round-trip"}


def test_advice_shows_delays_of_each_group(tmp_path: Path) -> None:
    line = [
        "advise", "--rate", "5mbit", "--bulk", "2", "--calls", "1", "--games", "0", "--box",
        "docsis", "--duration", "4s", "--reps", "2", "--delays", "--out", str(tmp_path),
    ]  # fmt: skip
    shown = CliRunner().invoke(app, line, env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    table = shown.stdout[shown.stdout.index("delay 50 %") :].splitlines()
    rows = [row.split() for row in table if "calls" in row or "bulk" in row]
    assert {row[1] for row in rows} == {"bulk", "calls"}
    assert len(rows) == 4
    assert all(row[-1] == "–" for row in rows if row[1] == "calls"), "datagrams have no round trip"
    (picture,) = tmp_path.glob("advise-*-delays.png")
    assert picture.stat().st_size > 1000


def test_several_round_trips_spread_the_flows(tmp_path: Path) -> None:
    """The last one was taken for all of them."""
    trips = ("120ms", "30ms", "60ms")
    made = bluewater.compare(
        ["droptail"], rate="1gbit", rtt=trips, flows=30, buffer="1bdp", duration="3s", warmup="1s",
        settings={"traffic.0.window": "1p"}, out=tmp_path, progress=False,
    )  # fmt: skip
    found = [round(1e3 * each) for each in made.table("flows")["srtt_s"]]
    assert {each for each in (30, 60, 120) if found.count(each) > 3} == set(found)
    assert "120ms and 30ms and 60ms round trip" in Setup(rtt=trips).title
    assert Setup(rtt=("100ms",)) == Setup()
    assert scenario(Setup(rtt=["100ms"])) == scenario(Setup())  # type: ignore[arg-type]
    for wrong in (20, (), [5]):
        any_: Any = {"rtt": wrong}
        with pytest.raises(InputError) as raised:
            Setup(**any_)
        assert raised.value.key == "rtt"


ONE_VALUE = (
    ["compare", "red", "--rate", "10mbit", "--rate", "2mbit"],
    ["compare", "red", "--jobs", "1", "-j", "2"],
    ["advise", "--buffer=100p", "--buffer", "200p"],
    ["sweep", "x.toml", "--seeds", "1", "--seeds", "2"],
    ["run", "x.toml", "--out", "a", "--out", "b"],
    ["trace", "generate", "x.pcap", "--load", "1mbit", "--load", "2mbit"],
    ["reproduce", "feng", "--size", "quick", "--size", "full"],
    ["replay", "x.arr", "--aqm", "red", "--aqm", "blue"],
)


@pytest.mark.parametrize("words", ONE_VALUE)
def test_an_option_of_one_value_is_refused_the_second_time(words: list[str]) -> None:
    """The first was dropped without a word."""
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2
    assert "takes one value, but is given twice" in found.stderr


def test_every_command_refuses_a_second_value() -> None:
    """Also those that are yet to come: all but the gateway's, which the program itself reads."""
    from bluewater.cli.group import Command  # noqa: PLC0415

    def every(app: Any) -> list[Any]:
        groups = [group.typer_instance for group in app.registered_groups]
        return [*app.registered_commands, *(each for group in groups for each in every(group))]

    assert len(every(app)) > 20
    assert all(command.cls is Command for command in every(app))


def test_what_may_be_given_again_still_may() -> None:
    found = CliRunner().invoke(
        app, ["compare", "blu", "--set", "a=1", "--set", "b=2", "--rtt", "1ms", "--rtt", "2ms"]
    )
    assert "given twice" not in found.stderr


OWN = """from bluewater.aqm import *


class Never(Aqm):
    def arrived(self, packet, queue, link):
        return ADMIT
"""


def test_one_of_several_has_parameters_of_its_own(tmp_path: Path) -> None:
    names = ["red", "red:max_p=0.02", "red:max_p=0.02,gentle=false"]
    made = bluewater.compare(names, **SMALL, settings={"queue.0.params.ecn": False},
                             out=tmp_path, progress=False)  # fmt: skip
    params = [tomllib.loads(run.scenario)["queue"][0]["params"] for _, run in made.results()]
    assert [each["ecn"] for each in params] == [False] * 3
    assert [each["max_p"] for each in params][1:] == [0.02, 0.02]
    assert params[0]["max_p"] != 0.02
    assert [each["gentle"] for each in params] == [True, True, False]
    assert [place["aqm"] for place, _ in made.results()] == names


WRONG = (
    (["bleu"], "did you mean 'blue'?"),
    (["blue,red"], "spaces separate them: blue red"),
    (["clock.py"], "FILE.py:CLASS"),
    (["python:clock.py"], "FILE.py:CLASS"),
    (["red", "--buffer", "100"], "--buffer = '100'"),
    (["red", "--against", "web", "--against", "cbr:2"], "--against = 'cbr:2'"),
    (["red", "--set", "traffic.0.rtt=10ms"], "--rtt"),
    (["blue", "red", "--set", "queue.0.params.max_p=0.2"], "NAME:max_p=VALUE"),
)


@pytest.mark.parametrize(("words", "told"), WRONG)
def test_what_is_wrong_is_told_as_it_was_asked(words: list[str], told: str, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["compare", *words, "--out", str(tmp_path)])
    assert found.exit_code == 2
    assert told in " ".join(found.stderr.split())
    assert "in the cell" not in found.stderr
    assert "'\"" not in found.stderr


def test_a_class_in_python_is_named_by_its_file(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    short = ["--rate", "5mbit", "--flows", "2", "--duration", "1s"]
    found = CliRunner().invoke(app, ["compare", "own.py:Never", "red", "red", *short])
    assert found.exit_code == 0, found.stderr
    assert "own.py:Never" in found.stdout
    assert "repeated names are run once: red" in found.stderr


def test_a_buffer_that_nobody_chose_holds_ten_packets_at_least() -> None:
    """One bandwidth-delay product of 64 kbit/s and 20 ms is 160 bytes: less than a packet."""
    assert Setup(rate="64kbit", rtt="20ms").room == "10p"
    assert Setup().room == "1bdp"
    assert Setup(rate="64kbit", rtt="20ms", buffer="2bdp").room == "2bdp"

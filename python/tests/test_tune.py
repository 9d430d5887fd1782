from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import TINY, Cli

import bluewater
from bluewater import Setup
from bluewater.errors import InputError
from bluewater.study.advice.boxes import tuned
from bluewater.study.search import tune as rules
from bluewater.study.search.optimise import Range
from bluewater.study.search.tune import Knob, Objective, objective

SMALL = ["--rate", "5mbit", "--rtt", "40ms", "--flows", "4", "--duration", "3s", "--runs", "10",
         "--search-reps", "1", "--reps", "3"]  # fmt: skip
DELAY, USED = Objective("delay_p99_s", True), Objective("utilisation", False)


def test_the_ranges_come_from_the_core() -> None:
    found = {each.name: each for each in rules.knobs("pie")}
    assert found["target"] == Knob("target", "duration", Range(0.0015, 0.15))
    assert found["decay"].axis == Range(0.098, 1.0), "not above what the core allows"
    assert "dq_threshold" not in found, "has no effect with the default of `delay`"
    assert {each.unit for each in rules.knobs("red") if each.kind == "size"} == {"%"}
    given = rules.knobs("codel", ["target=1ms..50ms", "ecn", "root=newton", "mtu=0..1500"])
    assert [each.axis for each in given] == [
        Range(0.001, 0.05), [True, False], ["newton"], Range(0, 1500, log=False, whole=True),
    ]  # fmt: skip
    assert given[0].written(0.0123456) == "12300us"


@pytest.mark.parametrize("aqm", [each["name"] for each in bluewater.catalog()["aqms"]])
def test_every_discipline_has_ranges(aqm: str) -> None:
    try:
        knobs = rules.knobs(aqm)
    except InputError:
        assert aqm in ("droptail", "random-drop", "drop-front")
        return
    for knob in knobs:
        assert isinstance(knob.axis, Range)
        assert 0 < knob.axis.low < knob.axis.high


def test_metrics_are_read_as_people_write_them() -> None:
    assert objective("delay.p99", True).metric == "delay_p99_s"
    assert objective("utilization", False).metric == "utilisation"
    assert objective("queue.mean", True).metric == "queue_mean_packets"
    with pytest.raises(InputError, match="unknown metric 'lost'"):
        objective("lost", True)


def test_the_worst_link_counts_or_a_quantile() -> None:
    assert DELAY.worst([1, 3, 2, 4], 1.0) == 4
    assert DELAY.worst([1, 3, 2, 4], 0.5) == 2
    assert USED.worst([1, 3, 2, 4], 1.0) == 1
    assert USED.worst([1, 3, 2, 4], 0.75) == 2


@pytest.mark.parametrize(
    ("delays", "used", "told"),
    [
        ((9.0, 10.0, 11.0), (0.9, 0.9, 0.9), "off"),  # paired, each seed is better by 1
        ((9.0, 12.0, 9.0), (0.9, 0.9, 0.9), "in"),
        ((9.0, 10.0, 11.0), (0.8, 0.8, 0.8), "on"),
        ((11.0, 12.0, 13.0), (0.9, 0.9, 0.9), "on"),
    ],
)
def test_where_the_defaults_are(
    delays: tuple[float, ...], used: tuple[float, ...], told: str
) -> None:
    defaults = ((10.0, 11.0, 12.0), (0.9, 0.9, 0.9))
    assert rules.place(defaults, [(delays, used)], (DELAY, USED)) == told


def test_the_same_command_gives_the_same_front(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    tune = ["tune", "codel", *SMALL, "--param", "target", "--json"]
    first = cli(*tune, "--jobs", "2")
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    *front, defaults = found["front"]
    assert front
    assert defaults["params"] == {}
    assert front[0]["tc"] == f"codel target {front[0]['params']['target']} ecn"
    means = [(each["delay_p99_s"]["mean"], each["utilisation"]["mean"]) for each in front]
    assert means == sorted(means), "along a front both rise"
    (picture,) = cli.out.glob("tune-codel*.png")
    assert str(picture) in first.stderr.replace("\n", "")
    monkeypatch.setattr("bluewater.lab.making.serve", None)  # which is not needed again
    assert json.loads(cli(*tune, "--jobs", "1").stdout) == found


def test_scenarios_are_links_too(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    found = bluewater.tune(
        "blue", [path, Setup(rate="5mbit", flows=2, duration="2s")], params=["increment"],
        minimise=["loss"], runs=2, search_reps=1, reps=2, out=tmp_path, progress=False,
    )  # fmt: skip
    assert len(found.links) == 2
    assert len(found.tried) == 2
    assert len(found.defaults.values[0]) == 2


def test_lines_for_tc() -> None:
    assert tuned("pie", {"target": "20ms", "alpha": 0.125}) == "pie target 20000us alpha 2 ecn"
    assert tuned("fq-codel", {"target": "500us"}) == "fq_codel target 500us ecn"
    assert tuned("pie", {"decay": 0.9}) == tuned("red", {"max_p": 0.1}) == tuned("pie", {}) == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pie", "--param", "targt"], ["unknown parameter 'targt'", "did you mean 'target'?"]),
        (["pie", "--param", "target=5..3"], ["target=5..3", "within 0s … 3600s", "add the unit"]),
        (["pie", "--param", "target=9ms..3ms"], ["--param", "the lower end first"]),
        (["codel", "--param", "root=exat"], ["--param root=exat", "did you mean 'exact'?"]),
        (["codel", "--param", "mtu"], ["gives no range", "mtu=LOW..HIGH, within 0 … 65535"]),
        (["pie", "--minimise", "delays"], ["--minimise", "unknown metric 'delays'"]),
        (["droptail"], ["no parameter with a number", "--param"]),
        (["codel", "--buffer", "5x"], ["--buffer = '5x'", "1.5bdp"]),
        (["codel", "--quantile", "2"], ["--quantile = 2.0", "above 0 … 1"]),
        (["codel", "--rate", "1mbit", "--scenario", "x.toml"], ["--scenario cannot go with"]),
    ],
)
def test_errors_name_what_was_typed(cli: Cli, arguments: list[str], told: list[str]) -> None:
    shown = cli("tune", *arguments)
    assert shown.exit_code == 2
    for each in told:
        assert each in shown.stderr

"""Autorate: algorithms that set the rates of shapers, those that come along and users' own."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import bluewater
from bluewater import _core, autorate, endless, own
from bluewater.autorate import OwnError

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
STEADY = {"rate": "20mbit"}
HEAD = "from bluewater.autorate import Autorate, PerWay\n\n\nclass Mine(Autorate):\n"


def line(algorithm: str = "fixed", down: dict[str, Any] = STEADY, **more: Any) -> dict[str, Any]:
    """A home whose line down is shaped from 10 Mb/s on; probes each 50 ms."""
    return copy.deepcopy(
        {
            "duration": "10s",
            "link": [
                {"from": "net", "to": "isp", "rate": "1gbit", "delay": "5ms"},
                {"from": "isp", "to": "box", "delay": "5ms", "duplex": False, **down},
                {"from": "box", "to": "home", "rate": "10mbit", "delay": "0s", "duplex": False},
                {"from": "home", "to": "isp", "rate": "20mbit", "delay": "5ms", "duplex": False},
            ],
            "queue": [
                {"link": "isp->box", "aqm": "droptail", "buffer": "2MB"},
                {"link": "box->home", "aqm": "fq-codel", "buffer": "1000p"},
            ],
            "traffic": [
                {
                    "name": "bulk", "transport": "cubic", "flows": 4, "packet": "1500B",
                    "from": ["net"], "to": ["home"],
                },
                {
                    "name": "probe", "transport": "cbr", "echo": True, "rate": "13440bit",
                    "packet": "84B", "from": ["home"], "to": ["net"],
                },
            ],
            "autorate": [
                {
                    "algorithm": algorithm, "probes": "probe",
                    "down": {"link": "box->home", "least": "1mbit", "most": "40mbit"}, **more,
                }
            ],
        }
    )  # fmt: skip


def steps(scenario: Any) -> pl.DataFrame:
    return bluewater.run(scenario).autorate


def mine(folder: Path, body: str, name: str = "mine.py") -> dict[str, Any]:
    """A line with a class of the user's own."""
    (folder / name).write_text(HEAD + body)
    return line(f"python:{folder / name}:Mine")


@pytest.mark.parametrize(
    ("algorithm", "lost", "over"),
    [
        ("fixed", 0.52, 0.0),
        ("aimd", 0.15, 1.0),
        ("arrivals", 0.15, 0.8),
        ("gradient", 0.15, 0.8),
        ("pid", 0.15, 0.9),
        ("speeds", 0.25, 0.8),
    ],
)
def test_an_algorithm_settles_on_a_steady_line(algorithm: str, lost: float, over: float) -> None:
    scenario = bluewater.Scenario(line(algorithm), duration="20s")
    results = [bluewater.run(scenario) for _ in range(2)]
    assert results[0].decision_hash == results[1].decision_hash
    assert results[0].autorate.equals(results[1].autorate)
    late = results[0].autorate.filter(pl.col("time_s") > 10)
    assert late["capacity_bps"].unique().to_list() == [20e6]
    assert late["sent_bps"].to_numpy().mean() > (1 - lost) * 20e6
    assert (late["rate_bps"].to_numpy() > 20e6).mean() <= over
    assert late["rate_bps"].is_between(1e6, 40e6).all()
    assert set(own.built_ins()) == {"aimd", "arrivals", "fixed", "gradient", "pid", "speeds"}


def test_the_reaction_to_a_step_is_by_the_rules(tmp_path: Path) -> None:
    """10 Mb/s meet 5: at x after the step a packet waits x, so that probes tell when AIMD acts."""
    falls = {"rate": "20mbit", "rate_trace": {"steps": [["0s", "20mbit"], ["5s", "5mbit"],
                                                        ["60s", "5mbit"]]}}  # fmt: skip
    table = line("aimd", falls, period="50ms", params={"one_way": True, "high": 1})
    table["link"][2]["rate"] = "12mbit"  # the load is below it: the rate rests at its base
    table["traffic"][0] = {
        "name": "bulk", "transport": "cbr", "rate": "10mbit", "packet": "1000B",
        "from": ["net"], "to": ["home"],
    }  # fmt: skip
    seen = steps(bluewater.Scenario(table))
    before = seen.filter(pl.col("time_s") <= 5)
    assert before["rate_bps"].unique().to_list() == [12e6]
    # Probes leave each 50 ms and are at the line's queue 10 ms later. The third that finds more
    # than the threshold of 30 ms there arrives 130 to 180 ms after the step and waits as long.
    arrival = next(
        at for at in range(5000 - 50 + 10, 6000, 50) if at - 5000 > 30 and at + 100 > 5130
    )
    third = arrival + 100
    back = third + (third - 5000) + 5
    due = -(-back // 50) * 50
    lowered = seen.filter(pl.col("rate_bps") < 12e6)["time_s"].to_numpy().min()
    # A row tells of the rate before its step: the first lower one is a period later.
    assert lowered * 1000 == pytest.approx(due + 50, abs=1e-6)


def test_a_step_sees_probes_and_traffic(tmp_path: Path) -> None:
    scenario = mine(
        tmp_path,
        "    def step(self, now, measured):\n"
        "        down, [first, *_] = measured.down, measured.probes\n"
        "        assert measured.up is None and now % measured.period == 0\n"
        "        assert first.round_trip == first.up + first.down > 20_000_000, first\n"
        "        assert [p.down for p in measured.probes] == down.delays\n"
        "        assert down.base == 10e6 and down.least == 1e6 and down.most == 40e6\n"
        "        assert down.load <= 1.2 and down.arrived >= 0\n"
        "        assert measured.oldest is None or measured.oldest < now\n"
        "        return now / 1e9 * 1e6, None\n",
    )
    rows = steps(scenario)
    assert rows["rate_bps"].to_list()[:12] == [10e6, *[1e6] * 10, 1.1e6]
    assert rows["probes"].sum() == pytest.approx(199, abs=2)
    assert rows["lost"].sum() == 0


def test_lost_probes_are_known(tmp_path: Path) -> None:
    table = line(down={"rate": "20mbit", "loss": "10%"})
    rows = steps(table)
    assert 5 < rows["lost"].sum() < 40
    assert rows.select(pl.col("lost") + pl.col("probes")).to_numpy().sum() == pytest.approx(
        200, abs=3
    )


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return float('nan'), None", "it gave (nan, None); allowed: a pair"),
        ("return -1, None", "it gave (-1, None); allowed: a pair"),
        ("return float('inf'), None", "it gave (inf, None)"),
        ("return 5e6", "it gave 5000000.0; allowed: a pair"),
        ("return 5e6, 'fast'", "it gave (5000000.0, 'fast')"),
        ("return 1, 2, 3", "it gave (1, 2, 3)"),
        ("return 1 / (now - 100_000_000), None", "ZeroDivisionError"),
        ("return measured.left.rate, None", "'Measured' object has no attribute 'left'"),
        ("\n        while True: pass", "TimeoutError: it did not return within 0.3 s"),
    ],
)
def test_a_class_that_fails_is_told_with_place_and_time(
    body: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endless, "LIMIT_S", 0.3)
    scenario = mine(tmp_path, f"    def step(self, now, measured):\n        {body}\n")
    with pytest.raises(OwnError) as failed:
        bluewater.run(scenario)
    message = str(failed.value)
    assert told in message
    assert "mine.py:" in message
    assert "Mine.step at 0.100000000 s" in message


def test_a_class_that_cannot_begin_is_refused_before_the_run(tmp_path: Path) -> None:
    for body, told in (
        ("    def start(self, s): 1 / 0", "mine.py:5: Mine.start at 0.000000000 s"),
        ("    def step(self, now): pass", "def step(self, now, measured):"),
        ("    compiled = True", "an autorate algorithm cannot be compiled"),
    ):
        with pytest.raises((OwnError, bluewater.ScenarioError)) as failed:
            bluewater.Scenario(mine(tmp_path, body))
        assert told in str(failed.value)
    with pytest.raises(OwnError, match="Mine has no step"):
        bluewater.run(mine(tmp_path, "    pass"))


def test_the_text_of_a_class_is_part_of_the_scenario(tmp_path: Path) -> None:
    body = "    def step(self, now, measured): return {}, None\n"
    one = bluewater.Scenario(mine(tmp_path, body.format("5e6"))).canonical
    two = bluewater.Scenario(mine(tmp_path, body.format("6e6"))).canonical
    assert one != two
    assert one == bluewater.Scenario(mine(tmp_path, body.format("5e6"))).canonical
    assert "PerWay" in bluewater.Scenario(line("pid")).canonical


class Up(autorate.Autorate):
    def step(self, now: int, measured: Any) -> Any:
        return 15e6, None


def test_a_class_object_is_an_algorithm() -> None:
    table = line()
    table["autorate"][0]["algorithm"] = Up
    assert steps(table)["rate_bps"].to_list()[:3] == [10e6, 15e6, 15e6]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"algorithm": "aimed"}, "did you mean 'aimd'?"),
        ({"probes": "prob"}, "did you mean `probe`?"),
        ({"probes": "bulk"}, "echo = true"),
        ({"period": "10us"}, "autorate[0].period"),
        ({"params": {"speed": 3}}, "autorate[0].params.speed"),
        ({"params": {"window": 0}}, "autorate[0].params.window"),
        ({"down": {"link": "net->isp", "least": "1mbit", "most": "2gbit"}}, "with a [[queue]]"),
        ({"down": {"link": "box->home", "least": "11mbit", "most": "20mbit"}}, "1kbit … 10mbit"),
        ({"down": {"link": "box->home", "least": "1mbit", "most": "9mbit"}}, "down.most"),
        ({"down": {"link": "isp->box", "least": "1mbit", "most": "90mbit"}}, "rate_trace"),
        ({"up": {"link": "box->home", "least": "1mbit", "most": "90mbit"}}, "no other autorate"),
        ({"down": None}, "down, up or both"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], told: str) -> None:
    varies = {"rate": "20mbit", "rate_trace": {"model": "leo"}}
    table = line("aimd", varies)
    entry = {**table["autorate"][0], **change}
    table["autorate"] = [{key: each for key, each in entry.items() if each is not None}]
    with pytest.raises(bluewater.ScenarioError) as failed:
        bluewater.Scenario(table)
    assert told in str(failed.value)
    assert "autorate[0]." in str(failed.value)


def test_a_shaper_with_a_rate_of_its_own_follows_nobody() -> None:
    table = line("aimd", {"rate": "20mbit", "rate_trace": {"model": "leo"}})
    link = table["autorate"][0]["down"]["link"]
    queue = next(queue for queue in table["queue"] if queue["link"] == link)
    queue |= {"aqm": "cake", "params": {"queues": 4, "shared_rate": "1mbit"}}
    with pytest.raises(bluewater.ScenarioError) as failed:
        bluewater.Scenario(table)
    assert "autorate[0].down.link" in str(failed.value)
    assert "a link whose queue has no shared_rate" in str(failed.value)
    queue["params"] = {"queues": 4}
    bluewater.Scenario(table)


def test_the_shaper_has_to_be_on_the_probes_way() -> None:
    table = line()
    table["link"].append({"from": "home", "to": "tv", "rate": "10mbit", "delay": "0s"})
    table["queue"].append({"link": "home->tv", "aqm": "droptail", "buffer": "10p"})
    table["autorate"][0]["down"]["link"] = "home->tv"
    with pytest.raises(bluewater.ScenarioError, match="a link that the probes cross"):
        bluewater.Scenario(table)


def test_an_echo_is_a_round_trip() -> None:
    table = line()
    del table["autorate"]
    table["traffic"] = table["traffic"][1:]
    table["measure"] = {"delays": True}
    delays = bluewater.run(table).delays
    # 10 ms of wires each way and 84 bytes at 20, 1000, 1000, 20 and 10 Mb/s.
    wire = 84 * 8 * (1 / 20e6 + 2 / 1e9 + 1 / 20e6 + 1 / 10e6)
    trips = delays.filter(pl.col("kind") == "round-trip")
    assert trips["delay_mean_s"].item() == pytest.approx(0.02 + wire, abs=1e-6)
    assert trips["samples"].item() == 200


def test_cores_of_other_programs_are_told() -> None:
    text = bluewater.Scenario(line("pid")).canonical
    assert _core.Prepared(text).canonical == text

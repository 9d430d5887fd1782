from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from conftest import Cli

import bluewater
from bluewater.errors import InputError, Interrupted
from bluewater.lab.attacks import Runs, _reduced
from bluewater.lab.making import Maker
from bluewater.study.search import attack as rules
from bluewater.study.search.attack import Moves, Threat

TINY = Threat("4mbit", ("20ms", "60ms"), flows=4, buffer="20kB", warmup="2s", duration="8s")
SMALL = ["--rate", "4mbit", "--rtt", "20ms", "--rtt", "60ms", "--flows", "4", "--buffer", "20kB",
         "--warmup", "2s", "--duration", "8s", "--reps", "3"]  # fmt: skip
SHREW = Moves(0.2, period=1.1, burst=0.07)


smaller = rules.smaller


def few(chosen: Moves) -> list[Moves]:
    """The first reductions alone, for speed."""
    return smaller(chosen)[:6]


def run(aqm: str, chosen: Moves | None, threat: Threat = TINY) -> bluewater.Result:
    return bluewater.run(rules.scenario(aqm, threat, chosen))


@pytest.mark.parametrize(
    "chosen",
    [
        Moves(0.2),
        Moves(0.05, identities=300, turns=10, packet=64),
        Moves(0.2, period=0.9, burst=0.04, identities=7, ecn=True),
        Moves(0.2, period=1.5, burst=0.06, identities=900, turns=3, packet=100),
    ],
)
def test_an_attack_keeps_to_its_budget(chosen: Moves) -> None:
    alone = run("droptail", None)
    found = rules.effect("throughput", run("droptail", chosen), alone, TINY)
    assert 0.8 * chosen.load < found.load <= 1.02 * chosen.load
    assert rules.group(chosen, TINY)["flows"] * chosen.turns <= chosen.identities


@pytest.mark.parametrize("identities", [1, 2, 1000])
def test_every_point_of_the_search_keeps_to_the_identities(identities: int) -> None:
    threat, dice = Threat(identities=identities), random.Random(1)
    families = rules.families(threat, "cake")
    assert sum(part for part, _ in families) <= 1
    for _, space in families * 20:
        point = {
            name: dice.choice(axis)
            if isinstance(axis, list)
            else round(dice.uniform(axis.low, axis.high))
            if axis.whole
            else dice.uniform(axis.low, axis.high)
            for name, axis in space.items()
        }
        chosen = rules.moves(point, threat)
        assert rules.group(chosen, threat)["flows"] * chosen.turns <= identities
        assert chosen.identities <= identities


def test_bursts_near_the_timeout_do_more_than_their_rate() -> None:
    alone = run("red", None)
    effects = {
        name: rules.effect("throughput", run("red", chosen), alone, TINY)
        for name, chosen in (("shrew", SHREW), ("constant", Moves(TINY.load)))
    }
    assert effects["shrew"].damage > 3 * effects["constant"].damage
    assert "low-rate" in rules.remark(SHREW, TINY)
    assert not rules.remark(Moves(0.1), TINY)


def test_measures_are_what_they_say() -> None:
    alone, hit = run("fq-codel", None), run("fq-codel", Moves(1.0, identities=500))
    got, before = (
        r.flows.filter(r.flows["group"] == "victims")["goodput_bps"].to_list() for r in (hit, alone)
    )
    lost = rules.effect("throughput", hit, alone, TINY)
    assert lost.damage == pytest.approx(1 - sum(got) / sum(before))
    worst = rules.effect("starve", hit, alone, TINY)
    assert worst.value == pytest.approx(1 - 4 * min(got) / sum(before))
    assert worst.damage < worst.value
    taken = rules.effect("penalty", hit, alone, TINY)
    assert taken.damage == pytest.approx(taken.value - 1 / 5)
    assert rules.effect("delay", alone, alone, TINY).damage == 0


@pytest.mark.slow
def test_the_same_command_gives_the_same_attack_and_simulates_nothing_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(rules, "smaller", lambda _: [])  # for speed
    attack = ["attack", "red", *SMALL, "--runs", "10", "--json"]
    first = cli(*attack, "--jobs", "2")
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["real"]
    assert found["tried"] == 10
    assert found["attacks"][0]["name"] == "no attack"
    damage = found["attacks"][-1]["damage"]
    assert damage["mean"] - damage["half_width"] > 0

    written = Path(found["scenario"])
    assert f"# decision hash {found['decision_hash']}" in written.read_text()
    assert bluewater.run(written).decision_hash == found["decision_hash"]

    with monkeypatch.context() as patched:
        patched.setattr("bluewater.lab.making.serve", None)  # which is not needed again
        assert json.loads(cli(*attack, "--jobs", "1").stdout) == found
    other = Cli(tmp_path / "other")
    alike = json.loads(other(*attack, "--jobs", "1").stdout)
    assert {**alike, "scenario": ""} == {**found, "scenario": ""}


def test_what_is_not_needed_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "smaller", few)
    with Maker(tmp_path, "", 2, "here", "", False) as maker:
        made = Runs("red", "throughput", TINY, maker)
        wide = Moves(0.2, period=1.1, burst=0.07, identities=4, turns=4)
        found = _reduced(made, wide, seed=1)
        before, after = made.damages([wide, found], [1, 2, 3])
    assert (found.turns, found.identities) == (1, 1)
    assert found.period == wide.period, "without bursts little is left of the damage"
    assert after >= 0.9 * before


def test_reducing_ends_even_if_nothing_is_needed() -> None:
    chosen = Moves(0.2, 1.1, 0.07, identities=900, turns=30, packet=64, ecn=True, dscp="EF")
    steps = 0
    while less := rules.smaller(chosen):
        chosen, steps = less[-1], steps + 1
        assert steps < 200
    assert chosen.load < 0.001


def test_ctrl_c_shows_the_worst_so_far(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("optuna")
    make, calls = Maker.make, []

    def interrupted(self: Maker, scenarios: list[bluewater.Scenario]) -> object:
        calls.append(len(scenarios))
        if len(calls) == 2:
            raise Interrupted(1, 2)
        return make(self, scenarios)

    monkeypatch.setattr(Maker, "make", interrupted)
    shown = cli("attack", "red", *SMALL, "--runs", "20")
    assert shown.exit_code == 130
    assert "neither reduced nor checked" in shown.stderr
    assert "Worst found of 7" in shown.stdout
    (written,) = cli.out.glob("attack-*.toml")
    assert "not checked with other seeds" in written.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rde"], ["unknown queue discipline 'rde'", "did you mean 'red'?"]),
        (["red", "--measure", "delays"], ["--measure", "penalty", "did you mean 'delay'?"]),
        (["red", "--load", "20"], ["--load = 20.0", "0.001 … 5"]),
        (["red", "--buffer", "5x"], ["--buffer = '5x'", "1.5bdp"]),
        (["red", "--min-rto", "5"], ["--min-rto", "add the unit"]),
        (["red", "--duration", "5s"], ["--duration", "more than the warm-up, 5s"]),
    ],
)
def test_errors_name_what_was_typed(cli: Cli, arguments: list[str], told: list[str]) -> None:
    shown = cli("attack", *arguments)
    assert shown.exit_code == 2
    for each in told:
        assert each in shown.stderr


def test_without_optuna_a_hint_says_what_to_install(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    shown = cli("attack", "red", *SMALL)
    assert shown.exit_code == 2
    assert "pip install 'bluewater[search]'" in shown.stderr


def test_a_threat_rejects_what_it_cannot_use() -> None:
    for keys in ({"identities": True}, {"flows": 0}, {"rtt": ()}, {"transport": "quinn"}):
        with pytest.raises(InputError):
            Threat(**keys)

"""Environments: Gymnasium's own checks, what is seen, and that episodes can be repeated."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bluewater
from bluewater.errors import InputError
from bluewater.gym import BottleneckEnv, BottleneckVectorEnv

if TYPE_CHECKING:
    from collections.abc import Mapping

LINK: dict[str, Any] = {
    "duration": "3s",
    "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "20ms"},
    "queue": [{"aqm": "droptail", "buffer": "100p"}],
    "traffic": [{"name": "bulk", "flows": 4, "transport": "sack", "start": "0s..200ms"}],
}
MARKED = {**LINK, "traffic": [{**LINK["traffic"][0], "ecn": True}]}
CLASSES = {
    **LINK,
    "queue": [
        {
            **LINK["queue"][0],
            "class": [
                {"name": "root", "rate": "3mbit"},
                {"name": "leaf", "parent": "root", "rate": "3mbit", "aqm": "pie"},
            ],
        }
    ],
}
ALONE = {**LINK, "traffic": [{"name": "agent", "transport": "sack"}, {"transport": "cubic"}]}


@pytest.mark.parametrize("options", [{}, {"group": "agent"}])
def test_gymnasium_takes_it_for_an_environment(options: dict[str, str]) -> None:
    env = BottleneckEnv(ALONE, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(infinite|-inf|\\+inf|infinity).*")
        check_env(env, skip_render_check=True)


def play(env: BottleneckEnv, seed: int, steps: int = 10**6) -> float:
    env.reset(seed=seed)
    env.action_space.seed(seed)
    total, over = 0.0, False
    while not over and steps:
        _, reward, _, over, _ = env.step(env.action_space.sample() ** 4)
        total += reward
        steps -= 1
    return total


@pytest.mark.slow
@pytest.mark.parametrize("source", [LINK, MARKED])
@pytest.mark.parametrize("step", ["10ms", "700us"])
def test_an_episode_of_a_queue_can_be_repeated(source: dict[str, Any], step: str) -> None:
    env = BottleneckEnv(source, step=step)
    play(env, 5)
    first = env.decision_hash()
    repeated = bluewater.run(env.scenario())
    assert repeated.decision_hash == first
    assert repeated.summary["drops"] + repeated.summary["marks"] > 0
    play(env, 6)
    assert env.decision_hash() != first
    play(env, 5)
    assert env.decision_hash() == first


def test_an_episode_of_a_sender_can_be_repeated() -> None:
    env = BottleneckEnv(ALONE, group="agent", most=60)
    env.reset(seed=3)
    over, n = False, 0
    while not over:
        _, _, _, over, _ = env.step(np.array([0.3 + 0.01 * (n % 50)], np.float32))
        n += 1
    assert n == 300
    assert bluewater.run(env.scenario()).decision_hash == env.decision_hash()


def test_half_an_episode_can_be_repeated() -> None:
    env = BottleneckEnv(LINK)
    play(env, 1, steps=77)
    scenario = env.scenario()
    assert scenario.table["duration"] == f"{77 * 10**7}ns"
    assert bluewater.run(scenario).decision_hash == env.decision_hash()


def test_what_is_seen_adds_up_to_the_run() -> None:
    env = BottleneckEnv(LINK)
    env.reset(seed=1)
    sums: dict[str, float] = {}
    over = False
    while not over:
        _, _, _, over, _ = env.step([0.002])
        for name, value in env.seen.items():
            sums[name] = sums.get(name, 0.0) + float(value[0])
    whole = bluewater.run(env.scenario()).summary
    assert sums["arrived"] == whole["arrivals"]
    assert sums["dropped"] == whole["drops"] > 0
    assert sums["sent"] * 8 / 3 / 10e6 == pytest.approx(whole["utilisation"], rel=0.01)
    assert sums["busy"] / 300 == pytest.approx(whole["utilisation"], abs=0.01)


def test_no_signal_is_drop_tail_and_certain_signals_stop_all() -> None:
    def run(p: float) -> Mapping[str, Any]:
        env = BottleneckEnv(LINK)
        env.reset(seed=1)
        for _ in range(300):
            env.step([p])
        return bluewater.run(env.scenario()).summary

    plain = bluewater.run(bluewater.Scenario(LINK)).summary
    assert run(0.0)["utilisation"] == pytest.approx(plain["utilisation"], abs=0.02)
    assert run(1.0)["departures"] == 0


def test_environments_side_by_side_are_those_alone() -> None:
    many = BottleneckVectorEnv([LINK, MARKED], 5)
    observed, _ = many.reset(seed=9)
    assert observed.shape == (5, 6)
    assert observed.dtype == np.float32
    total = np.zeros(5)
    for n in range(301):
        observed, reward, ended, truncated, _ = many.step(np.full((5, 1), 0.001 * (n % 7)))
        assert (reward[n == 300 :] == 0).all() or n < 300
        assert truncated.all() == (n == 299)
        assert not ended.any()
        total += reward
        if n == 299:
            hashes = [many.decision_hash(i) for i in range(5)]
            again = [bluewater.run(many.scenario(i)).decision_hash for i in range(5)]
            assert hashes == again
            assert len(set(hashes)) == 5
    assert len(set(total)) == 5


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        (LINK, {"group": "bulky"}, "no such group"),
        (LINK, {"step": "0s"}, "step"),
        (LINK, {"step": "10"}, "step|duration"),
        (LINK, {"num_envs": 3}, "num_envs"),
        ({**LINK, "queue": [{"aqm": "droptail", "buffer": "5x"}]}, {}, "buffer"),
        ([], {}, "nothing to simulate"),
        ({**LINK, "traffic": [*LINK["traffic"], *LINK["traffic"]]}, {"group": "bulk"}, "several"),
        (CLASSES, {}, "classes have disciplines of their own"),
        (LINK, {"step": 0.01}, "a time with its unit"),
        (LINK, {"group": 0}, "text"),
        (LINK, {"group": "bulk", "most": True}, "a whole number"),
        (5, {}, "a path, TOML text, or a mapping"),
        ([LINK, 5], {}, "a path, TOML text, or a mapping"),
        (LINK, {"features": 3}, "no function"),
        (LINK, {"features": lambda seen: seen["rate"]}, "a row for each"),
    ],
)
def test_what_does_not_fit_is_named(source: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        BottleneckEnv(source, **options)


@pytest.mark.parametrize("places", ["4", 2.5, True, 0, 10**9])
def test_a_number_of_environments_that_cannot_be_is_refused(places: Any) -> None:
    with pytest.raises(bluewater.InputError, match="num_envs"):
        BottleneckVectorEnv(LINK, places)


def test_what_is_handed_over_later_is_checked() -> None:
    env = BottleneckVectorEnv(LINK, 2, reward=lambda _: np.zeros(3))
    env.reset(seed=1)
    for wrong in (None, "x", [1], [[0], ["a"]], [[1j], [0]]):
        with pytest.raises(bluewater.InputError, match="2 numbers of 0"):
            env.step(wrong)
    with pytest.raises(bluewater.InputError, match="a number for each"):
        env.step([0, 0])
    for place in (2, -1, "a"):
        with pytest.raises(bluewater.InputError, match="place"):
            env.decision_hash(place)  # type: ignore[arg-type]


def test_a_seed_of_numpy_is_a_seed() -> None:
    env = BottleneckVectorEnv(LINK, 2)
    seeds = []
    for seed in (3, np.int64(3), np.array([3, 4])):
        env.reset(seed=seed)  # type: ignore[arg-type]
        env.step([0, 0])
        seeds.append([env.scenario(place).table["seed"] for place in (0, 1)])
    assert seeds[0] == seeds[1] == seeds[2]
    assert seeds[0][0] != seeds[0][1]


def test_an_action_that_is_no_number_is_refused() -> None:
    env = BottleneckEnv(LINK)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step([0.1])
    env.reset(seed=1)
    with pytest.raises(ValueError, match="no number"):
        env.step([np.nan])
    env.step([7.0])
    for _ in range(25):
        env.step([1.0])
    assert env.scenario().table["queue"][0]["code"].endswith(f"ACTIONS = {[1.0] * 26}\n")


TUNED: list[tuple[str, Mapping[str, tuple[Any, Any]]]] = [
    ("codel", {"target": ("1ms", "100ms"), "interval": ("10ms", "1s")}),
    ("red", {"min_th": ("2p", "20p"), "max_th": ("25p", "90p"), "max_p": (0.01, 1), "w_q": (0, 1)}),
    ("ared", {"max_p_max": (0.1, 0.9), "target": ("1ms", "40ms")}),
    (
        "blue",
        {"increment": (0.001, 0.1), "freeze_time": ("0s", "200ms"), "threshold": ("10%", "90%")},
    ),
    ("pie", {"target": ("50ms", "1ms"), "alpha": (0.01, 1)}),
    ("fq-codel", {"quantum": (300, 9000)}),
    ("cake", {"rtt": ("1ms", "1s")}),
    ("fq", {"maxrate": ("1mbit", "20mbit")}),
]


@pytest.mark.parametrize(
    ("aqm", "tune"), TUNED, ids=lambda each: each if isinstance(each, str) else ""
)
def test_parameters_are_actions_and_repeat(aqm: str, tune: Any) -> None:
    link = {**MARKED, "queue": [{"aqm": aqm, "buffer": "100p"}]}
    env = BottleneckEnv(link, tune=tune)
    assert env.action_space.shape == (len(tune),)
    hashes = []
    for power in (4, 1):
        env.reset(seed=3)
        env.action_space.seed(3)
        over = False
        while not over:
            *_, over, _ = env.step(env.action_space.sample() ** power)
        hashes.append(env.decision_hash())
        repeated = bluewater.run(env.scenario())
        assert repeated.decision_hash == hashes[-1]
    assert hashes[0] != hashes[1]


def test_the_ends_of_a_range_are_its_values() -> None:
    """With actions of 0 a queue is one that was built with the lower values."""
    link = {**MARKED, "queue": [{"aqm": "codel", "buffer": "100p"}]}
    tune = {"target": ("2ms", "60ms"), "interval": ("30ms", "90ms")}
    env = BottleneckVectorEnv(link, 2, tune=tune)
    env.reset(seed=[5, 5])
    while not env.over:
        env.step([[0, 0], [1, 1]])
    for place, values in enumerate(zip(*tune.values(), strict=True)):
        params = dict(zip(tune, values, strict=True))
        seed = env.scenario(place).table["seed"]
        plain = {**link, "seed": seed, "queue": [{**link["queue"][0], "params": params}]}
        assert bluewater.run(plain).decision_hash == env.decision_hash(place)


@pytest.mark.parametrize(
    ("aqm", "tune", "words"),
    [
        ("codel", {"targt": ("1ms", "2ms")}, "target"),
        ("codel", {"ecn": (True, False)}, "target"),
        ("codel", {"target": ("1ms",)}, "two values"),
        ("codel", {"target": (1, 2)}, "two values"),
        ("codel", {"target": ("1ms", "fast")}, "two values"),
        ("red", {"min_th": ("1p", "20%")}, "values of one unit"),
        ("codel", {}, "nothing to choose"),
        ("codel", 3, "a mapping"),
        ("droptail", {"p": (0, 1)}, "do not change"),
    ],
)
def test_what_cannot_be_tuned_is_said(aqm: str, tune: Any, words: str) -> None:
    link = {**MARKED, "queue": [{"aqm": aqm, "buffer": "100p"}]}
    with pytest.raises(InputError) as caught:
        BottleneckEnv(link, tune=tune)
    assert words in str(caught.value)


def test_values_that_do_not_fit_are_said_at_once() -> None:
    link = {**MARKED, "queue": [{"aqm": "red", "buffer": "100p"}]}
    with pytest.raises(InputError, match="fit with max_th"):
        BottleneckEnv(link, tune={"min_th": ("99p", "100p")})
    with pytest.raises(InputError, match=r"at tune\.max_p = "):
        BottleneckEnv(link, tune={"max_p": (1, 2)})
    with pytest.raises(InputError, match=r"at tune\.max_th = "):
        BottleneckEnv(link, tune={"min_th": ("1p", "60p"), "max_th": ("50p", "99p")})
    with pytest.raises(InputError, match="group"):
        BottleneckEnv(link, group="bulk", tune={"max_p": (0.1, 1)})


def test_actions_have_a_row_for_each_environment() -> None:
    link = {**MARKED, "queue": [{"aqm": "codel", "buffer": "100p"}]}
    env = BottleneckVectorEnv(link, 3, tune={"target": ("1ms", "2ms"), "interval": ("1ms", "1s")})
    env.reset(seed=1)
    env.step(np.zeros((3, 2)))
    for wrong in (np.zeros((2, 3)), np.zeros(6), np.zeros((3, 2), dtype=complex)):
        with pytest.raises(InputError, match="no actions"):
            env.step(wrong)


def test_a_queue_that_the_scenario_changes_is_not_tuned() -> None:
    change = [{"at": "1s", "params": {"target": "20ms"}}]
    link = {**MARKED, "queue": [{"aqm": "codel", "buffer": "100p", "change": change}]}
    with pytest.raises(InputError, match="the scenario changes"):
        BottleneckEnv(link, tune={"interval": ("1ms", "1s")})


def test_a_long_time_is_written_without_an_exponent() -> None:
    link = {**MARKED, "queue": [{"aqm": "blue", "buffer": "100p"}]}
    tune = {"freeze_time": ("1us", "100000000s"), "threshold": ("0.00001%", "90%")}
    env = BottleneckEnv(link, tune=tune)
    env.reset(seed=1)
    for action in 20 * [[0.0, 0.0], [1.0, 1.0], [0.3, 0.7]]:
        env.step(action)
    assert bluewater.run(env.scenario()).decision_hash == env.decision_hash()

"""Several agents in one simulation: PettingZoo's own checks, and that episodes can be repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import bluewater
from bluewater.gym import BottleneckEnv, BottleneckParallelEnv, sender_reward

CHAIN: dict[str, Any] = {
    "duration": "2s",
    "network": {"preset": "chain", "bottlenecks": 2, "rate": "10mbit", "cross": 2},
    "queue": [
        {"link": "A->B", "aqm": "droptail", "buffer": "60p"},
        {"link": "B->C", "aqm": "red", "buffer": "60p"},
    ],
    "traffic": [
        {"name": "agent", "transport": "sack"},
        {"name": "bulk", "transport": "cubic", "flows": 3},
    ],
}
NAMES = ["B->C", "agent", "A->B"]


def actions(env: BottleneckParallelEnv, n: int) -> dict[str, Any]:
    return {
        name: [0.3 + 0.01 * (n % 40) if name == "agent" else 0.002 * ((n + k) % 5)]
        for k, name in enumerate(env.agents)
    }


def play(env: BottleneckParallelEnv, seed: int) -> int:
    env.reset(seed=seed)
    n = 0
    while env.agents:
        _, _, ended, truncated, _ = env.step(actions(env, n))
        n += 1
        assert not any(ended.values())
        assert all(truncated.values()) == (n == 200)
    return n


def test_pettingzoo_takes_it_for_an_environment() -> None:
    env = BottleneckParallelEnv(CHAIN, NAMES)
    parallel_api_test(env, num_cycles=250)
    parallel_seed_test(lambda: BottleneckParallelEnv(CHAIN, NAMES))


def test_an_episode_of_several_agents_can_be_repeated() -> None:
    env = BottleneckParallelEnv(CHAIN, NAMES)
    assert play(env, 3) == 200
    first = env.decision_hash()
    repeated = bluewater.run(env.scenario())
    assert repeated.decision_hash == first
    assert (repeated.queues["drops"] > 0).all()
    play(env, 4)
    assert env.decision_hash() != first


def test_each_agent_acts_on_its_own() -> None:
    env = BottleneckParallelEnv(CHAIN, NAMES)
    env.reset(seed=1)
    for _ in range(100):
        env.step({"A->B": [0.0], "B->C": [1.0], "agent": [0.5]})
    assert env.seen("B->C")["dropped"] == env.seen("B->C")["arrived"]
    assert env.seen("A->B")["rate"] == env.seen("B->C")["rate"] == 1e7
    one = bluewater.run(env.scenario()).queues
    assert one["departures"].to_list()[1] == 0
    assert one["departures"].to_list()[0] > 0


def test_one_agent_of_several_is_that_of_one() -> None:
    alone = BottleneckEnv({**CHAIN, "queue": CHAIN["queue"][:1]})
    several = BottleneckParallelEnv({**CHAIN, "queue": CHAIN["queue"][:1]})
    assert several.possible_agents == ["A->B"]
    seen, _ = alone.reset(seed=5)
    first, _ = several.reset(seed=5)
    assert (seen == first["A->B"]).all()
    for n in range(200):
        seen, reward, *_ = alone.step([0.001 * (n % 9)])
        theirs, rewards, *_ = several.step({"A->B": [0.001 * (n % 9)]})
        assert (seen == theirs["A->B"]).all()
        assert reward == rewards["A->B"]
    assert alone.decision_hash() == several.decision_hash()


def test_features_and_rewards_of_its_own() -> None:
    env = BottleneckParallelEnv(
        CHAIN,
        NAMES,
        features={"A->B": lambda seen: np.stack([seen["backlog"]], axis=1)},
        reward={"agent": lambda seen: 2 * sender_reward(seen)},
    )
    assert env.observation_space("A->B").shape == (1,)
    env.reset(seed=1)
    for n in range(50):
        observed, reward, *_ = env.step(actions(env, n))
    assert observed["A->B"][0] == env.seen("A->B")["backlog"][0]
    assert reward["agent"] == 2 * sender_reward(env.seen("agent"))[0]


@pytest.mark.parametrize(
    ("agents", "options", "says"),
    [
        (["A->D"], {}, "allowed: agent, bulk, A->B, B->C"),
        (["A->B", "A->B"], {}, "twice"),
        ([], {}, "no agent"),
        (["A->B"], {"reward": {"B->C": sender_reward}}, "no such agent"),
        (["A->B"], {"most": 1}, "no range"),
        ("A->B", {}, "a sequence of names"),
        ([0], {}, "text"),
        (["A->B"], {"reward": sender_reward}, "a mapping"),
        (["A->B"], {"features": {"A->B": 3}}, "no function"),
    ],
)
def test_what_does_not_fit_is_named(agents: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(bluewater.InputError, match=says):
        BottleneckParallelEnv(CHAIN, agents, **options)


def test_a_pattern_of_links_is_no_agent() -> None:
    everywhere = {**CHAIN, "queue": [{"link": "*", "aqm": "droptail", "buffer": "60p"}]}
    with pytest.raises(bluewater.InputError, match="not one queue"):
        BottleneckParallelEnv(everywhere)


def test_an_action_for_each_is_needed() -> None:
    env = BottleneckParallelEnv(CHAIN, NAMES)
    env.reset(seed=1)
    with pytest.raises(bluewater.InputError, match="an action for each agent"):
        env.step({"A->B": [0.1]})
    with pytest.raises(bluewater.InputError, match="a mapping"):
        env.step(0.1)  # type: ignore[arg-type]
    with pytest.raises(bluewater.InputError, match="not one number"):
        env.step({**actions(env, 0), "A->B": [0.1, 0.2]})
    with pytest.raises(bluewater.InputError, match="unknown agent"):
        env.seen("A->D")

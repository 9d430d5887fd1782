"""An environment of PettingZoo: several agents in one simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from bluewater.arguments import MAPPING, NAMES, TEXT
from bluewater.errors import InputError, unknown
from bluewater.gym.episodes import Agent, Episodes
from bluewater.gym.seen import Made, Seen, defaults, makes
from bluewater.study.scenarios.scenario import of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bluewater.study.scenarios.scenario import Scenario, Source


class BottleneckParallelEnv(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """A simulation in which several agents act at the same times, at queues and as senders.

    Args:
        scenario: What an episode simulates.
        agents: The name of each: the ``link`` of a queue, or of a group of traffic. By default
            all queues.
        step: The time between two actions.
        most: The largest window that a sending agent may choose, packets.
        features: Of agents by name, what makes the observation of what a step showed;
            :func:`queue_features` or :func:`sender_features` of the others.
        reward: Of agents by name, what makes the reward of it; :func:`queue_reward` or
            :func:`sender_reward` of the others.

    Observations, actions and rewards of an agent are those of :class:`BottleneckVectorEnv`. All
    agents are there from the first step to the end of the scenario, at which the episode is
    truncated.

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: It has other classes in Python, or an agent or argument does not exist.
    """

    metadata = {"render_modes": [], "name": "bottleneck"}  # noqa: RUF012

    def __init__(
        self,
        scenario: Source,
        agents: Sequence[str] | None = None,
        *,
        step: str = "10ms",
        most: int = 1000,
        features: Mapping[str, Made] | None = None,
        reward: Mapping[str, Made] | None = None,
    ) -> None:
        names, steered = _found(scenario, agents)
        self._episodes = Episodes(scenario, 1, steered, step, most)
        usual = {
            name: defaults(sends=isinstance(agent, str))
            for name, agent in zip(names, steered, strict=True)
        }
        for key, given in (("features", features), ("reward", reward)):
            if given is not None:
                MAPPING.check(key, given, "an environment")
            for name in given or {}:
                if name not in usual:
                    raise InputError("no such agent", key=key, value=name, allowed=", ".join(names))
        self._features = {
            name: makes("features", (features or {}).get(name, each[0]), 1, 2)
            for name, each in usual.items()
        }
        self._reward = {
            name: makes("reward", (reward or {}).get(name, each[1]), 1, 1)
            for name, each in usual.items()
        }
        self.possible_agents = names
        self.agents: list[str] = []
        unit = gymnasium.spaces.Box(0, 1, (1,), np.float32)
        self.action_spaces = dict.fromkeys(names, unit)
        self.observation_spaces = {
            name: gymnasium.spaces.Box(-np.inf, np.inf, each.shape, np.float32)
            for name, each in self._observed().items()
        }

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """A number of 0 … 1."""
        return self.action_spaces[agent]

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """What the agent's ``features`` give."""
        return self.observation_spaces[agent]

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode; with a ``seed`` all that follows is determined."""
        self._episodes.reset(seed)
        self.agents = list(self.possible_agents)
        return self._observed(), {name: {} for name in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[
        dict[str, Any],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Lets all agents act for one step.

        Returns:
            By agent: observations, rewards, whether it came to an end of its own (none does),
            whether it was truncated, and nothing more.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded("reset() begins an episode")
        MAPPING.check("actions", actions, "an environment")
        if set(actions) != set(self.agents):
            raise InputError(
                "not an action for each agent",
                key="actions",
                value=", ".join(map(str, actions)),
                allowed=", ".join(self.agents),
            )
        chosen = [np.atleast_1d(actions[name]) for name in self.agents]
        if wrong := [
            name for name, each in zip(self.agents, chosen, strict=True) if each.size != 1
        ]:
            raise InputError("not one number", key=wrong[0], value=actions[wrong[0]])
        self._episodes.step([[each[0] for each in chosen]])
        names, over = self.agents, bool(self._episodes.over.all())
        if over:
            self.agents = []
        return (
            self._observed(),
            {name: float(self._reward[name](self.seen(name))[0]) for name in names},
            dict.fromkeys(names, False),
            dict.fromkeys(names, over),
            {name: {} for name in names},
        )

    def scenario(self) -> Scenario:
        """The scenario that repeats the episode as far as it has come."""
        return self._episodes.scenario(0)

    def decision_hash(self) -> str | None:
        """The hash over all decisions of the episode so far."""
        return self._episodes.decision_hash(0)

    def seen(self, agent: str) -> Seen:
        """What the last step showed an agent."""
        if agent not in self.possible_agents:
            raise unknown("agent", agent, self.possible_agents, key="agent")
        return self._episodes.seen(self.possible_agents.index(agent))

    def _observed(self) -> dict[str, Any]:
        return {
            name: np.asarray(self._features[name](self.seen(name))[0], dtype=np.float32)
            for name in self.possible_agents
        }


def _found(scenario: Source, asked: Sequence[str] | None) -> tuple[list[str], list[Agent]]:
    """The names of the agents, and what each steers."""
    table = of(scenario, {}).table
    queues: dict[str, Agent] = {}
    for k, queue in enumerate(table.get("queue", [])):
        queues.setdefault(queue.get("link", "queue"), k)
    groups: dict[str, Agent] = {
        name: name for name in (each.get("name", "flows") for each in table.get("traffic", []))
    }
    if asked is not None:
        NAMES.check("agents", asked, "an environment")
    names = list(queues if asked is None else asked)
    for name in names:
        TEXT.check("agents", name, "an environment")
    there = groups | queues
    if not names:
        raise InputError("no agent", key="agents", value=asked, allowed=", ".join(there))
    if wrong := [name for name in names if name not in there or "*" in name]:
        hint = "name a link" if "*" in wrong[0] else ""
        raise InputError(
            "not one queue or group",
            key="agents",
            value=wrong[0],
            allowed=", ".join(there),
            hint=hint,
        )
    if len(set(names)) < len(names):
        raise InputError("an agent twice", key="agents", value=", ".join(names))
    return names, [there[name] for name in names]

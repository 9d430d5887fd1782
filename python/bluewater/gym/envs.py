"""Environments of Gymnasium, with one agent in each simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from bluewater.arguments import TEXT
from bluewater.errors import InputError
from bluewater.gym.episodes import Episodes
from bluewater.gym.seen import Made, Seen, defaults, makes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bluewater.gym.tuned import Ranges
    from bluewater.study.scenarios.scenario import Scenario, Source


class BottleneckVectorEnv(VectorEnv[Any, Any, Any]):
    """Simulations side by side, each with an agent at its first queue or at a group of senders.

    Args:
        scenario: What an episode simulates; of several each episode draws one. The agent stands
            in place of the discipline of the first queue, or of the transport of ``group``.
            ``warmup`` is left out.
        num_envs: How many simulations.
        step: The time between two actions.
        group: The name of the group of traffic that the agent sends; without it the agent is the
            first queue's.
        most: The largest window that a sending agent may choose, packets.
        tune: The parameters of the first queue's own discipline that the agent chooses, each with
            its values for the actions 0 and 1, as scenario files have them:
            ``{"target": ("1ms", "100ms")}``. ``bluewater explain`` lists which may change.
        features: Makes the observation of what a step showed, a row for each environment;
            :func:`queue_features` or :func:`sender_features` if not given.
        reward: Makes the reward of it, a number for each environment; :func:`queue_reward` or
            :func:`sender_reward` if not given.

    An action is a number a of 0 … 1: the probability, or for each connection a window of
    ``most`` to the power of a packets, so that each doubling takes the same step. With ``tune`` it
    is such a number for each parameter, in the order given. An episode is
    truncated at the end of the scenario; the step after that begins the next one
    (``AutoresetMode.NEXT_STEP``).

    Raises:
        ScenarioError: The scenario is not valid.
        InputError: It has other classes in Python, or the group or an argument does not exist.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        scenario: Source | Sequence[Source],
        num_envs: int = 1,
        *,
        step: str = "10ms",
        group: str | None = None,
        most: int = 1000,
        tune: Ranges | None = None,
        features: Made | None = None,
        reward: Made | None = None,
    ) -> None:
        if group is not None and tune is not None:
            raise InputError(
                "an agent at a queue does not send", key="tune", allowed="without group"
            )
        if group is not None:
            TEXT.check("group", group, "an environment")
        agent = 0 if group is None else group
        self._episodes = Episodes(scenario, num_envs, [agent], step, most, tune)
        self.num_envs = int(num_envs)
        usual = defaults(sends=group is not None)
        self._features = makes("features", features or usual[0], num_envs, 2)
        self._reward = makes("reward", reward or usual[1], num_envs, 1)
        batch = gymnasium.vector.utils.batch_space
        self.single_action_space = gymnasium.spaces.Box(0, 1, (self._episodes.width,), np.float32)
        self.action_space = batch(self.single_action_space, num_envs)
        width = self._observe(self.seen).shape[1]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.observation_space = batch(self.single_observation_space, num_envs)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode in each place.

        With a ``seed`` all that follows is determined; place i has ``seed + i``, or its own of
        a list.
        """
        self._episodes.reset(seed)
        return self._observe(self.seen), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Lets every agent act for one step.

        Returns:
            Observations (a row each), rewards, which episodes came to an end of their own (none
            does), which were truncated, and nothing more.
        """
        if not self._episodes.began:
            raise gymnasium.error.ResetNeeded("reset() begins the first episode")
        anew = self._episodes.step(actions)
        seen = self.seen
        # An episode that has just begun made no step: its first observation is due.
        reward = np.where(anew, 0.0, self._reward(seen))
        ended = np.zeros(self.num_envs, dtype=bool)
        return self._observe(seen), reward, ended, self._episodes.over, {}

    def scenario(self, place: int = 0) -> Scenario:
        """The scenario that repeats the episode in ``place`` as far as it has come.

        It ends there, unless flows are still to start. Then it ends where the episode would,
        with the last action again and again.
        """
        return self._episodes.scenario(place)

    def decision_hash(self, place: int = 0) -> str | None:
        """The hash over all decisions of the episode in ``place`` so far."""
        return self._episodes.decision_hash(place)

    @property
    def over(self) -> bool:
        """Whether every episode has come to its end."""
        return bool(self._episodes.over.all())

    @property
    def seen(self) -> Seen:
        """What the last step showed, in the units of :data:`OF_QUEUE` or :data:`OF_SENDER`."""
        return self._episodes.seen(0)

    def _observe(self, seen: Seen) -> NDArray[np.float32]:
        return np.asarray(self._features(seen), dtype=np.float32)


class BottleneckEnv(gymnasium.Env[Any, Any]):
    """One simulation with an agent; the arguments are those of :class:`BottleneckVectorEnv`."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, scenario: Source | Sequence[Source], **options: Any) -> None:
        if "num_envs" in options:
            raise InputError(
                "not of one environment", key="num_envs", hint="BottleneckVectorEnv has it"
            )
        self._vector = BottleneckVectorEnv(scenario, 1, **options)
        self.action_space = self._vector.single_action_space
        self.observation_space = self._vector.single_observation_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        super().reset(seed=seed)
        observed, told = self._vector.reset(seed=seed, options=options)
        return observed[0], told

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Lets the agent act for one step; after the end :meth:`reset` begins the next episode."""
        if self._vector.over:
            raise gymnasium.error.ResetNeeded("the episode is over; reset() begins the next one")
        observed, reward, ended, truncated, told = self._vector.step(np.asarray(action)[None])
        return observed[0], float(reward[0]), bool(ended[0]), bool(truncated[0]), told

    def scenario(self) -> Scenario:
        """The scenario that repeats the episode as far as it has come."""
        return self._vector.scenario()

    def decision_hash(self) -> str | None:
        """The hash over all decisions of the episode so far."""
        return self._vector.decision_hash()

    @property
    def seen(self) -> Seen:
        """What the last step showed; see :attr:`BottleneckVectorEnv.seen`."""
        return self._vector.seen

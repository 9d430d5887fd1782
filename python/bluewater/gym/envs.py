"""Environments of Gymnasium in which an agent learns to manage a queue, or to send.

An episode is one simulation. In each step the agent gives one number: the probability with which
its queue signals arriving packets, or the window of its connections. The same scenarios, seeds
and actions give the same decisions, bit for bit; :meth:`BottleneckVectorEnv.scenario` is an
ordinary scenario that repeats an episode.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bluewater import _core
from bluewater._core import ScenarioError
from bluewater.errors import InputError
from bluewater.study.scenarios.scenario import Scenario, Source, of, to_text

try:
    import gymnasium
    import numpy as np
    from gymnasium.vector import AutoresetMode, VectorEnv
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(f"{error}; pip install 'bluewater[gym]'", name=error.name) from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BottleneckEnv", "BottleneckVectorEnv", "Seen"]

Seen = Mapping[str, "NDArray[np.float64]"]
"""What a step showed, a number for each environment, in the units of :data:`OF_QUEUE` and
:data:`OF_SENDER`, with ``rate`` (bit/s) and ``time``, the length of a step (s)."""

OF_QUEUE = dict(_core.Episodes.observed(sends=False))
"""What an agent at a queue sees of a step, with units."""
OF_SENDER = dict(_core.Episodes.observed(sends=True))
"""What an agent that sends sees of a step, with units; all its connections together."""

_CLASS = "python:agent.py:Agent"
_QUEUE = '''"""The actions of an episode, one a step."""

from bluewater.aqm import Aqm


class Agent(Aqm):
    """Signals with the probability that an agent chose for each step."""

    def on_arrival(self, now, packet, queue):
        return ACTIONS[min(now // STEP, len(ACTIONS) - 1)]
'''
_SENDER = '''"""The actions of an episode, one a step."""

from bluewater.control import Controller


class Agent(Controller):
    """Has the window that an agent chose for each step, in bytes."""

    def start(self, start):
        self.choose(start.now)

    def on_congestion(self, congestion):
        self.choose(congestion.now)

    def on_ack(self, ack):
        self.choose(ack.now)

    def choose(self, now):
        self.cwnd = ACTIONS[min(now // STEP, len(ACTIONS) - 1)]
'''


def queue_features(seen: Seen) -> NDArray[np.float64]:
    """What a network is shown of a queue: six numbers near 0 … 1, a row for each environment.

    The queueing delay for which the backlog stands and the mean delay of packets that left, both in
    units of 20 ms and at most 10; what left and how long the link sent, as shares; and the shares
    of arriving packets that were dropped and marked.
    """
    arrived = np.maximum(seen["arrived"], 1)
    columns = (
        np.minimum(seen["backlog"] * 8 / seen["rate"] / 0.02, 10),
        np.minimum(seen["sojourn"] / 2e7, 10),
        seen["sent"] * 8 / (seen["rate"] * seen["time"]),
        seen["busy"],
        seen["dropped"] / arrived,
        seen["marked"] / arrived,
    )
    return np.stack(columns, axis=1)


def sender_features(seen: Seen) -> NDArray[np.float64]:
    """What a network is shown of connections: six numbers, a row for each environment.

    The rate of acknowledged data, in units of 10 Mb/s; the least round trip in units of 100 ms; by
    how much of it the mean round trip was longer, at most 10; the share of bytes that were lost;
    marks and episodes of congestion, as counts up to 10 in units of ten.
    """
    least = np.maximum(seen["min_rtt"], 1)
    heard = np.where(seen["rtt"] > 0, seen["rtt"], seen["min_rtt"])
    total = np.maximum(seen["acked"] + seen["lost"], 1)
    columns = (
        seen["acked"] * 8 / seen["time"] / 1e7,
        seen["min_rtt"] / 1e8,
        np.minimum((heard - seen["min_rtt"]) / least, 10),
        seen["lost"] / total,
        np.minimum(seen["marked"], 10) / 10,
        np.minimum(seen["episodes"], 10) / 10,
    )
    return np.stack(columns, axis=1)


def queue_reward(seen: Seen) -> NDArray[np.float64]:
    """How busy the link was, less delay and loss.

    That is the share of the step in which it sent, less half of the mean delay in units of 20 ms,
    less the share of packets that were dropped.
    """
    lost = seen["dropped"] / np.maximum(seen["arrived"], 1)
    return np.asarray(seen["busy"] - np.minimum(seen["sojourn"] / 2e7, 10) / 2 - lost)


def sender_reward(seen: Seen) -> NDArray[np.float64]:
    """The rate, less delay and loss.

    That is the logarithm of the rate in Mb/s, at least 0.01, less the queueing delay in units of
    20 ms and ten times the share that was lost.
    """
    rate = np.log(np.maximum(seen["acked"] * 8 / seen["time"] / 1e6, 0.01))
    delay = np.where(seen["rtt"] > 0, seen["rtt"] - seen["min_rtt"], 0) / 2e7
    lost = seen["lost"] / np.maximum(seen["acked"] + seen["lost"], 1)
    return np.asarray(rate - np.minimum(delay, 10) - 10 * lost)


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
        features: Makes the observation of what a step showed, a row for each environment;
            :func:`queue_features` or :func:`sender_features` if not given.
        reward: Makes the reward of it, a number for each environment; :func:`queue_reward` or
            :func:`sender_reward` if not given.

    An action is a number a of 0 … 1: the probability, or for each connection a window of
    ``most`` to the power of a packets, so that each doubling takes the same step. An episode is
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
        features: Callable[[Seen], NDArray[np.float64]] | None = None,
        reward: Callable[[Seen], NDArray[np.float64]] | None = None,
    ) -> None:
        sends = group is not None
        one = isinstance(scenario, str | Mapping | Path | Scenario)
        sources = cast("list[Source]", [scenario] if one else list(cast("Any", scenario)))
        if not sources:
            raise InputError("nothing to simulate", key="scenario", value=scenario)
        if not (isinstance(most, int) and most > 1):
            raise InputError("no range", key="most", value=most, allowed="2 or more packets")
        if num_envs < 1:
            raise InputError("no places", key="num_envs", value=num_envs, allowed="1 or more")
        self.num_envs = num_envs
        self._names = list(OF_SENDER if sends else OF_QUEUE)
        self._bases = [_steered(source, group) for source in sources]
        self._packets = np.array([_packet(base, group) for base in self._bases])
        self._step, _ = _core.quantity("duration", step)
        if not self._step:
            raise InputError("no time", key="step", value=step, allowed="above 0s")
        texts = [to_text(base)[0] for base in self._bases]
        self._episodes = _core.Episodes(texts, num_envs, self._step, sends)
        self._rates = np.array([float(self._episodes.rate(i)) for i in range(len(texts))])
        self._group, self._most = group, most
        self._features = features or (sender_features if sends else queue_features)
        self._reward = reward or (sender_reward if sends else queue_reward)
        self._which = np.zeros(num_envs, dtype=np.int64)
        self._draws: list[np.random.Generator | None] = [None] * num_envs
        self._seeds = [0] * num_envs
        self._seen = np.zeros((num_envs, len(self._names)))
        self._over = np.zeros(num_envs, dtype=np.uint8)
        self._length = np.full(num_envs, self._step / 1e9)
        # The actions of all steps since the longest episode began, and where each began.
        self._taken: list[NDArray[np.float64]] = []
        self._first = np.zeros(num_envs, dtype=np.int64)
        self._began = False
        batch = gymnasium.vector.utils.batch_space
        self.single_action_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
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
        seeds = list(seed) if isinstance(seed, list) else [seed] * self.num_envs
        if len(seeds) != self.num_envs:
            raise InputError(
                "a seed each", key="seed", value=seed, allowed=f"{self.num_envs} seeds"
            )
        if isinstance(seed, int):
            seeds = [seed + place for place in range(self.num_envs)]
        for place, own in enumerate(seeds):
            if own is not None or not self._draws[place]:
                self._draws[place], _ = gymnasium.utils.seeding.np_random(own)
        self._began = True
        for place in range(self.num_envs):
            self._begin(place)
        self._over[:] = 0
        return self._observe(self.seen), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Lets every agent act for one step.

        Returns:
            Observations (a row each), rewards, which episodes came to an end of their own (none
            does), which were truncated, and nothing more.
        """
        if not self._began:
            raise gymnasium.error.ResetNeeded("reset() begins the first episode")
        asked = np.asarray(actions, dtype=np.float64).reshape(self.num_envs)
        if not np.isfinite(asked).all():
            raise InputError("no number", key="action", value=actions, allowed="0 … 1")
        chosen = np.clip(asked, 0, 1)
        if self._group is not None:
            chosen = self._packets[self._which] * float(self._most) ** chosen
        anew = self._over.astype(bool)
        for place in np.flatnonzero(anew):
            self._begin(int(place))
        # An episode that has just begun makes no step: its first observation is due.
        running = np.where(anew, np.nan, chosen)
        self._episodes.step(running, self._seen, self._over)
        self._taken.append(running)
        seen = self.seen
        reward = np.where(anew, 0.0, self._reward(seen))
        ends = self._over.astype(bool)
        return self._observe(seen), reward, np.zeros(self.num_envs, dtype=bool), ends, {}

    def scenario(self, place: int = 0) -> Scenario:
        """The scenario that repeats the episode in ``place`` as far as it has come.

        It ends there, unless flows are still to start. Then it ends where the episode would,
        with the last action again and again.
        """
        rows = self._taken[self._first[place] :]
        actions = [float(row[place]) for row in rows if not math.isnan(row[place])]
        if not actions:
            raise InputError("no step was made yet", key="place", value=place)
        base = self._bases[self._which[place]]
        table = base.table
        end, _ = _core.quantity("duration", table["duration"])
        table["seed"] = self._seeds[place]
        _agent(table, self._group)["code"] = _code(self._group, self._step, actions)
        whole = Scenario(table, origin=base.origin)
        try:
            return whole.with_(duration=f"{min(len(actions) * self._step, end)}ns")
        except ScenarioError:
            return whole

    def decision_hash(self, place: int = 0) -> str | None:
        """The hash over all decisions of the episode in ``place`` so far."""
        return self._episodes.decision_hash(place)

    @property
    def over(self) -> bool:
        """Whether every episode has come to its end."""
        return bool(self._over.all())

    @property
    def seen(self) -> Seen:
        """What the last step showed, in the units of :data:`OF_QUEUE` or :data:`OF_SENDER`."""
        told = dict(zip(self._names, self._seen.T, strict=True))
        return {**told, "rate": self._rates[self._which], "time": self._length}

    def _begin(self, place: int) -> None:
        draws = self._draws[place]
        assert draws
        self._which[place] = draws.integers(len(self._bases))
        self._seeds[place] = int(draws.integers(2**31))
        self._episodes.reset(place, int(self._which[place]), self._seeds[place])
        self._seen[place] = 0
        self._first[place] = len(self._taken)
        if gone := int(self._first.min()):
            del self._taken[:gone]
            self._first -= gone

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


def _code(group: str | None, step: int, actions: list[float]) -> str:
    """A file with the class that has the actions of an episode."""
    made = _QUEUE if group is None else _SENDER
    return f"{made}\n\nSTEP = {step}\nACTIONS = {actions!r}\n"


def _agent(table: dict[str, Any], group: str | None) -> dict[str, Any]:
    """The entry of a scenario in whose place the agent stands."""
    if group is None:
        found: dict[str, Any] = table["queue"][0]
        return found
    groups = {each.get("name", "flows"): each for each in table["traffic"]}
    if group not in groups:
        raise InputError("no such group", key="group", value=group, allowed=", ".join(groups))
    named: dict[str, Any] = groups[group]
    return named


def _steered(source: Source, group: str | None) -> Scenario:
    """The scenario with an agent in its place."""
    base = of(source, {"warmup": "0s"})
    table = base.table
    own = [each.get("aqm", "") for each in table["queue"]]
    own += [each["transport"] for each in table["traffic"] if "transport" in each]
    agent = _agent(table, group)
    if any(name.startswith("python:") for name in own):
        raise InputError("an environment of classes in Python", hint="the agent is the only one")
    if group is None:
        agent["aqm"] = _CLASS
        agent.pop("params", None)
    else:
        agent["transport"] = _CLASS
    agent["code"] = _code(group, 1, [1.0])
    return Scenario(table, origin=base.origin)


def _packet(base: Scenario, group: str | None) -> float:
    """What an action is multiplied by: the bytes of a packet, for an agent that sends."""
    if group is None:
        return 1.0
    size, _ = _core.quantity("size", _agent(tomllib.loads(base.canonical), group)["packet"])
    return float(size)

"""Episodes side by side, each with the same agents."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from gymnasium.utils.seeding import np_random

from bluewater import _core
from bluewater._core import ScenarioError
from bluewater.arguments import NUMBER, Argument
from bluewater.errors import InputError
from bluewater.gym.seen import OF_QUEUE, OF_SENDER, Seen
from bluewater.gym.tuned import Chosen, Ranges, chosen
from bluewater.lab.making import SOURCE
from bluewater.study.scenarios.scenario import Scenario, Source, of, to_text
from bluewater.units import seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

Agent = int | str
"""What an agent steers: the queue of this number in the scenario, or the group of senders of this
name."""
_MOST_PLACES = 100_000
"""The most simulations side by side; each has its network in memory."""
_CLASS = "python:agent{}.py:Agent"
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


class Episodes:
    """Simulations side by side, in places; each has the same agents.

    Args:
        scenario: What an episode simulates; of several each episode draws one.
        places: How many simulations.
        agents: What they steer.
        step: The time between two actions.
        most: The largest window of an agent that sends, packets.
        tune: The parameters that the one agent chooses, at the first queue.
    """

    def __init__(
        self,
        scenario: Source | Sequence[Source],
        places: int,
        agents: Sequence[Agent],
        step: str,
        most: int,
        tune: Ranges | None = None,
    ) -> None:
        sources = _several(scenario)
        NUMBER.check("num_envs", places, "an environment")
        if not 1 <= places <= _MOST_PLACES:
            allowed = f"1 … {_MOST_PLACES:,}"
            raise InputError("not possible", key="num_envs", value=places, allowed=allowed)
        NUMBER.check("most", most, "an environment")
        if most < 2:
            raise InputError("no range", key="most", value=most, allowed="2 or more packets")
        Argument((str,), "a time with its unit: 10ms").check("step", step, "an environment")
        self._step = round(seconds(step, "step") * 1e9)
        if not self._step:
            raise InputError("no time", key="step", value=step, allowed="above 0s")
        self._agents, self._most = agents, most
        self._chosen: list[Chosen] = []
        if tune is None:
            self._bases = [_steered(source, agents) for source in sources]
            named = [_CLASS.format(k) for k in range(len(agents))]
        else:
            bases = [of(source, {"warmup": "0s"}) for source in sources]
            if any("change" in base.table["queue"][0] for base in bases):
                problem = "a queue whose parameters the scenario changes"
                raise InputError(problem, key="queue.0.change", allowed="nothing with tune")
            named = sorted({str(base.table["queue"][0]["aqm"]) for base in bases})
            if len(named) > 1:
                problem = "several disciplines, of which only one can be tuned"
                raise InputError(problem, key="scenario", value=", ".join(named))
            self._chosen = chosen(tune, named[0])
            self._bases = [self._fitting(base, named) for base in bases]
        self._packets = np.array([_packets(base, agents) for base in self._bases])
        self._sends = np.array([isinstance(agent, str) for agent in agents])
        texts = [to_text(base)[0] for base in self._bases]
        units = [(each.name, each.unit) for each in self._chosen]
        self._simulated = _core.Episodes(texts, places, self._step, named, units)
        self._rates = np.array([self._simulated.rates(i) for i in range(len(texts))], dtype=float)
        if (self._rates[:, ~self._sends] == 0).any():
            raise InputError(
                "an agent at a queue whose classes have disciplines of their own",
                key="queue",
                hint="leave `aqm` out of its classes",
            )
        self._which = np.zeros(places, dtype=np.int64)
        self._draws: list[np.random.Generator | None] = [None] * places
        self._seeds = [0] * places
        self._seen = np.zeros((places, len(agents), len(OF_QUEUE)))
        self._over = np.zeros(places, dtype=np.uint8)
        self._length = np.full(places, self._step / 1e9)
        # The actions of all steps since the longest episode began, and where each began.
        self._taken: list[NDArray[np.float64]] = []
        self._first = np.zeros(places, dtype=np.int64)
        self.began = False

    def reset(self, seed: Any) -> None:
        """Begins an episode in each place.

        With a ``seed`` all that follows is determined; place i has ``seed + i``, or its own of
        a list.
        """
        places = len(self._seeds)
        if isinstance(seed, Integral):
            seeds: list[Any] = [int(seed) + place for place in range(places)]
        else:
            seeds = list(seed) if isinstance(seed, Iterable) else [seed] * places
        if len(seeds) != places:
            raise InputError("a seed each", key="seed", value=seed, allowed=f"{places} seeds")
        for place, own in enumerate(seeds):
            if own is not None or not self._draws[place]:
                self._draws[place], _ = np_random(int(own) if isinstance(own, Integral) else own)
        self.began = True
        for place in range(places):
            self._begin(place)
        self._over[:] = 0

    def step(self, actions: Any) -> NDArray[np.bool_]:
        """Lets all agents act, of each place in a row; where an episode is over the next begins.

        Returns:
            Where one has just begun, and made no step.
        """
        shape = len(self._seeds), self.width
        try:
            given = np.asarray(actions)
            if np.iscomplexobj(given) or given.shape[:1] != shape[:1]:
                raise ValueError(given.shape)
            asked = given.astype(np.float64).reshape(shape)
        except (TypeError, ValueError) as error:
            allowed = f"{math.prod(shape)} numbers of 0 … 1"
            raise InputError("no actions", key="action", value=actions, allowed=allowed) from error
        if not np.isfinite(asked).all():
            raise InputError("no number", key="action", value=actions, allowed="0 … 1")
        values = np.clip(asked, 0, 1)
        for k, each in enumerate(self._chosen):
            values[:, k] = each.values(values[:, k])
        if self._sends.any():
            windows = self._packets[self._which] * float(self._most) ** values
            values = np.where(self._sends, windows, values)
        anew = self._over.astype(bool)
        for place in np.flatnonzero(anew):
            self._begin(int(place))
        running = np.where(anew[:, None], np.nan, values)
        self._simulated.step(running, self._seen, self._over)
        self._taken.append(running)
        return anew

    @property
    def width(self) -> int:
        """How many numbers the agents of a place give in a step."""
        return len(self._chosen) or len(self._agents)

    @property
    def over(self) -> NDArray[np.bool_]:
        """Which episodes have come to their end."""
        return self._over.astype(bool)

    def seen(self, agent: int) -> Seen:
        """What the last step showed the agent of this number."""
        names = OF_SENDER if self._sends[agent] else OF_QUEUE
        told = dict(zip(names, self._seen[:, agent].T, strict=True))
        return {**told, "rate": self._rates[self._which, agent], "time": self._length}

    def scenario(self, place: int) -> Scenario:
        """The scenario that repeats the episode in ``place`` as far as it has come.

        It ends there, unless flows are still to start. Then it ends where the episode would,
        with the last actions again and again.
        """
        self._check(place)
        rows = [row[place] for row in self._taken[self._first[place] :]]
        taken = [row for row in rows if not math.isnan(row[0])]
        if not taken:
            raise InputError("no step was made yet", key="place", value=place)
        base = self._bases[self._which[place]]
        table = base.table
        end, _ = _core.quantity("duration", table["duration"])
        table["seed"] = self._seeds[place]
        whole = Scenario(table, origin=base.origin)
        if self._chosen:
            whole = self._tuned(whole, taken)
        else:
            for agent, actions in zip(self._agents, zip(*taken, strict=True), strict=True):
                _entry(table, agent)["code"] = _code(agent, self._step, [float(a) for a in actions])
            whole = Scenario(table, origin=base.origin)
        try:
            return whole.with_(duration=f"{min(len(taken) * self._step, end)}ns")
        except ScenarioError:
            return whole

    def _fitting(self, base: Scenario, named: list[str]) -> Scenario:
        """The scenario to tune, if all values fit together: where all extremes do, they do."""
        ends = [*itertools.product(*((each.low, each.high) for each in self._chosen))]
        try:
            _core.Episodes([to_text(self._tuned(base, ends))[0]], 0, self._step, named)
            return self._tuned(base, ends[:1])
        except ScenarioError as error:
            _, inside, name = (error.key or "").rpartition(".params.")
            if not inside:
                raise
            own = name in {each.name for each in self._chosen}
            raise InputError(
                error.problem if own else f"values that do not fit with {name}",
                key=f"tune.{name}" if own else "tune",
                value=error.value.strip('"') if own and error.value else None,
                allowed=error.allowed if own else f"{name}: {error.allowed}",
                hint="any values of the ranges may meet",
            ) from error

    def _tuned(self, base: Scenario, taken: Sequence[Iterable[float]]) -> Scenario:
        """The scenario whose first queue has values of the parameters in each step."""
        table = base.table
        table["queue"][0]["change"] = [
            {
                "at": f"{k * self._step}ns",
                "params": {
                    each.name: each.written(float(value))
                    for each, value in zip(self._chosen, values, strict=True)
                },
            }
            for k, values in enumerate(taken)
        ]
        return Scenario(table, origin=base.origin)

    def decision_hash(self, place: int) -> str | None:
        """The hash over all decisions of the episode in ``place`` so far."""
        self._check(place)
        return self._simulated.decision_hash(place)

    def _check(self, place: int) -> None:
        NUMBER.check("place", place, "an environment")
        if not 0 <= place < len(self._seeds):
            allowed = f"0 … {len(self._seeds) - 1}"
            raise InputError("no such place", key="place", value=place, allowed=allowed)

    def _begin(self, place: int) -> None:
        draws = self._draws[place]
        assert draws
        self._which[place] = draws.integers(len(self._bases))
        self._seeds[place] = int(draws.integers(2**31))
        self._simulated.reset(place, int(self._which[place]), self._seeds[place])
        self._seen[place] = 0
        self._first[place] = len(self._taken)
        if gone := int(self._first.min()):
            del self._taken[:gone]
            self._first -= gone


def _several(scenario: Source | Sequence[Source]) -> list[Source]:
    several = isinstance(scenario, Iterable) and not isinstance(scenario, SOURCE.types)
    sources = list(cast("Iterable[Source]", scenario if several else [scenario]))
    if not sources:
        raise InputError("nothing to simulate", key="scenario", value=scenario)
    for source in sources:
        SOURCE.check("scenario", source, "an environment")
    return sources


def _code(agent: Agent, step: int, actions: list[float]) -> str:
    """A file with the class that has the actions of an episode."""
    made = _SENDER if isinstance(agent, str) else _QUEUE
    return f"{made}\n\nSTEP = {step}\nACTIONS = {actions!r}\n"


def _entry(table: dict[str, Any], agent: Agent) -> dict[str, Any]:
    """The entry of a scenario in whose place the agent stands."""
    if isinstance(agent, int):
        found: dict[str, Any] = table["queue"][agent]
        return found
    traffic: list[dict[str, Any]] = table.get("traffic", [])
    names = [each.get("name", "flows") for each in traffic]
    if agent not in names:
        raise InputError("no such group", key="group", value=agent, allowed=", ".join(names))
    if names.count(agent) > 1:
        raise InputError("several groups of this name", key="group", value=agent, hint="name them")
    return traffic[names.index(agent)]


def _steered(source: Source, agents: Sequence[Agent]) -> Scenario:
    """The scenario with the agents in their places."""
    base = of(source, {"warmup": "0s"})
    table = base.table
    own = [each.get("aqm", "") for each in table["queue"]]
    own += [each["transport"] for each in table["traffic"] if "transport" in each]
    if any(name.startswith("python:") for name in own):
        raise InputError("an environment of classes in Python", hint="agents are the only ones")
    for k, agent in enumerate(agents):
        entry = _entry(table, agent)
        entry["transport" if isinstance(agent, str) else "aqm"] = _CLASS.format(k)
        if isinstance(agent, int):
            entry.pop("params", None)
        entry["code"] = _code(agent, 1, [1.0])
    return Scenario(table, origin=base.origin)


def _packets(base: Scenario, agents: Sequence[Agent]) -> list[float]:
    """The bytes of a packet of each agent that sends."""
    table = tomllib.loads(base.canonical)
    sizes = [_entry(table, a)["packet"] if isinstance(a, str) else "1B" for a in agents]
    return [float(_core.quantity("size", size)[0]) for size in sizes]

"""The suite: its runs, the simulations that they need, and the scorecard."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bluewater.results.store import run_key
from bluewater.study.execution.task import Task
from bluewater.study.rfc9743 import alone, beside, cells, centre, changes, queues
from bluewater.study.rfc9743.cells import Force, Reading, Run, Setting, Verdict, View
from bluewater.study.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bluewater.results.store import Store
    from bluewater.study.execution.task import Failure
    from bluewater.study.rfc9743.cells import Cell
    from bluewater.study.rfc9743.senders import Sender

NAME = "rfc9743"

TITLE = "What RFC 9743 asks of a congestion controller"

_MUST, _SHOULD, _PROSE, _OURS = Force.MUST, Force.SHOULD, Force.PROSE, Force.OURS

RUNS: Sequence[Run] = (
    Run("R01", "Collapse", "5.1.1", _PROSE, "goodput ≥ 90 %, with more flows too", alone.collapse),
    Run("R02", "All feedback lost", "5.2, 5.1.1", _MUST,
        "back-off; 80 % used again", changes.outage),
    Run("R03", "Persistent loss", "5.1.1, 5.1.3", _PROSE,
        "slower at more loss", alone.persistent_loss),
    Run("R04", "Deep buffers", "5.1.2", _PROSE, "V-queue", alone.deep_buffers),
    Run("R05", "Shallow buffers", "5.1.3", _PROSE, "V-loss, V-util", alone.shallow_buffers),
    Run("R06", "Random loss", "6.4", _PROSE, "goodput ≥ Reno's", alone.random_loss),
    Run("R07", "Its own kind", "5.1.4", _PROSE, "V-jain, V-starve", alone.own_kind),
    Run("R08", "Convergence", "5.1.4", _PROSE, "V-conv", alone.convergence),
    Run("R09", "RTT fairness", "5.1.4", _PROSE, "V-rtt, V-starve", alone.rtt_fairness),
    Run("R10", "Short flows, own kind", "5.1.5", _MUST,
        "completion ≤ 1.25 × CUBIC's", beside.short_own),
    Run("R11", "Short and long, mixed", "5.2.3", _MUST, "V-harm", beside.short_mixed),
    Run("R12", "One beside one", "5.2.1", _MUST, "V-harm, V-starve", beside.one_beside_one),
    Run("R13", "One beside many", "5.2.1", _MUST, "V-harm, V-starve", beside.one_beside_many),
    Run("R14", "Which flow is first", "5.2", _MUST, "V-starve, V-conv", beside.late),
    Run("R15", "Calls", "5.2.2", _SHOULD, "V-harm", beside.calls),
    Run("R16", "Wired, alone", "6.3", _PROSE, "V-util, V-queue, V-loss", alone.wired),
    Run("R17", "Wireless", "6.4", _PROSE, "goodput ≥ 70 %, delay", changes.wireless),
    Run("R18", "Policer", "–", _OURS, "goodput ≥ 90 %, V-loss, V-harm", beside.policer),
    Run("R19", "AQM", "7.1", _SHOULD, "delay, V-util, V-harm", queues.aqms),
    Run("R20", "Reaction to ECN", "7.1, 6.2", _SHOULD, "V-ecn", queues.reaction),
    Run("R21", "Varying delay", "7.3", _SHOULD, "V-util, spurious repairs", changes.varying_delay),
    Run("R22", "Constrained nodes", "7.4", _PROSE, "V-util, V-starve, loss", alone.constrained),
    Run("R23", "Satellite", "7.5", _PROSE, "80 % used, V-loss, transfers", alone.satellite),
    Run("R24", "High BDP", "6", _SHOULD, "80 % used, transfers", alone.large_bdp),
    Run("R25", "Reordering", "7.7", _PROSE, "goodput ≥ 70 %", alone.reordering),
    Run("R26", "Transients", "7.8", _SHOULD, "V-step, loss", changes.transients),
    Run("R27", "Path change", "7.9", _MUST, "V-step, timeouts", changes.path_change),
    Run("R28", "Data centre, way back", "7.11", _SHOULD, "V-harm, V-util", centre.data_centre),
    Run("R29", "Receivers that cheat", "7.6", _SHOULD,
        "share ≤ 1.1 × an honest one's", beside.cheats),
)  # fmt: skip

APART = 1000
"""How far the seeds of two equal scenarios of a cell are apart.

Where the candidate is what it is compared with, a run would be compared with itself.
"""

NOT_RUN: Mapping[str, tuple[str, str, Force, str]] = {
    "R30": ("Multipath", "7.10", Force.MUST, "no transport here has several paths"),
}
"""Runs of the specification that cannot be made, and why."""


@dataclass(frozen=True)
class Part:
    """A cell of a run with the keys of its simulations, for each seed."""

    run: Run
    cell: Cell
    keys: Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Plan:
    """Everything that a candidate's scorecard needs."""

    candidate: Sender
    size: str
    seeds: tuple[int, ...]
    parts: Sequence[Part]
    tasks: Sequence[Task]


@dataclass(frozen=True)
class Row:
    """A run's line of the scorecard.

    Attributes:
        readings: What was measured in each cell; means over seeds.
        decision_hash: 16 hexadecimal digits over the hashes of its simulations.
    """

    id: str
    title: str
    section: str
    force: Force
    rule: str
    readings: Sequence[Reading]
    decision_hash: str
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its readings; those without a value do not count."""
        order = (Verdict.NOT, Verdict.PARTLY, Verdict.HOLDS)
        found = {each.verdict for each in self.readings}
        return next((each for each in order if each in found), Verdict.UNJUDGED)

    @property
    def judged(self) -> list[Reading]:
        """The readings with a value."""
        return [each for each in self.readings if each.verdict is not Verdict.UNJUDGED]

    @property
    def worst(self) -> list[Reading]:
        """The worst reading of each rule, the worst rule first."""
        rules: dict[str, list[Reading]] = {}
        for each in self.judged:
            rules.setdefault(each.rule, []).append(each)
        chosen = [max(each, key=_badness) for each in rules.values()]
        return sorted(chosen, key=_badness, reverse=True)

    @property
    def counts(self) -> Counter[Verdict]:
        """How many readings have each verdict."""
        return Counter(each.verdict for each in self.judged)

    @property
    def why_not(self) -> str:
        """Why there is no verdict."""
        reasons = {each.reason: None for each in self.readings if each.reason}
        return self.reason or "; ".join(reasons)


def _badness(reading: Reading) -> tuple[int, float]:
    rank = (Verdict.HOLDS, Verdict.PARTLY, Verdict.NOT).index(reading.verdict)
    return rank, reading.beyond


@dataclass(frozen=True)
class Scorecard:
    """What became of a candidate."""

    plan: Plan
    rows: Sequence[Row]
    failures: Sequence[Failure]

    @property
    def counts(self) -> Counter[Verdict]:
        """How many runs have each verdict."""
        return Counter(row.verdict for row in self.rows)


def plan(candidate: Sender, size: str, seeds: tuple[int, ...], names: Collection[str] = ()) -> Plan:
    """Plans all simulations of the named runs, each once; of all runs without a name."""
    setting = Setting(candidate, size == "quick")
    parts: list[Part] = []
    tasks: dict[str, Task] = {}
    for run in RUNS:
        if names and run.id not in names:
            continue
        for cell in run.cells(setting):
            keys: list[dict[str, str]] = [{} for _ in seeds]
            seen: list[Mapping[str, Any]] = []
            for name, table in cell.scenarios.items():
                seen.append(_nameless(table))
                further = APART * (seen.count(seen[-1]) - 1)
                others = [seed + further for seed in seeds]
                for at, task in enumerate(_tasks(run, cell, name, table, others)):
                    tasks[task.key] = task
                    keys[at][name] = task.key
            parts.append(Part(run, cell, keys))
    return Plan(candidate, size, seeds, parts, list(tasks.values()))


def _nameless(table: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario without the names of its groups, which change nothing that happens."""
    return {**table, "traffic": [group | {"name": ""} for group in table["traffic"]]}


def _tasks(
    run: Run, cell: Cell, name: str, table: Mapping[str, Any], seeds: Sequence[int]
) -> list[Task]:
    prepared = Scenario(table, origin=f"<{NAME}>").prepared
    made = []
    for seed in seeds:
        seeded = prepared.kind.seeded
        assert seeded is not None, "a simulation has another seed without another check"
        text = seeded(prepared.canonical, seed)
        label = f"{NAME}/{run.id}, {cell.label}, {name}, seed={seed}"
        made.append(Task(run_key(text, prepared.kind.version()), text, label))
    return made


def judge(planned: Plan, store: Store, failures: Sequence[Failure] = ()) -> Scorecard:
    """Judges the runs of a plan whose simulations are in a store."""
    failed = {failure.task.key: failure for failure in failures}
    rows: list[Row] = []
    for run in {part.run.id: part.run for part in planned.parts}.values():
        readings: list[Reading] = []
        hashes: list[str] = []
        for part in planned.parts:
            if part.run.id == run.id:
                readings += _readings(part, store, failed, hashes)
        together = hashlib.sha256("".join(hashes).encode()).hexdigest()[:16] if hashes else ""
        rows.append(Row(run.id, run.title, run.section, run.force, run.rule, readings, together))
    for name, (title, section, force, reason) in NOT_RUN.items():
        rows.append(Row(name, title, section, force, "–", (), "", f"not run: {reason}"))
    return Scorecard(planned, rows, failures)


def _readings(
    part: Part, store: Store, failed: Mapping[str, Failure], hashes: list[str]
) -> list[Reading]:
    label = part.cell.label
    if part.cell.missing:
        return [replace(Reading.none("–", part.cell.missing), cell=label)]
    by_seed = []
    for keys in part.keys:
        lost = [failed[key].reason for key in keys.values() if key in failed]
        if lost:
            return [replace(Reading.none("–", f"a simulation failed: {lost[0]}"), cell=label)]
        views = {name: View(store.read(key)) for name, key in keys.items()}
        hashes += [view.result.decision_hash for view in views.values()]
        by_seed.append(list(part.cell.judge(views)))
    return [replace(cells.mean(same), cell=label) for same in zip(*by_seed, strict=True)]

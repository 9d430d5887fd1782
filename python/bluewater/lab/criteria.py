"""A congestion controller by the criteria of RFC 9743."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater._core import ScenarioError
from bluewater.errors import InputError, unknown
from bluewater.lab.making import CORES, make_all
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.rfc9743 import suite
from bluewater.study.rfc9743.senders import DEFAULT, candidate

if TYPE_CHECKING:
    from bluewater.results.store import Store
    from bluewater.study.rfc9743.suite import Plan, Scorecard

SIZES = ("full", "quick")
SEEDS = (1,)
"""The seeds if none are named."""


def planned(name: str | None, size: str, seeds: tuple[int, ...] | None) -> Plan:
    """The simulations for a candidate, by its name.

    Raises:
        InputError: There is no such controller or size, or the class cannot be used.
    """
    if size not in SIZES:
        raise unknown("size", size, SIZES, key="--size")
    chosen = candidate(DEFAULT if name is None else name)
    try:
        return suite.plan(chosen, size, seeds or SEEDS)
    except ScenarioError as error:
        raise InputError(
            error.problem, key="--candidate", value=name, allowed=error.allowed, hint=error.hint
        ) from error


def evaluate(
    plan: Plan, store: Store, jobs: int = CORES, on: str = HERE, progress: bool = True
) -> Scorecard:
    """Makes the simulations that the store lacks, and judges the runs."""
    engine(on, jobs)
    failures = make_all(plan.tasks, store, jobs, "starting", progress, on)
    return suite.judge(plan, store, failures)

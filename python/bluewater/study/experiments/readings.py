"""Unknowns of a paper, and readings that choose their values.

An experiment, or a section of a paper for all of its experiments, declares an ``[[unknown]]``: a
detail that the paper does not give, with plausible values. A ``[[reading]]`` chooses values of
unknowns and is judged beside the standard reading, which is the experiment's file as it stands.

A value or a reading sets dotted keys, as an axis of a sweep does; the axes override them. Settings
under a key ``NAME=VALUE`` apply only to cells where the axis or scenario key NAME has this value,
and override the axes. ``NAME!=VALUE`` applies where NAME has another value or is missing. " & "
joins several conditions::

    set = { "network.delay" = "10ms", "queue.0.aqm=sfb" = { "queue.0.params.increment" = 0.1 } }
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from bluewater.errors import InputError, unknown
from bluewater.results.tables import STANDARD
from bluewater.study.scenarios.sweep import Cell, assign
from bluewater.study.scenarios.typed import Table

if TYPE_CHECKING:
    from bluewater.results.tables import Label

Settings = Mapping[str, Any]


class Unknown(Table, frozen=True):
    """A detail that a paper does not give.

    Attributes:
        name: Its name.
        why: Why the values are plausible.
        values: The settings of each value, by its label.
        standard: The label of the value that the experiment's file has.
    """

    name: str
    why: str
    values: dict[str, dict[str, Any]]
    standard: str


class Reading(Table, frozen=True):
    """One choice of values for a paper's unknowns.

    Attributes:
        id: Its name; not ``standard``.
        title: Its description.
        why: Its justification.
        post_hoc: Whether it was chosen with the results in view.
        choose: The values other than the standard ones, by unknown.
        settings: Further settings, after those (``set``).
        claims: The claims it is judged for; by default all. A section names them
            ``EXPERIMENT/CLAIM``.
        axes: The points to keep of an axis (``sweep``), if an experiment has the axis.
        seeds: The number of a size's seeds to run, from the first; by default all. At least 3, so
            that its verdicts have an interval.
    """

    id: str
    title: str
    why: str
    post_hoc: bool
    choose: dict[str, str] = msgspec.field(default_factory=dict)
    settings: dict[str, Any] = msgspec.field(name="set", default_factory=dict)
    claims: tuple[str, ...] = ()
    axes: dict[str, list[Any]] = msgspec.field(name="sweep", default_factory=dict)
    seeds: Annotated[int, msgspec.Meta(ge=3)] | None = None

    def set_by(self, unknowns: Sequence[Unknown]) -> list[Settings]:
        """Its settings, in order."""
        values = {each.name: each.values for each in unknowns}
        return [*(values[name][label] for name, label in self.choose.items()), self.settings]


def check(unknowns: Sequence[Unknown], readings: Sequence[Reading], file: str) -> None:
    """Refuses duplicate names and undeclared values."""
    for what, names in (
        ("unknown", [each.name for each in unknowns]),
        ("reading", [STANDARD, *(each.id for each in readings)]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f"the name '{name}' is taken",
                    file=file,
                    key=what,
                    value=name,
                    allowed="a name that is unique in the experiment and its section",
                )
    values = {each.name: each.values for each in unknowns}
    for each in unknowns:
        if each.standard not in each.values:
            key = f"unknown.{each.name}.standard"
            raise unknown("value", each.standard, each.values, file=file, key=key)
    for reading in readings:
        for name, label in reading.choose.items():
            key = f"reading.{reading.id}.choose"
            if name not in values:
                raise unknown("name of what is open", name, values, file=file, key=key)
            if label not in values[name]:
                raise unknown("value", label, values[name], file=file, key=f"{key}.{name}")


def split(every: Sequence[Settings]) -> tuple[dict[str, Any], list[tuple[str, Settings]]]:
    """Splits settings into those of every cell and those under conditions."""
    plain: dict[str, Any] = {}
    conditional = []
    for settings in every:
        for key, value in settings.items():
            if "=" in key:
                conditional.append((key, value))
            else:
                plain[key] = value
    return plain, conditional


def apply(cell: Cell, conditional: Sequence[tuple[str, Settings]], file: str, key: str) -> Cell:
    """The cell with the conditional settings that apply to it."""
    if not conditional:
        return cell
    scenario = copy.deepcopy(dict(cell.scenario))
    for condition, settings in conditional:
        if not isinstance(settings, dict):
            raise InputError(
                "a condition without settings",
                file=file,
                key=f"{key}.{condition}",
                value=settings,
                allowed="a table of dotted keys",
            )
        if _meets(cell, scenario, condition):
            for name, value in settings.items():
                assign(scenario, name, value, file)
    return Cell(cell.axes, scenario)


def _meets(cell: Cell, scenario: Mapping[str, Any], conditions: str) -> bool:
    return all(_holds(cell, scenario, each) for each in conditions.split(" & "))


def _holds(cell: Cell, scenario: Mapping[str, Any], condition: str) -> bool:
    name, _, wanted = (part.strip() for part in condition.partition("="))
    name, other = name.removesuffix("!"), name.endswith("!")
    there = [cell.axes[name]] if name in cell.axes else _looked_up(scenario, name)
    return any(_text(value) == wanted for value in there) is not other


def _looked_up(scenario: Any, key: str) -> Iterator[Any]:
    node = scenario
    for step in key.split("."):
        if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, dict) and step in node:
            node = node[step]
        else:
            return
    yield node


def _text(value: Label) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

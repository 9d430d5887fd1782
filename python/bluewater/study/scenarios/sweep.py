"""Sweeps: a scenario with axes, and the cells of their cross product.

Three forms of an axis, all under ``[sweep]``::

    "queue.0.params.w_q" = [0.002, 0.02]                 # a key and its values
    buffer = { key = "queue.0.buffer", values = [100, 200], unit = "kB" }
    configuration.R1 = { "queue.0.aqm" = "red", "queue.0.params" = { w_q = 0.0002 } }
    configuration.B1 = { "queue.0.aqm" = "blue" }        # named variants: several keys at once

Keys are dotted; a number in one is an index into a list. With ``unit`` the values are numbers: the
scenario gets them as text with the unit, and the results keep the plain numbers. A queue discipline
may be a class; results use its name.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError, unknown
from bluewater.own import PLACES
from bluewater.study.scenarios.typed import Table, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bluewater.results.tables import Label


@dataclass(frozen=True)
class Point:
    """One value of an axis: its label in results, and its settings."""

    label: Label
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """A named axis of a sweep."""

    name: str
    points: tuple[Point, ...]
    unit: str = ""

    def keep(self, labels: Sequence[Label], file: str, table: str) -> Axis:
        """The axis with only these points, in this order; ``table`` of the file lists them."""
        by_label = {point.label: point for point in self.points}
        for label in labels:
            if label not in by_label:
                raise unknown(
                    f"value of the axis '{self.name}'", str(label), map(str, by_label), file=file,
                    key=f"{table}.{self.name}",
                )  # fmt: skip
        return replace(self, points=tuple(by_label[label] for label in labels))


@dataclass(frozen=True)
class Cell:
    """One point of the cross product: a complete scenario and its values of the axes."""

    axes: Mapping[str, Label]
    scenario: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The cell's place as text, such as ``configuration=R1, buffer=100``."""
        return ", ".join(f"{name}={value}" for name, value in self.axes.items())


def parse_axes(table: Mapping[str, Any], file: str) -> tuple[Axis, ...]:
    """Reads the ``[sweep]`` table."""
    if not isinstance(table, Mapping):
        raise InputError(
            "not axes",
            file=file,
            key="sweep",
            value=table,
            allowed="a table of axes by name",
            hint='as in {"queue.0.buffer": ["50p", "100p"]}',
        )
    return tuple(_parse_axis(name, entry, file) for name, entry in table.items())


class _Values:
    """The values of an axis with a key."""

    def __init__(self, written: Any) -> None:
        found = _values(written)
        if found is None:
            raise InputError("not an axis", value=written, allowed="a list of values")
        self.all = found


class _Keyed(Table, frozen=True):
    """An axis with a key, as written in the file."""

    key: str
    values: _Values
    unit: str | None = None


def _parse_axis(name: str, entry: Any, file: str) -> Axis:
    where: dict[str, Any] = {"file": file, "key": f"sweep.{name}"}
    if not isinstance(name, str):
        raise InputError("not the name of an axis", **where, value=name, allowed="text")
    unit = None
    if (values := _values(entry)) is not None:
        points = [Point(_label(value, where), {name: value}) for value in values]
    elif isinstance(entry, dict) and "values" in entry:
        axis = read(entry, _Keyed, file, f"sweep.{name}")
        unit = axis.unit
        points = [
            Point(_label(value, where), {axis.key: value if unit is None else f"{value}{unit}"})
            for value in axis.values.all
        ]
    elif isinstance(entry, dict) and all(isinstance(value, dict) for value in entry.values()):
        points = [Point(variant, settings) for variant, settings in entry.items()]
    else:
        raise InputError(
            "not an axis",
            **where,
            value=entry,
            allowed="a list of values, a table with key and values, or named variants",
            hint="write the values in brackets even if there is only one",
        )
    if not points:
        raise InputError("an axis without values", **where, allowed="at least one value")
    labels = [point.label for point in points]
    if len(set(labels)) != len(labels):
        raise InputError("an axis names the same value twice", **where, value=labels)
    return Axis(name, tuple(points), unit or "")


def _values(entry: Any) -> list[Any] | None:
    """The values of a list, tuple, range or array as Python values; None for anything else."""
    for listing in ("tolist", "to_list"):  # NumPy, pandas; Polars
        if hasattr(entry, listing):
            entry = getattr(entry, listing)()
            break
    if not isinstance(entry, list | tuple | range):
        return None
    return [plain(each) for each in entry]


def plain(value: Any) -> Any:
    """The value with Python numbers in place of NumPy's."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _label(value: Any, where: Mapping[str, Any]) -> Label:
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, type):
        return value.__name__
    raise InputError(
        "the value cannot be a point of an axis",
        **where,
        value=value,
        allowed="text, number or boolean",
        hint="use named variants to set lists and tables",
    )


def expand(base: Mapping[str, Any], axes: Iterable[Axis], file: str) -> Iterator[Cell]:
    """Every cell of the cross product; the last axis varies fastest."""
    axes = tuple(axes)
    for points in itertools.product(*(axis.points for axis in axes)):
        scenario = copy.deepcopy(dict(base))
        for point in points:
            for key, value in point.settings.items():
                assign(scenario, key, value, file)
        labels = {axis.name: point.label for axis, point in zip(axes, points, strict=True)}
        yield Cell(labels, scenario)


def assign(scenario: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Sets a dotted key in place; makes missing tables, but items of lists must exist."""
    if not isinstance(key, str):
        raise InputError(
            "not a key",
            file=file,
            value=key,
            key=str(key),
            allowed="dotted text, as in queue.0.buffer",
        )
    *parents, last = key.split(".")
    node: Any = scenario
    for step in parents:
        node = node.setdefault(step, {}) if isinstance(node, dict) else _item(node, step, key, file)
    if isinstance(node, dict):
        if last in PLACES:
            node.pop("code", None)  # the text of the replaced class
        node[last] = copy.deepcopy(value)
    else:
        _item(node, last, key, file)
        node[int(last)] = copy.deepcopy(value)


def _item(node: Any, step: str, key: str, file: str) -> Any:
    if not isinstance(node, list):
        raise InputError(
            f"'{step}' has a parent that is neither a table nor a list",
            file=file,
            key=key,
            value=node,
        )
    if not step.isdecimal() or int(step) >= len(node):
        raise InputError(
            f"'{step}' is not an item of this list",
            file=file,
            key=key,
            allowed=f"0 … {len(node) - 1}" if node else "nothing: the list is empty",
            hint="items are counted from 0, as in queue.0.buffer",
        )
    return node[int(step)]

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bluewater
from bluewater.errors import InputError
from bluewater.study.scenarios.sweep import assign, expand, parse_axes

BASE: dict[str, Any] = {"queue": [{"aqm": "red", "buffer": "1p"}], "duration": "1s"}


def test_three_forms_of_an_axis() -> None:
    axes = parse_axes(
        {
            "duration": ["1s", "2s"],
            "buffer": {"key": "queue.0.buffer", "values": [100, 200], "unit": "kB"},
            "kind": {"B": {"queue.0.aqm": "blue", "queue.0.params": {"ecn": True}}},
        },
        "f",
    )
    cells = list(expand(BASE, axes, "f"))
    assert len(cells) == 4
    assert cells[1].axes == {"duration": "1s", "buffer": 200, "kind": "B"}
    assert cells[1].scenario["queue"] == [
        {"aqm": "blue", "buffer": "200kB", "params": {"ecn": True}}
    ]
    assert cells[1].label == "duration=1s, buffer=200, kind=B"


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=4, unique=True), max_size=4))
def test_cross_product_has_every_combination_once(values: list[list[int]]) -> None:
    axes = parse_axes({f"k{i}": points for i, points in enumerate(values)}, "f")
    cells = [
        tuple(cell.scenario[f"k{i}"] for i in range(len(values))) for cell in expand({}, axes, "f")
    ]
    expected = 1
    for points in values:
        expected *= len(points)
    assert len(cells) == len(set(cells)) == expected
    assert cells == sorted(cells, key=lambda c: [values[i].index(v) for i, v in enumerate(c)])


def test_expansion_leaves_the_base_alone() -> None:
    before = repr(BASE)
    for cell in expand(BASE, parse_axes({"queue.0.aqm": ["blue", "red"]}, "f"), "f"):
        assert cell.scenario["queue"] is not BASE["queue"]
    assert repr(BASE) == before


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=5), st.integers())
def test_assign_reaches_any_depth(path: list[str], value: int) -> None:
    table: dict[str, Any] = {}
    assign(table, ".".join(path), value, "f")
    node: Any = table
    for step in path:
        node = node[step]
    assert node == value


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ({"a": 3}, "not an axis"),
        ({"a": []}, "without values"),
        ({"a": [1, 1]}, "same value twice"),
        ({"a": [[1]]}, "cannot be a point"),
    ],
)
def test_bad_axes_are_refused_by_name(axes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        parse_axes(axes, "f.toml")
    assert raised.value.key == "sweep.a"
    assert raised.value.file == "f.toml"


@pytest.mark.parametrize(
    ("axis", "key"),
    [
        ({"key": "x", "values": [1], "units": "s"}, "sweep.a.units"),
        ({"kye": "x", "values": [1]}, "sweep.a.kye"),
        ({"key": "x", "values": [1], "unit": 3}, "sweep.a.unit"),
        ({"key": "x", "values": "1..3"}, "sweep.a.values"),
        ({"values": [1]}, "sweep.a"),
    ],
)
def test_what_is_wrong_in_an_axis_is_named(axis: dict[str, Any], key: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_axes({"a": axis}, "f.toml")
    assert raised.value.key == key
    assert raised.value.allowed is not None


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, 3), range(1, 4), np.arange(1, 4), np.array([1, 2, 3], np.uint8),
        pl.Series([1, 2, 3]), list(np.arange(1, 4)),
    ],
    ids=lambda values: type(values).__name__,
)  # fmt: skip
def test_an_axis_may_be_any_sequence(values: Any) -> None:
    for entry in (values, {"key": "traffic.0.flows", "values": values}):
        (axis,) = parse_axes({"traffic.0.flows": entry}, "f")
        assert [point.label for point in axis.points] == [1, 2, 3]
        assert [type(point.label) for point in axis.points] == [int] * 3
        set_ = [point.settings["traffic.0.flows"] for point in axis.points]
        assert [(value, type(value)) for value in set_] == [(1, int), (2, int), (3, int)]


@pytest.mark.parametrize("values", ["123", np.array(3), {1, 2}, iter([1])])
def test_what_has_no_order_is_no_axis(values: Any) -> None:
    for entry in (values, {"key": "traffic.0.flows", "values": values}):
        with pytest.raises(InputError, match="not an axis"):
            parse_axes({"traffic.0.flows": entry}, "f")


@pytest.mark.parametrize("key", ["queue.1.aqm", "queue.x.aqm", "duration.0.x"])
def test_keys_that_lead_nowhere(key: str) -> None:
    with pytest.raises(InputError) as raised:
        list(expand(BASE, parse_axes({"a": {"key": key, "values": [1]}}, "f"), "f"))
    assert raised.value.key == key


def test_thinned_axis_keeps_the_order_asked_for() -> None:
    (axis,) = parse_axes({"a": [1, 2, 3]}, "f")
    assert [point.label for point in axis.keep([3, 1], "f", "sizes.quick.sweep").points] == [3, 1]
    with pytest.raises(InputError, match="unknown value of the axis 'a'"):
        axis.keep([4], "f", "sizes.quick.sweep")


@pytest.mark.parametrize("axes", [7, [("a", 1)], {5: [1]}, {"a": {"x": {"queue.0.aqm": object()}}}])
def test_axes_of_an_odd_type_are_refused_as_input(axes: Any, tmp_path: Path) -> None:
    base = {
        "duration": "2s",
        "network": {"preset": "dumbbell"},
        "queue": [{"aqm": "red", "buffer": "50p"}],
        "traffic": [{"transport": "sack"}],
    }
    with pytest.raises(InputError):
        bluewater.sweep(base, axes, out=tmp_path)


@pytest.mark.parametrize("queue", [{"aqm": None}, {"aqm": {"red"}}, {3: "red"}])
def test_what_no_file_can_hold_is_refused_as_input(queue: Any) -> None:
    with pytest.raises(InputError, match="no file can hold"):
        bluewater.Scenario(duration="2s", queue=[queue])


def test_numbers_of_numpy_are_numbers() -> None:
    def table(*numbers: Any) -> dict[str, Any]:
        seed, flows, probability, ecn = numbers
        queue = {"aqm": "red", "buffer": "50p", "params": {"max_p": probability, "ecn": ecn}}
        traffic = {"transport": "sack", "flows": flows}
        ends = {"network": {"preset": "dumbbell"}, "duration": "1s", "seed": seed}
        return {**ends, "queue": [queue], "traffic": [traffic]}

    own = bluewater.Scenario(table(7, 3, 0.5, True))
    numbers = (np.uint64(7), np.int64(3), np.float32(0.5), np.array(True))
    assert bluewater.Scenario(table(*numbers)) == own
    assert bluewater.run(table(*numbers)).decision_hash == bluewater.run(own).decision_hash

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import of_docs

import bluewater
from bluewater import _core
from bluewater.results.result import SIMULATED, TABLES

LAYERS = (
    {"_core", "errors", "text"},
    {"programs", "units"},
    {"handover"},
    {"results"},
    {"trace", "rates"},
    {"kinds"},
    {"study"},
    {"progress"},
    {"plots"},
    {"report"},
    {"lab"},
    {""},
    {"bench"},
    {"doctor"},
    {"cli"},
    {"__main__"},
)
"""What the package consists of: each layer imports those above it in this list, never below."""

ROOT = Path(bluewater.__file__).parent
structure = of_docs("structure")


def part(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    place = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
    own = part(path)
    assert own in place, "a new part of the package needs its place in LAYERS"
    known = structure.imported(path) & (set(place) | {each.stem for each in ROOT.iterdir()})
    wrong = {each for each in known if each != own and place[each] >= place[own]}
    assert not wrong


def test_there_is_no_circle() -> None:
    assert {"aqm", "sim", "gateway"} <= structure.crates().keys()
    for name in ("crates", "python", *structure.crates()):
        structure.layers(structure.named(name))
    with pytest.raises(ValueError, match="a circle: a → b → a"):
        structure.layers({"a": {"b"}, "b": {"a"}})


def test_arrows_that_others_imply_are_left_out() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert structure.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_the_core_gives_the_tables_that_are_declared() -> None:
    text = """
duration = "1s"
warmup = "100ms"
network.preset = "dumbbell"
[[queue]]
aqm = "red"
buffer = "100p"
[[traffic]]
transport = "sack"
"""
    raw = _core.run(text)
    assert set(raw) - {"summary", "scenario", "decision_hash", "version"} == set(SIMULATED)
    assert set(SIMULATED) < set(TABLES)

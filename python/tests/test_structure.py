from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

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


def imports(path: Path) -> set[str]:
    """The parts of the package that a file imports, anywhere in it, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "bluewater":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("bluewater."):
            found.add(str(node.module).split(".")[1])
    return found


def part(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    place = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
    own = part(path)
    assert own in place, "a new part of the package needs its place in LAYERS"
    known = imports(path) & (set(place) | {each.stem for each in ROOT.iterdir()})
    wrong = {each for each in known if each != own and place[each] >= place[own]}
    assert not wrong


def structure() -> ModuleType:
    """What draws the pictures of the site."""
    path = ROOT.parent.parent / "docs" / "structure.py"
    spec = importlib.util.spec_from_file_location("structure", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_no_circle() -> None:
    drawing = structure()
    assert {"aqm", "sim", "gateway"} <= drawing.crates().keys()
    for name in ("crates", "python", *drawing.crates()):
        drawing.layers(drawing.named(name))
    with pytest.raises(ValueError, match="a circle: a → b → a"):
        drawing.layers({"a": {"b"}, "b": {"a"}})


def test_arrows_that_others_imply_are_left_out() -> None:
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert structure().reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}


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

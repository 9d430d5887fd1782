from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import of_docs

import bluewater
from bluewater import _core
from bluewater.results.result import SIMULATED, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

LAYERS = (
    {"_core", "text"},
    {"errors"},
    {"files", "sources"},
    {"arguments", "cut", "endless", "programs", "units"},
    {"own"},
    {"aqm", "autorate", "control"},
    {"autorates"},
    {"compiled", "handover", "laws"},
    {"results"},
    {"trace", "rates"},
    {"kinds"},
    {"study"},
    {"progress"},
    {"plots"},
    {"report"},
    {"lab"},
    {""},
    {"gym"},
    {"bench"},
    {"doctor", "kernel"},
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
    modules = {each.stem for each in ROOT.iterdir()}
    # What is no module is a name of the package itself.
    parts = {way[0] if way and way[0] in modules else "" for way in structure.imported(path)}
    wrong = {each for each in parts if each != own and place[each] >= place[own]}
    assert not wrong


@pytest.mark.slow
def test_there_is_no_circle() -> None:
    assert {"aqm", "sim", "gateway"} <= structure.crates().keys()
    graphs = [structure.crates(), structure.packages()]
    folders = {path.parent.relative_to(ROOT).parts for path in ROOT.glob("*/**/*.py")}
    assert ("results",) in folders
    graphs += [structure.packages(*folder) for folder in folders]
    for crate in structure.crates():
        graphs += structure.folders(crate).values()
    for graph in graphs:
        structure.layers(graph)
    with pytest.raises(ValueError, match="a circle: a → b → a"):
        structure.layers({"a": {"b"}, "b": {"a"}})


def test_a_circle_inside_a_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "python" / "bluewater" / "results"
    folder.mkdir(parents=True)
    folder.joinpath("one.py").write_text("from bluewater.results import two\n", "utf-8")
    folder.joinpath("two.py").write_text("from .one import Name\n", "utf-8")
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    assert structure.packages() == {"results": set()}
    with pytest.raises(ValueError, match="a circle: one → two → one"):
        structure.layers(structure.packages("results"))


@pytest.fixture
def crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / "crates" / "x" / "src" / (name.replace("__", "/") + ".rs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    monkeypatch.setattr(structure, "ROOT", tmp_path)
    return write


@pytest.mark.parametrize(
    "use",
    [
        "use super::super::b::{c::{self, D}, E as F};",
        "fn f() -> super::super::b::D {}",
        "use crate::Short;",
        "use crate::{b, Short as _};",
        'fn f() {}\n#[serde(default = "crate::b::e")]\nstruct G;',
    ],
)
def test_a_name_counts_for_the_file_that_defines_it(crate: Callable[..., None], use: str) -> None:
    tests = "#[cfg(test)]\nmod tests {\n    use crate::d::X;\n}\n"
    crate(
        lib="pub mod a;\npub use b::D as Short;\n",
        a__mod="mod inner;\n",
        a__inner=f"// crate::d::X\n{use}\n{tests}",
        b__mod="pub mod c;\npub use c::D;\nstruct E;",
        b__c="pub struct D;",
        d="pub struct X;",
    )
    assert structure.modules("x") == {"a": {"b"}, "b": set(), "d": set()}
    assert structure.imports("x")[()] == set()


def test_all_names_of_a_module_may_be_given_on(crate: Callable[..., None]) -> None:
    crate(
        lib="pub mod a;\nmod d;\n",
        a__mod="mod b;\npub use b::*;\npub struct Own;",
        a__b__mod="mod c;\npub use c::C;\npub struct B;",
        a__b__c="pub struct C;",
        d="use crate::a::{B, C, Own};",
    )
    assert structure.imports("x")[("d",)] == {("a",), ("a", "b"), ("a", "b", "c")}
    assert structure.imports("x")[("a",)] == set()


def test_circles_are_seen_among_modules_of_a_folder_and_with_the_crate_itself(
    crate: Callable[..., None],
) -> None:
    crate(lib="", a__mod="", a__b="use super::c::C;", a__c="use crate::a::b::B;")
    assert structure.folders("x")[("a",)] == {"b": {"c"}, "c": {"b"}}
    crate(a__c="use super::One;", a__mod="use b::B;\nstruct One;")
    assert structure.folders("x")[("a",)] == {"b": {"c"}, "c": set()}
    crate(lib="use a::A;\nfn one() {}", a__mod="use crate::one;")
    assert structure.modules("x") == {"a": {"lib"}, "lib": {"a"}}


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
    raw = _core.Prepared(text).run()
    more = {"summary", "scenario", "decision_hash", "version", "held", "broken"}
    assert set(raw) - more == set(SIMULATED)
    assert set(SIMULATED) < set(TABLES)

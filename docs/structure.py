"""Pictures of what imports what, read from the code: crates, a crate's modules, Python's packages.

A circle is an error, so that no page can show one.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
Graph = dict[str, set[str]]
Module = tuple[str, ...]

_USE = re.compile(r"\b(pub(?:\([\w: ]+\))? )?use ([^;]+);")
_PATH = re.compile(r"(?<![\w:])[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+")
_COMMENT = re.compile(r"(?<!:)//.*")  # not what is behind `http:`
_TEST = re.compile(r"^#\[cfg\(test\)\]\n(?:[^\n{]*;|[^\n]*\{\n.*?\n\})$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"^(?:pub(?:\([\w: ]+\))? )?mod \w+ \{\n.*?\n\}$", re.DOTALL | re.MULTILINE)
_BRANCH = re.compile(r"[^,{}]+(?:\{(?:[^{}]|\{[^{}]*\})*\})?")
_DEFINED = r"\b(?:struct|enum|trait|type|union|fn|const|static)"
_STYLE = "font: 13px system-ui, sans-serif; max-width: 100%; height: auto"
_STEP, _HIGH, _GAP = 64, 28, 14  # pixels: from layer to layer, a box, between boxes


def crates() -> Graph:
    """The workspace's crates, without the tests' own."""
    graph: Graph = {}
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        needs = tomllib.loads(manifest.read_text("utf-8")).get("dependencies", {})
        graph[manifest.parent.name] = {
            name.removeprefix("bluewater-") for name in needs if name.startswith("bluewater-")
        }
    return graph


def modules(crate: str) -> Graph:
    """A crate's modules of the first level, without tests and programs."""
    return folders(crate)[()]


def folders(crate: str) -> dict[Module, Graph]:
    """How the modules in each folder use each other, each with all that is below it.

    A module and its own children are one concept and may name each other; ``lib.rs`` may not: what
    it defines for the modules below it would be a circle.
    """
    found: dict[Module, Graph] = {(): {}}
    for user, used in imports(crate).items():
        for depth, name in enumerate(user):
            found.setdefault(user[:depth], {}).setdefault(name, set())
        for other in used:
            depth = next(
                (i for i, (a, b) in enumerate(zip(user, other, strict=False)) if a != b), 0
            )
            if depth or user[:1] != other[:1]:
                a, b = ((*each, "lib")[depth] for each in (user, other))
                found.setdefault(user[:depth], {}).setdefault(a, set()).add(b)
    for graph in found.values():
        for name in set().union(*graph.values()):
            graph.setdefault(name, set())
    return found


def imports(crate: str) -> dict[Module, set[Module]]:
    """For each file of a crate, the files that define what it names; without tests and programs."""
    source = ROOT / "crates" / crate / "src"
    bodies: dict[Module, str] = {}
    names: dict[Module, dict[str, Module]] = {}
    found: dict[Module, set[Module]] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if {"tests", "bin", "lab", "main"} & set(parts):
            continue
        module = parts[:-1] if parts[-1] in {"mod", "lib"} else parts
        text = _TEST.sub("", _COMMENT.sub("", path.read_text("utf-8")))
        text = _INLINE.sub(lambda found: re.sub(r"use super::[^;]+;", "", found[0]), text)
        bodies[module] = body = _USE.sub("", text)
        branches = [
            (public, *each) for public, tree in _USE.findall(text) for each in _spread(tree)
        ]
        names[module] = {name: way for _, name, way in branches}
        found[module] = {
            way
            for public, name, way in branches
            if not public or re.search(rf"\b{re.escape(name)}\b", body)
        } | {tuple(way.split("::")) for way in _PATH.findall(body)}

    def home(module: Module, way: Module) -> Module | None:
        first, *rest = way
        if first == "crate":
            at: Module = ()
        elif first == "super":
            return home(module[:-1], ("self", *rest))
        elif first == "self":
            at = module
        elif (*module, first) in bodies:
            at, rest = module, list(way)
        elif names[module].get(first, way)[0] != first:
            return home(module, (*names[module][first], *rest))
        else:
            return None  # another crate's, or the file's own
        while rest and rest[0] == "super":
            at, rest = at[:-1], rest[1:]
        while rest and (*at, rest[0]) in bodies:
            at, rest = (*at, rest[0]), rest[1:]
        if rest and rest[0] in names[at]:
            return home(at, (*names[at][rest[0]], *rest[1:]))
        if rest and "*" in names[at] and not re.search(rf"{_DEFINED} {rest[0]}\b", bodies[at]):
            return home(at, (*names[at]["*"][:-1], *rest))
        return at

    return {
        module: {home(module, way) for way in ways} - {module, None}
        for module, ways in found.items()
    }


def _spread(tree: str) -> Iterable[tuple[str, Module]]:
    """A ``use``'s paths, each with the name that it gives."""
    start, _, rest = tree.partition("{")
    if rest:
        for branch in _BRANCH.findall(rest.rpartition("}")[0]):
            yield from _spread(start + branch.strip())
        return
    path, _, alias = tree.strip().removesuffix("::self").partition(" as ")
    way = tuple(path.split("::"))
    yield alias or way[-1], way


def packages(*inside: str) -> Graph:
    """The parts of the Python package, or of a folder ``inside`` it."""
    root = ROOT / "python" / "bluewater"
    depth = len(inside)
    graph: Graph = {}
    for path in sorted(root.joinpath(*inside).rglob("*.py")):
        own = path.relative_to(root).parts[depth].removesuffix(".py")
        if own.startswith("_"):
            continue
        ways = {way for way in imported(path) if way[:depth] == inside and len(way) > depth}
        graph.setdefault(own, set()).update(way[depth] for way in ways)
    return {name: (used & graph.keys()) - {name} for name, used in graph.items()}


def imported(path: Path) -> set[Module]:
    """What of the Python package a file imports, anywhere in it, for types too; () is all of it."""
    names = []
    folders = path.parts[len(path.parts) - 1 - path.parts[::-1].index("bluewater") : -1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = folders[: len(folders) - node.level + 1] if node.level else ()
            module = [*above, *([node.module] if node.module else [])]
            names += [".".join([*module, alias.name]) for alias in node.names]
    ways = [tuple(name.split(".")) for name in names]
    return {way[1:] for way in ways if way[0] == "bluewater"}


def layers(graph: Graph) -> list[list[str]]:
    """Users above what they use.

    Raises:
        ValueError: For a circle; the message names it.
    """
    depth: dict[str, int] = {}

    def place(name: str, way: tuple[str, ...]) -> int:
        if name in way:
            raise ValueError("a circle: " + " → ".join((*way[way.index(name) :], name)))
        if name not in depth:
            below = [place(used, (*way, name)) for used in sorted(graph[name])]
            depth[name] = max(below, default=-1) + 1
        return depth[name]

    for name in sorted(graph):
        place(name, ())
    rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for name in sorted(graph):
        rows[-1 - depth[name]].append(name)
    return rows


def reduced(graph: Graph) -> Graph:
    """Without the arrows that others imply."""

    def reach(name: str) -> set[str]:
        return set().union(*({used} | reach(used) for used in graph[name]))

    implied = {name: set().union(*map(reach, used)) for name, used in graph.items()}
    return {name: used - implied[name] for name, used in graph.items()}


def picture(graph: Graph) -> str:
    """The graph as SVG that takes the page's colours; arrows that others imply are left out."""
    rows, arrows = layers(graph), reduced(graph)
    wide = {name: 8 * len(name) + 22 for name in graph}
    total = max(sum(wide[name] + _GAP for name in row) for row in rows)
    middle: dict[str, float] = {}
    for row in rows:
        # Below the middle of those that use it.
        users = {name: [middle[m] for m in middle if name in arrows[m]] for name in row}
        row.sort(key=lambda name: sum(users[name]) / len(users[name]) if users[name] else total / 2)
        left = (total - sum(wide[name] + _GAP for name in row)) / 2
        for name in row:
            middle[name] = left + wide[name] / 2
            left += wide[name] + _GAP
    height = {name: _STEP * depth + 8 for depth, row in enumerate(rows) for name in row}
    lines = [
        f'<line x1="{middle[a]:.0f}" y1="{height[a] + _HIGH}" x2="{middle[b]:.0f}" y2="{height[b]}"'
        ' stroke="currentColor" opacity="0.35"/>'
        for a in graph
        for b in sorted(arrows[a])
    ]
    boxes = [
        f'<rect x="{middle[name] - wide[name] / 2:.0f}" y="{height[name]}" width="{wide[name]}"'
        f' height="{_HIGH}" rx="5" fill="var(--md-default-bg-color, white)" stroke="currentColor"/>'
        f'<text x="{middle[name]:.0f}" y="{height[name] + 19}" text-anchor="middle"'
        f' fill="currentColor">{escape(name)}</text>'
        for name in graph
    ]
    size = f'viewBox="0 0 {total:.0f} {_STEP * len(rows)}" width="{total:.0f}"'
    body = "".join([*lines, *boxes])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{_STYLE}" role="img">{body}</svg>'
    )


def named(name: str) -> Graph:
    """What a page asks for: ``crates``, ``python``, or a crate's name."""
    return {"crates": crates, "python": packages}.get(name, lambda: modules(name))()

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

_USE = re.compile(r"\bcrate::(?:\{(.*?)\};|(\w+))", re.DOTALL)
_COMMENT = re.compile(r"//.*")
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
    source = ROOT / "crates" / crate / "src"
    graph: Graph = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if {"tests", "bin", "lab"} & set(parts) or parts[0] in {"lib", "main"}:
            continue
        text = _COMMENT.sub("", path.read_text("utf-8").split("#[cfg(test)]\nmod tests")[0])
        graph.setdefault(parts[0], set()).update(_used(text))
    return {name: (used & graph.keys()) - {name} for name, used in graph.items()}


def _used(text: str) -> Iterable[str]:
    for several, one in _USE.findall(text):
        yield from [one] if one else re.findall(r"(?:^|,)\s*(\w+)", several)


def packages() -> Graph:
    """The parts of the Python package."""
    root = ROOT / "python" / "bluewater"
    graph: Graph = {}
    for path in sorted(root.rglob("*.py")):
        own = path.relative_to(root).parts[0].removesuffix(".py")
        if own.startswith("_"):
            continue
        graph.setdefault(own, set()).update(imported(path))
    return {name: (used & graph.keys()) - {name} for name, used in graph.items()}


def imported(path: Path) -> set[str]:
    """The parts of the Python package that a file imports, anywhere in it, for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "bluewater":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("bluewater."):
            found.add(str(node.module).split(".")[1])
    return found


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

"""The page of an exploration: how the claims of a paper depend on its unknowns."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bluewater import _core
from bluewater.plots.explore import draw_sensitivity
from bluewater.plots.files import inline_svg
from bluewater.report.page import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bluewater.study.experiments.explore import Item, Point, Search


def write_exploration(title: str, searches: Sequence[Search], folder: Path) -> Path:
    """Writes ``explore.html``, ``explore.json`` and the pictures; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [to_json(search) for search in searches]
    (folder / "explore.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    page = (
        environment()
        .get_template("explore.html.j2")
        .render(
            title=title,
            searches=[
                data | {"svg": _picture(search, folder, number), "rows": _rows(search)}
                for number, (search, data) in enumerate(zip(searches, found, strict=True), 1)
            ],
            version=_core.version(),
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )
    )
    path = folder / "explore.html"
    path.write_text(page, "utf-8")
    return path


def _picture(search: Search, folder: Path, number: int) -> str:
    stem = folder / f"sensitivity-{number}"
    draw_sensitivity(
        [item.id for item in search.items],
        [variable.name for variable in search.group.variables],
        [
            [search.sensitivity(item, variable) for variable in search.group.variables]
            for item in search.items
        ],
        stem,
    )
    return inline_svg(stem.with_name(f"{stem.name}.svg"), "Claims and what they depend on")


def _rows(search: Search) -> list[dict[str, Any]]:
    """The table of claims: values in two readings, and the points that meet the claim."""
    standard, best = search.rows[search.standard], search.rows[search.best]
    return [
        {
            "id": item.id,
            "anchor": item.experiment.id.replace("/", "-"),
            "claim": item.claim,
            "held_out": item.held_out,
            "standard": item.claim.shown(standard[item.id].estimate),
            "standard_verdict": str(standard[item.id].verdict),
            "joint": item.claim.shown(best[item.id].estimate),
            "joint_verdict": str(best[item.id].verdict),
            "where": _where(search, item),
        }
        for item in search.items
    ]


def _where(search: Search, item: Item) -> str:
    """The simplest point that meets a claim."""
    points = [point for point in search.rows if item.id in search.met(point)]
    if not points:
        return ""
    return min(points, key=lambda point: len(point.choices)).title


def to_json(search: Search) -> dict[str, Any]:
    """The results of a search, as JSON."""
    variables = search.group.variables
    return {
        "group": search.group.title,
        "experiments": [each.id for each in search.group.experiments],
        "size": search.size,
        "seeds": sorted({s for e in search.group.experiments for s in search.sized(e).seeds}),
        "unknowns": [
            {
                "name": each.name,
                "why": each.unknown.why,
                "standard": each.unknown.standard,
                "values": list(each.unknown.values),
            }
            for each in variables
        ],
        "tried": len(search.rows),
        "possible": search.group.possible,
        "failed": len(search.failed),
        "claims": len(search.items),
        "held_out": len(search.unseen),
        "standard": _score(search, search.standard),
        "joint": _score(search, search.best),
        "joint_of_all": _score(search, search.ranked(search.items)[0]),
        "some": len(search.some),
        "stated": [
            {"name": name} | _score(search, point)
            for name, point in search.stated.items()
            if point in search.rows
        ],
        "cover": [{"reading": point.title, "met_so_far": count} for point, count in search.cover],
        "never": [item.id for item in search.items if item.id not in search.some],
        "by_claim": [
            {
                "id": item.id,
                "origin": item.claim.origin,
                "held_out": item.held_out,
                "standard": str(search.rows[search.standard][item.id].verdict),
                "joint": str(search.rows[search.best][item.id].verdict),
                "some": item.id in search.some,
                "met_at": _where(search, item) or None,
                "sensitivity": {each.name: search.sensitivity(item, each) for each in variables},
                "met_alone_with": {each.name: search.alone(item, each) for each in variables},
            }
            for item in search.items
        ],
        "points": [
            {
                "reading": point.title,
                "choices": dict(point.choices),
                "met": sorted(search.met(point)),
                "values": {
                    key: found.estimate.mean if found.estimate else None
                    for key, found in row.items()
                },
            }
            for point, row in search.rows.items()
        ],
    }


def _score(search: Search, point: Point) -> dict[str, Any]:
    return {
        "reading": point.title,
        "choices": dict(point.choices),
        "met": len(search.met(point)),
        "met_searched": len(search.met(point, search.seen)),
        "met_held_out": len(search.met(point, search.unseen)),
    }

"""What a plot shows, as written under ``[[plot]]`` of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bluewater.errors import unknown
from bluewater.keys import check_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("spread", "trace", "scatter", "bars")
Sharing: TypeAlias = Literal["all", "row", "none"]
SHARING: tuple[Sharing, ...] = ("all", "row", "none")
SCALES = ("linear", "log", "symlog")


@dataclass(frozen=True)
class Scale:
    """An axis of a plot: its label with the unit, its scale, and its ends if they are fixed.

    ``linear_below`` is where a ``symlog`` axis turns linear.
    """

    label: str = ""
    scale: str = "linear"
    low: float | None = None
    high: float | None = None
    linear_below: float = 1.0

    @classmethod
    def parse(cls, table: Mapping[str, Any], key: str, file: str) -> Scale:
        """Reads ``x`` or ``y``."""
        check_keys(table, {"label"}, {"scale", "low", "high", "linear_below"}, key, file)
        scale = cls(**table)
        if scale.scale not in SCALES:
            raise unknown("scale", str(scale.scale), SCALES, file=file, key=f"{key}.scale")
        return scale


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its query gives ``x``, ``y`` and, if wanted, ``line`` and ``seed``."""

    title: str
    sql: str
    y: Scale | None = None


@dataclass(frozen=True)
class Plot:
    """A figure of one or more panels.

    Attributes:
        kind: ``spread`` draws the mean over seeds with a band from the least to the greatest,
            ``trace`` joins the first seed's points as they are, ``scatter`` shows them alone,
            ``bars`` draws a group of bars per x.
        columns: Panels in a row.
        share_y: Which panels have the same y axis: ``all``, ``row`` or ``none``.
    """

    id: str
    title: str
    caption: str
    kind: str
    x: Scale
    y: Scale
    columns: int
    share_y: Sharing
    panels: tuple[Panel, ...]

    @classmethod
    def parse(cls, table: Mapping[str, Any], file: str) -> Plot:
        """Reads one ``[[plot]]``."""
        check_keys(
            table,
            {"id", "title", "caption", "kind", "x", "y", "panel"},
            {"columns", "share_y"},
            "plot",
            file,
        )
        key = f"plot.{table['id']}"
        if table["kind"] not in KINDS:
            raise unknown("kind of plot", str(table["kind"]), KINDS, file=file, key=f"{key}.kind")
        share_y = table.get("share_y", "none" if table["kind"] == "trace" else "all")
        if share_y not in SHARING:
            raise unknown("sharing", str(share_y), SHARING, file=file, key=f"{key}.share_y")
        panels = []
        for panel in table["panel"]:
            check_keys(panel, {"title", "sql"}, {"y"}, f"{key}.panel", file)
            y = Scale.parse(panel["y"], f"{key}.panel.y", file) if "y" in panel else None
            panels.append(Panel(panel["title"], panel["sql"], y))
        return cls(
            id=table["id"],
            title=table["title"],
            caption=table["caption"],
            kind=table["kind"],
            x=Scale.parse(table["x"], f"{key}.x", file),
            y=Scale.parse(table["y"], f"{key}.y", file),
            columns=table.get("columns", min(len(panels), 2)),
            share_y=share_y,
            panels=tuple(panels),
        )

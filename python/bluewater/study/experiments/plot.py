"""Plots, as written under ``[[plot]]`` of an experiment."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from bluewater.errors import InputError
from bluewater.study.scenarios.typed import Table

Kind: TypeAlias = Literal["spread", "trace", "scatter", "bars"]
Sharing: TypeAlias = Literal["all", "row", "none"]


class Scale(Table, frozen=True, kw_only=False):
    """An axis of a plot: its label with the unit, its scale, and its ends if they are fixed.

    ``linear_below`` is where a ``symlog`` axis turns linear.
    """

    label: str
    scale: Literal["linear", "log", "symlog"] = "linear"
    low: float | None = None
    high: float | None = None
    linear_below: float = 1.0

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise InputError("not the range of an axis", value=self.low, allowed="low below high")
        ends = (end for end in (self.low, self.high) if end is not None)
        if self.scale == "log" and any(end <= 0 for end in ends):
            raise InputError("not an end of a log axis", value=self.low, allowed="ends above 0")


class Panel(Table, frozen=True):
    """One pair of axes: its query gives ``x``, ``y`` and, if wanted, ``line`` and ``seed``."""

    title: str
    sql: str
    y: Scale | None = None


class Plot(Table, frozen=True):
    """A figure of one or more panels.

    Attributes:
        kind: ``spread`` draws the mean over seeds with a band from the least to the greatest,
            ``trace`` joins the first seed's points as they are, ``scatter`` shows them alone,
            ``bars`` draws a group of bars per x.
        columns: Panels in a row; by default two.
        share_y: Which panels share a y axis; by default none for a ``trace``, else all.
        reading: The reading whose runs it shows, or ``all``.
        panels: ``[[plot.panel]]``.
    """

    id: str
    title: str
    caption: str
    kind: Kind
    x: Scale
    y: Scale
    panels: Annotated[tuple[Panel, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="panel")
    columns: Annotated[int, msgspec.Meta(ge=1, le=4)] | None = None
    share_y: Sharing | None = None
    reading: str = "standard"

    @property
    def in_a_row(self) -> int:
        """Panels in a row."""
        return self.columns or min(len(self.panels), 2)

    @property
    def sharing(self) -> Sharing:
        """Which panels share a y axis."""
        return self.share_y or ("none" if self.kind == "trace" else "all")

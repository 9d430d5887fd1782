"""The names of an experiment: each is there once, and what is referred to is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.errors import InputError, unknown
from bluewater.results import aggregate
from bluewater.results.tables import COLUMNS, RESERVED, STANDARD
from bluewater.study import readings

if TYPE_CHECKING:
    from bluewater.study.claims import Claim
    from bluewater.study.experiment import Experiment


def check_names(made: Experiment) -> None:
    """Refuses names that come twice, names that are taken, and names of what is not there."""
    readings.check(made.unknowns, made.readings, made.file)
    claims = [claim.id for claim in made.claims]
    for claim in claims:
        if claims.count(claim) > 1:
            raise InputError("two claims of one name", file=made.file, key="claim", value=claim)
    named = [(f"reading.{each.id}.claims", each.claims) for each in made.readings]
    named += [(f"sizes.{each.name}.needs_full", each.needs_full) for each in made.sizes.values()]
    for key, ids in named:
        for claim in ids:
            if claim not in claims:
                raise unknown("claim", claim, claims, file=made.file, key=key)
    there = ["all", STANDARD, *(each.id for each in made.readings)]
    for kind, shown in (("plot", made.plots), ("table", made.sheets)):
        for each in shown:
            if each.reading not in there:
                key = f"{kind}.{each.id}.reading"
                raise unknown("reading", each.reading, there, file=made.file, key=key)
    places = [plot.id for plot in made.plots] + [sheet.id for sheet in made.sheets]
    for name in places:
        if places.count(name) > 1:
            raise InputError(
                "two plots or tables of one name",
                file=made.file,
                key=f"plot.{name}",
                allowed="a name of its own, which its files have",
            )
    for stated in made.claims:
        _check_shown(stated, made)
    _check_columns(made)


def _check_columns(made: Experiment) -> None:
    """Refuses views and axes whose names the results use themselves."""
    for name in made.views:
        if name in RESERVED or not name.isidentifier():
            raise InputError(
                "a view cannot be called so",
                file=made.file,
                key=f"view.{name}",
                allowed=f"a word of letters, digits and _ that is none of {', '.join(RESERVED)}",
            )
    for axis in made.axes:
        if axis.name in COLUMNS or axis.name in aggregate.COLUMNS:
            raise InputError(
                "a name that the results use themselves",
                file=made.file,
                key=f"sweep.{axis.name}",
                allowed="an axis of another name",
                hint=f'as in {axis.name}_set = {{ key = "…", values = […] }}',
            )
    _check_kept(made)


def _check_kept(made: Experiment) -> None:
    """Refuses readings that keep points of an axis that is not there; a section's may."""
    joint = {each.id for each in made.section.readings} if made.section else set()
    axes = [axis.name for axis in made.axes]
    for each in made.readings:
        for name in each.axes:
            if name not in axes and each.id not in joint:
                key = f"reading.{each.id}.sweep.{name}"
                raise unknown("axis", name, axes, file=made.file, key=key)


def _check_shown(claim: Claim, made: Experiment) -> None:
    """Refuses a claim that is shown in a plot or a panel that is not there."""
    plots = {plot.id: plot for plot in made.plots}
    key = f"claim.{claim.id}"
    there = plots if claim.drawn else [*plots, *(sheet.id for sheet in made.sheets)]
    if (claim.plot or claim.drawn) and claim.plot not in there:
        raise unknown("plot", claim.plot, there, file=made.file, key=f"{key}.plot")
    if claim.drawn is None:
        return
    titles = [panel.title for panel in plots[claim.plot].panels]
    if claim.drawn.panel and claim.drawn.panel not in titles:
        name = claim.drawn.panel
        raise unknown("panel", name, titles, file=made.file, key=f"{key}.drawn.panel")

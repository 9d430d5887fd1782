"""The scorecard of a suite: each discipline beside a baseline, over all tests of all experiments.

An experiment takes part if it has a view ``score``. The suite names its baseline as ``scorecard``
in ``paper.toml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bluewater.study.experiments.paper import SCORE
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.study.experiments.reproduce import Outcome

KEPT = 0.95
"""A better discipline keeps at least this share of the baseline's goodput."""


def score(outcome: Outcome) -> pl.DataFrame | None:
    """An experiment's rows of its suite's scorecard; ``None`` if it takes no part."""
    if "score" not in outcome.experiment.views or not outcome.tables.entries:
        return None
    found = outcome.tables.query(
        "SELECT * FROM score", SCORE, "view.score", outcome.experiment.file
    )
    return found.select(SCORE)


def scorecard(scores: Sequence[pl.DataFrame], baseline: str) -> pl.DataFrame:
    """The scorecard: a row per discipline, best first; number of tests won, then each test.

    A discipline wins a test (✓) with a lower delay and at least :data:`KEPT` of the goodput. A cell
    has delay and goodput relative to the baseline's, means over seeds.
    """
    if not scores:
        return pl.DataFrame()
    means = (
        pl.concat(scores, how="vertical_relaxed")
        .group_by("discipline", "test")
        .agg(pl.col("delay_s", "goodput_bps").mean())
    )
    base = means.filter(pl.col("discipline") == baseline).drop("discipline")
    beside = (
        means.filter(pl.col("discipline") != baseline)
        .join(base, on="test", suffix="_base")
        .select(
            "discipline",
            "test",
            delay=pl.col("delay_s") / pl.col("delay_s_base"),
            goodput=pl.col("goodput_bps") / pl.col("goodput_bps_base"),
        )
        .with_columns(better=(pl.col("delay") < 1) & (pl.col("goodput") >= KEPT))
    )
    tests = sorted(beside["test"].unique(), key=lambda test: (len(test), test))
    order = (
        beside.group_by("discipline")
        .agg(pl.col("better").sum(), pl.col("delay").log().mean())
        .sort(["better", "delay", "discipline"], descending=[True, False, False])
    )
    shown = {(row["discipline"], row["test"]): _cell(row) for row in beside.iter_rows(named=True)}
    return pl.DataFrame(
        [
            {"discipline": name, f"better, of {len(tests)}": better}
            | {test: shown.get((name, test), "–") for test in tests}
            for name, better, _ in order.iter_rows()
        ]
    )


def _cell(row: dict[str, object]) -> str:
    told = f"{number(row['delay'], 2)} · {number(row['goodput'], 2)}"  # type: ignore[arg-type]
    return f"✓ {told}" if row["better"] else told

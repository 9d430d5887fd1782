from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bluewater.errors import InputError
from bluewater.results.stats import estimate, t95
from bluewater.results.store import Store
from bluewater.results.tables import Entry, Frames, Tables
from bluewater.study.experiments.claims import (
    AS_WRITTEN,
    Bound,
    Claim,
    Finding,
    Verdict,
    decide,
    judge,
)
from bluewater.study.experiments.experiment import load
from bluewater.study.scenarios.typed import read


class Synthetic(Tables):
    """Tables made by hand."""

    def __init__(self, runs: pl.DataFrame) -> None:
        super().__init__([Entry({}, seed, "") for seed in runs["seed"]], Store(Path()))
        self.__dict__["runs"] = runs

    @property
    def present(self) -> list[str]:
        """None beside the runs."""
        return []


def find(values: Sequence[float | None], **claim: Any) -> Finding:
    runs = pl.DataFrame({"seed": range(len(values)), "loss": values}, strict=False)
    table = {
        "id": "a", "text": "t", "paper": "p", "holds": "<= 1",
        "measure": "SELECT seed, loss AS value FROM runs", **claim,
    }  # fmt: skip
    return judge(read(table, Claim, "f", "claim.a"), Synthetic(runs), "f")


@pytest.mark.parametrize(
    ("values", "verdict", "provisional"),
    [
        ([0.5, 0.5, 0.5], Verdict.REPRODUCED, False),
        ([0.1, 0.9, 1.5], Verdict.PARTLY, False),  # the mean holds, its interval does not
        ([1.5, 1.5, 1.5], Verdict.PARTLY, False),  # within the wider bound
        ([3.0, 3.0, 3.0], Verdict.NOT_REPRODUCED, False),
        ([0.5], Verdict.REPRODUCED, True),
        ([0.1, 1.8], Verdict.REPRODUCED, True),  # two seeds: the mean alone
        ([0.5, None, 0.5], Verdict.NOT_REPRODUCED, False),
        ([0.5, math.nan, 0.5], Verdict.NOT_REPRODUCED, False),
        ([0.5, math.inf, 0.5], Verdict.NOT_REPRODUCED, False),
    ],
)
def test_verdicts(values: list[float | None], verdict: Verdict, provisional: bool) -> None:
    finding = find(values, partly="<= 2")
    assert finding.verdict is verdict
    assert finding.provisional is provisional
    assert (finding.measured is None) == any(v is None or not math.isfinite(v) for v in values)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=8), st.floats(-1e6, 1e6))
def test_verdict_never_improves_as_the_bound_tightens(values: list[float], limit: float) -> None:
    order = [Verdict.REPRODUCED, Verdict.PARTLY, Verdict.NOT_REPRODUCED]
    measured = estimate(values)
    loose = decide(measured, Bound(f"<= {limit + 1:.6f}"), None)
    tight = decide(measured, Bound(f"<= {limit:.6f}"), None)
    assert order.index(tight) >= order.index(loose)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("<= 0.01", [0.01, -5], [0.011]),
        ("< 0", [-1e-9], [0]),
        (">= 6", [6, 1e9], [5.99]),
        ("> 1e-3", [0.002], [0.001]),
        ("between -0.1 and 0.3", [-0.1, 0.3], [0.31, -0.11]),
    ],
)
def test_bounds(text: str, inside: list[float], outside: list[float]) -> None:
    bound = Bound(text)
    assert all(bound.holds(value) for value in inside)
    assert not any(bound.holds(value) for value in outside)


@pytest.mark.parametrize(
    "text", ["", "0.1", "= 3", "<= x", "between 1", "<= 1 and >= 0", "<= .", 5, None]
)
def test_bad_bounds_are_refused(text: object) -> None:
    with pytest.raises(InputError, match="not a bound") as raised:
        find([0.5], holds=text)
    assert raised.value.key == "claim.a.holds"
    assert raised.value.value == text
    assert "<= x" in str(raised.value.allowed)


def test_a_bound_that_no_number_meets_is_refused() -> None:
    with pytest.raises(InputError, match="no number meets") as raised:
        find([0.5], holds="between 3 and 1")
    assert raised.value.key == "claim.a.holds"


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"measure": "SELECT seed FROM runs"}, "no column value"),
        ({"measure": "SELECT seed, lost AS value FROM runs"}, "query fails"),
        ({"measure": "SELEKT"}, "query fails"),
        ({"measure": "SELECT 1 AS seed, loss AS value FROM runs"}, "more than one row per seed"),
        ({"verdict": "reproduced"}, "unknown key 'verdict'"),
    ],
)
def test_bad_claims_are_refused(claim: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        find([0.5, 0.5], **claim)
    assert str(raised.value.key).startswith("claim.a")


def test_each_claim_of_a_paper_says_where_its_bound_comes_from() -> None:
    # A bound that says nothing is as it was first written; one that is ours says so already.
    assert find([0.5]).claim.basis == AS_WRITTEN
    assert find([0.5], bound="the paper's words").claim.basis == "the paper's words"
    assert find([0.5], origin="ours").claim.basis == ""


def test_a_missing_key_is_named() -> None:
    with pytest.raises(InputError, match="'holds' is missing"):
        read({"id": "a", "text": "t", "paper": "p", "measure": "m"}, Claim, "f")


def test_interval_is_students() -> None:
    # Mean 3, standard deviation √2.5, n = 5: 2.776 · √2.5 / √5.
    measured = estimate([1, 2, 3, 4, 5])
    assert measured.mean == 3
    assert measured.half_width == pytest.approx(1.9629, abs=1e-4)
    assert estimate([4.2]).half_width is None
    assert t95(1) == 12.706
    assert t95(60) == pytest.approx(2.0003, abs=2e-3)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1.0 * small / large", 1e-9),
        ("100. * small / large", 1e-7),
        (".5 * small / large /* 1.5 */", 5e-10),
        ("CASE WHEN '1.5' = '1.5e0' THEN 1.0 ELSE 0.0 END -- it's 1.5", 0.0),
        ("1.5e1 * small", 15.0),
    ],
)
def test_numbers_of_a_query_are_floats(expression: str, value: float) -> None:
    # As decimals, which they are to Polars, quotients have seven places.
    table = pl.DataFrame({"small": [1], "large": [10**9]})
    sql = f"SELECT {expression}\n AS value FROM runs"
    found = Frames({"runs": table}).query(sql, ["value"], "measure", "my.toml")
    assert found["value"].to_list() == [pytest.approx(value, rel=1e-12)]


@pytest.mark.parametrize(
    ("bound", "mean", "half", "shown"),
    [
        (">= 99", 99.33213, 0.31955, "99.33 ± 0.32 %"),  # 99.3 - 0.32 is below 99
        ("between 16.115 and 16.125", 16.12405, None, "16.12 %"),  # 16.1 is outside
        ("<= 1", 1.012404, 0.012078, "1.0124 ± 0.01208 %"),  # 1.01 - 0.012 is below 1
        ("< 1", 0.9996, 0.0002, "0.9996 ± 0.0002 %"),  # 1.00 is not below 1
        ("<= 10", 3.14159, 0.271828, "3.14 ± 0.27 %"),
        ("> 0", None, None, "no value"),
    ],
)
def test_a_value_has_the_digits_that_its_bound_needs(
    bound: str, mean: float | None, half: float | None, shown: str
) -> None:
    assert Bound(bound).beside(mean, half, "%") == shown


AT = range(180)
RANDOM = Random(1)
COIN = [RANDOM.random() < 0.4 for _ in AT]
NEVER, ALWAYS = [False] * 180, [True] * 180
SERIES = {
    "in turn": ([i % 7 in (0, 1) for i in AT], [i % 7 in (3, 4, 5) for i in AT]),
    "losses alone": ([RANDOM.random() < 0.7 for _ in AT], NEVER),
    "idleness alone": (NEVER, COIN),
    "both throughout": (ALWAYS, ALWAYS),
    "both in the same intervals": (COIN, COIN),
    "either, at random": (COIN, [not each for each in COIN]),
    "each at random": ([RANDOM.random() < 0.3 for _ in AT], COIN),
    "losses for half of the time, then idleness": ([i < 90 for i in AT], [i >= 90 for i in AT]),
}
"""In which intervals of 100 ms packets were lost, and in which the link was idle."""


@pytest.mark.parametrize("name", ["feng/fig6-8", "report/fig2-5"])
@pytest.mark.parametrize("kind", SERIES)
def test_only_periods_in_turn_count_as_alternation(name: str, kind: str) -> None:
    of = load(name)
    holds = next(claim.holds for claim in of.claims if claim.id == "a2")
    lost, idle = SERIES[kind]
    steps = pl.DataFrame(
        {
            "seed": 1,
            "configuration": "R2",
            "step": 0.0,
            "since_s": [2.05 + 0.1 * i for i in AT],
            "time_s": [2.1 + 0.1 * i for i in AT],
            "drops": [3 * each for each in lost],
            "idle_s": [0.05 * each for each in idle],
        }
    )
    found = Frames({"steps": steps}).query(of.views["alternation"], ("follows",), "key", "file")
    assert holds.holds(found["follows"].item()) == (kind == "in turn"), found

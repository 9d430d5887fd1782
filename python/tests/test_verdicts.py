"""The verdicts of the full size are kept, and stand beside what a smaller size says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from conftest import TINY, Cli

from bluewater.report import write_report
from bluewater.results.store import Store
from bluewater.study.experiments import experiment, verdicts
from bluewater.study.experiments.claims import Verdict
from bluewater.study.experiments.reproduce import Plan, reproduce

CLAIM = """
[[claim]]
id = "a"
text = "Twenty flows."
paper = "p"
measure = "SELECT seed, CAST(AVG(flows) AS DOUBLE) AS value FROM runs GROUP BY seed"
holds = "<= 20"
[sizes.quick]
seeds = [1]
needs_full = ["a"]
"""

PAPER = """
title = "A paper"
cite = "Me26"
source = "me"
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of a paper, its full size made and kept."""
    folder = tmp_path / "experiments"
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(folder))
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "one.toml").write_text(TINY + CLAIM)
    (folder / "mine" / "paper.toml").write_text(PAPER)
    made = experiment.load("mine/one")
    plan = Plan.of([(made, made.size("full"))])
    write_report(reproduce(plan, Store(tmp_path / "runs"), 1), tmp_path / "report")
    found = verdicts.gather(tmp_path / "report", "core", "2026-11-28")
    (folder / verdicts.FILE).write_bytes(msgspec.json.encode(found))
    verdicts._read.cache_clear()
    return folder


def test_what_is_kept_is_what_the_full_size_said(mine: Path) -> None:
    held = verdicts.kept()
    assert (held.core, held.date) == ("core", "2026-11-28")
    assert held.table == (("Me26", (1, 1, 0, 0, 0, 0, 0, 1, 1)),)
    (claim,) = experiment.load("mine/one").claims
    found = held.of("mine/one", claim)
    assert found is not None
    assert (found.verdict, found.value, found.told) == ("reproduced", 20.0, "reproduced")
    assert held.rows({"Me26"}) == list(held.table)
    assert held.rows({"You26"}) == []


def test_a_verdict_on_another_bound_is_none(mine: Path) -> None:
    path = mine / "mine" / "one.toml"
    path.write_text(path.read_text().replace('"<= 20"', '"<= 19"'))
    (claim,) = experiment.load("mine/one").claims
    assert verdicts.kept().of("mine/one", claim) is None


def test_what_a_file_says_now_is_judged_without_runs(mine: Path) -> None:
    path = mine / "mine" / "one.toml"
    path.write_text(path.read_text().replace('"<= 20"', '"<= 20"\nfitted = "Chosen by 20."'))
    found = verdicts.merged(verdicts.kept(), verdicts.NONE)
    assert found.claims["mine/one a"].told == "reproduced, fitted"
    assert found.table == (("Me26", (1, 0, 0, 0, 1, 0, 0, 1, 1)),)
    assert found.core == "core"
    path.write_text(path.read_text().replace('"<= 20"', '"<= 19"'))
    assert not verdicts.merged(verdicts.kept(), verdicts.NONE).claims, "this bound needs runs"


def test_runs_take_the_place_of_what_is_kept(mine: Path, tmp_path: Path) -> None:
    again = verdicts.gather(tmp_path / "report", "another", "2026-11-29")
    found = verdicts.merged(verdicts.kept(), again)
    assert (found.core, found.date) == ("core, another", "2026-11-29")
    assert found.claims == again.claims


def test_a_small_size_shows_what_the_full_one_said(mine: Path, cli: Cli) -> None:
    found = cli("reproduce", "mine/one", "--quick")
    assert found.exit_code == 0
    words = " ".join(found.stdout.split())
    assert "needs full size; there: reproduced, 20" in words
    assert "All claims at full size, 2026-11-28" in words
    page = " ".join(re.sub(r"<[^>]*>", " ", (cli.out / "report.html").read_text("utf-8")).split())
    assert "full size: reproduced, 20" in page
    assert "Full size, 2026-11-28, core core." in page


def test_the_verdicts_of_the_package_are_those_of_its_experiments() -> None:
    """A claim that was added or whose bound moved has no verdict until `make verdicts`."""
    held = verdicts.kept()
    there = {
        f"{name} {claim.id}": claim
        for name in experiment.known()
        for claim in experiment.load(name).claims
    }
    suites = experiment.suites()
    missing = {
        name
        for name, claim in there.items()
        if name.partition("/")[0] not in suites and held.of(name.split()[0], claim) is None
    }
    # On real packets, which not every machine allows.
    assert {name.split()[0] for name in missing} <= {"feng/fig13", "beyond/testbed"}
    assert held.claims.keys() <= there.keys()
    assert all(Verdict(each.verdict) is not Verdict.NEEDS_FULL for each in held.claims.values())
    assert verdicts.judged(held) == held, "run `scripts/verdicts.py --keep`"


FORMER = {"feng": "fig14", "report": "text-alone"}
"""The standard readings of before, of papers where another took their place."""


def test_what_holds_only_since_the_standard_reading_changed_is_fitted() -> None:
    for name, found in verdicts.kept().claims.items():
        before = found.readings.get(FORMER.get(name.partition("/")[0], ""), "reproduced")
        if found.verdict == Verdict.REPRODUCED and found.origin == "paper":
            assert before == "reproduced" or found.fitted, name

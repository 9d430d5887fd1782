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
    assert held.table == (("Me26", (1, 1, 1, 1, 1, 0, 0)),)
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
    for name, found in held.claims.items():
        claim = there[name]
        assert Verdict(found.verdict) is not Verdict.NEEDS_FULL
        assert not found.fitted or claim.fitted, name

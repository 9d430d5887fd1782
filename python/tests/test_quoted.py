"""What the texts quote of our own runs stands there, and can be asked of the runs."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bluewater.study.experiments import experiment
from bluewater.study.experiments.experiment import Experiment

SCRIPT = Path(__file__).parents[2] / "scripts" / "quoted.py"


def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("quoted", SCRIPT)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules["quoted"] = made
    found.loader.exec_module(made)
    return made


quotes = script()
EVERY = quotes.every()


@cache
def loaded(name: str) -> Experiment:
    return experiment.load(name)


@pytest.mark.parametrize("quoted", EVERY, ids=lambda each: f"{each.at} {each.where}: {each.says}")
def test_a_quoted_number_stands_in_its_text(quoted: Any) -> None:
    of = loaded(quoted.at)
    assert quoted.says in quotes.text(of, quoted.where)


@pytest.mark.parametrize("quoted", EVERY, ids=lambda each: f"{each.at} {each.where}: {each.says}")
def test_its_query_can_be_asked(quoted: Any) -> None:
    quotes.try_query(quoted)


def test_a_number_that_differs_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def told(*_: object) -> str:
        return "another"

    monkeypatch.setattr(quotes, "told", told)
    monkeypatch.setattr(quotes, "every", lambda: EVERY[:1])
    monkeypatch.setattr(quotes.Store, "__contains__", lambda *_: True)
    monkeypatch.setattr(experiment.Experiment, "try_queries", lambda *_: set())
    (line,) = quotes.differing(tmp_path)
    assert EVERY[0].says in line
    assert "another" in line


def test_without_any_runs_nothing_is_confirmed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(quotes, "every", lambda: EVERY[:1])
    (line,) = quotes.differing(tmp_path)
    assert "no runs of this version" in line


def test_a_reading_without_runs_is_told() -> None:
    quoted = next(each for each in EVERY if each.reading != "standard")
    of = experiment.load(quoted.runs or quoted.at)
    entries = [e for _, e in of.plan(of.size("quick")) if e.reading == "standard"]
    tables = quotes.Tables(entries, quotes.Store(Path()), of.views)
    assert f"none of the reading {quoted.reading}" in quotes.told(quoted, of, tables)

"""Bars in a notebook, which need nothing beside Jupyter."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import SWEEP
from rich.console import Console

import bluewater
from bluewater import progress


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What a notebook's cell shows, by the place where it stands."""
    shown: dict[str, list[str]] = {}

    def display(data: dict[str, str], *, raw: bool, display_id: str) -> None:
        assert raw
        shown.setdefault(display_id, []).append(data["text/plain"])

    made: Any = ModuleType("IPython.display")
    made.display = made.update_display = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", made)
    monkeypatch.setattr(progress, "notes", Console(stderr=True, force_jupyter=True))
    monkeypatch.setattr(progress, "_DRAWN_S", 0)
    return shown


def test_a_notebook_shows_a_bar(cell: dict[str, list[str]], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as Rich warns where it lacks a package
        bluewater.sweep(SWEEP, seeds=[1, 2], jobs=1, out=tmp_path)
    (lines,) = cell.values()
    assert "  0 %  0 of 8 runs" in lines[0]
    assert any("  50 %  4 of 8 runs  " in line and " s left" in line for line in lines)
    assert any("100 %  8 of 8 runs" in line for line in lines)
    assert lines[-1] == ""


def test_a_notebook_shows_none_that_is_not_wanted(
    cell: dict[str, list[str]], tmp_path: Path
) -> None:
    bluewater.sweep(SWEEP, jobs=1, out=tmp_path, progress=False)
    assert not cell
    bluewater.sweep(SWEEP, jobs=1, out=tmp_path)  # everything is there
    assert all(lines[-1] == "" for lines in cell.values())

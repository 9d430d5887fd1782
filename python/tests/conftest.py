from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from typer.testing import CliRunner, Result

from bluewater.cli import app

if TYPE_CHECKING:
    from collections.abc import Generator

settings.register_profile("fast", max_examples=50, deadline=None)
settings.register_profile("slow", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything is to be tried, what is skipped fails."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI=1 does not allow: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself is no exception."""
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI=1 does not allow: {report.longrepr}"
    return report


DOCS = Path(__file__).parents[2] / "docs"


def of_docs(name: str) -> ModuleType:
    """A module of the documentation's folder, found as MkDocs finds it."""
    if str(DOCS) not in sys.path:
        sys.path.insert(0, str(DOCS))
    return importlib.import_module(name)


TINY = """
duration = "2s"
warmup = "1s"
[network]
preset = "feng"
[[queue]]
aqm = "red"
buffer = "100kB"
[[traffic]]
flows = 20
transport = "sack"
start = "0s..1s"
ecn = true
"""

SWEEP = (
    TINY
    + """
[measure]
interval = "100ms"
[sweep]
buffer = { key = "queue.0.buffer", values = [20, 100], unit = "kB" }
[sweep.aqm]
R = { "queue.0.aqm" = "red" }
B = { "queue.0.aqm" = "blue" }
"""
)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


class Cli:
    """Runs the command line in this process, with results in a folder of the test."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def __call__(self, *arguments: str, keep_out: bool = True) -> Result:
        extra = ["--out", str(self.out)] if keep_out else []
        return CliRunner().invoke(app, [*arguments, *extra], catch_exceptions=False)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "results")


def children(pid: int) -> set[int]:
    """Processes that any thread of a process has started and that are still there."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # A thread that has ended meanwhile.
            found.update(map(int, (task / "children").read_text().split()))
    return found

"""Checks that an installation works, each with a remedy."""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bluewater import _core, bench
from bluewater.errors import InputError
from bluewater.results import host
from bluewater.results.store import Store
from bluewater.study.execution.execute import execute
from bluewater.study.execution.task import Task
from bluewater.study.experiments import experiment
from bluewater.study.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TINY = """
duration = "2s"
network.preset = "feng"
[[queue]]
aqm = "blue"
buffer = "100kB"
[[traffic]]
flows = 20
transport = "sack"
ecn = true
"""


@dataclass(frozen=True)
class Check:
    """One check: whether it passed, what was found, and the remedy.

    A check that is not ``required`` is about something optional.
    """

    name: str
    ok: bool
    found: str
    hint: str = ""
    required: bool = True


def checks() -> Iterator[Check]:
    """Every check, made one after the other."""
    yield Check("python", True, f"{host.facts()['python']} at {sys.executable}")
    yield Check("machine", True, f"{host.processor()}, {host.facts()['cores']} cores")
    yield Check("core", True, f"version {_core.version()}")
    yield _try("experiments", _experiments, "set BLUEWATER_EXPERIMENTS to their folder")
    yield _try("determinism", _determinism, "install again: `make setup`")
    yield _try("pictures", _pictures, "install matplotlib again")
    yield Check(
        "instruction counts",
        bench.counter() is not None,
        bench.counter() or "neither perf nor valgrind works here",
        "install linux-perf or valgrind; only `bluewater bench` needs it",
        required=False,
    )
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    yield Check("disk", free > 1, f"{free:.1f} GB free here", "the full size needs about 1 GB")


def _try(name: str, check: Callable[[], str], hint: str) -> Check:
    try:
        return Check(name, True, check())
    except (InputError, _core.ScenarioError, OSError, RuntimeError) as error:
        return Check(name, False, str(error), getattr(error, "hint", None) or hint)


def _experiments() -> str:
    names = experiment.known()
    for name in names:
        experiment.load(name)
    return f"{len(names)} in {experiment.root()}"


def _determinism() -> str:
    """Runs a scenario here and in another process, and compares the decisions."""
    scenario = Scenario.parse(_TINY, "doctor")
    here = scenario.prepared.run().decision_hash
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        task = Task(scenario.prepared.key, scenario.canonical, "doctor")
        for failure in execute([task], store, 1):
            raise RuntimeError(failure.reason)
        there = store.read(task.key).decision_hash
    if here != there:
        raise RuntimeError(f"two processes give different decisions: {here} and {there}")
    return f"two processes give the same decisions: {here}"


def _pictures() -> str:
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with tempfile.TemporaryFile() as sink:
        Figure().savefig(sink, format="png")
    return f"matplotlib {mpl.__version__}"

"""Which queue discipline a path has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bluewater.arguments import FLAG, NUMBER, PATH, checked
from bluewater.lab.making import CORES, at_least
from bluewater.progress import of_one
from bluewater.study.identify import infer, recording, virtual
from bluewater.study.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from bluewater.study.identify.infer import Answer


@checked(path=PATH, seed=NUMBER, jobs=NUMBER, progress=FLAG)
def identify(
    path: Path | str, *, seed: int = 1, jobs: int = CORES, progress: bool = True
) -> Answer:
    """Finds the queue discipline that explains what a path did to packets.

    Args:
        path: A recording as CSV, or a scenario (``.toml``) whose first queue is probed.
        seed: Seed of the search and its simulations; the same seed gives the same answer.
        jobs: Simulations at once; the answer does not depend on it.
        progress: Whether a terminal shows a progress bar.

    Raises:
        InputError: The file cannot be used.
        ScenarioError: The scenario is not valid.
    """
    at_least(jobs=(jobs, 1), seed=(seed, 0))
    chosen = Path(path)
    probe = chosen.suffix == ".toml"
    seen = virtual.probed(Scenario.load(chosen)) if probe else recording.read(chosen)
    bar, told = of_one("comparing candidates", progress)
    with bar:
        return infer.identify(seen, seed, jobs, told)

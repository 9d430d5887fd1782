"""Reproducing the claims of papers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bluewater.arguments import NUMBER, NUMBERS, TEXT, checked
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING, chosen_seeds
from bluewater.progress import of_runs
from bluewater.results.store import Store
from bluewater.study.execution.execute import HERE, engine
from bluewater.study.experiments import experiment
from bluewater.study.experiments.reproduce import Plan
from bluewater.study.experiments.reproduce import reproduce as make

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bluewater.study.experiments.reproduce import Outcome


@checked(name=TEXT, size=TEXT, seeds=NUMBERS, reps=NUMBER, **MAKING)
def reproduce(
    name: str | None = None,
    *,
    size: str = "full",
    seeds: Sequence[int] | None = None,
    reps: int | None = None,
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    report: bool = True,
    progress: bool = True,
) -> list[Outcome]:
    """Reproduces a paper's experiments and judges their claims.

    Args:
        name: An experiment (``feng/fig6-8``), a file with one (``my.toml``), a paper (``feng``,
            ``Feng02``), or all.
        size: ``full`` (the paper's size) or ``quick``.
        seeds: The seeds; those of the experiments if not given.
        reps: Number of seeds, counting up from 1, in place of ``seeds``.
        jobs: Parallel runs.
        on: Where the runs are made: ``here``, ``dask`` (processes of this machine),
            ``dask=ADDRESS`` (the cluster of a scheduler), or ``slurm`` (job arrays).
        share: A second store of finished runs, searched first, for machines that share no folder:
            any fsspec address, such as ``s3://bucket/folder``.
        out: The folder of results.
        report: Whether to write ``report.html`` there, on every experiment in the folder.
        progress: Whether a bar is shown.
    """
    engine(on, jobs)
    made = plan([name] if name else [], size, chosen_seeds(seeds, reps))
    store = Store(Path(out) / "runs", share)
    store.sync(task.key for task in made.tasks)
    held = sum(task.key in store for task in made.tasks)
    with of_runs(made.tasks, held, "starting", progress) as on_progress:
        outcomes = make(made, store, jobs, on_progress, on)
    if report:
        from bluewater.report import write_report  # noqa: PLC0415 - matplotlib takes long

        write_report(outcomes, Path(out), jobs)
    return outcomes


def plan(names: Sequence[str], size: str, seeds: tuple[int, ...] | None) -> Plan:
    """Plans the runs of the named experiments; of all experiments without a name."""
    some = [each for name in names for each in experiment.select(name)]
    meant = {each.id: each for each in (some if names else experiment.select(None))}
    sized = [(each, each.size(size)) for each in meant.values()]
    if seeds is not None:
        sized = [(each, replace(chosen, seeds=seeds)) for each, chosen in sized]
    return Plan.of(sized)

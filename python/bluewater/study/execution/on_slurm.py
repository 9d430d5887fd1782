"""Runs as job arrays of SLURM: each element makes a shard of the runs, one after the other.

All elements write into the folder of the results, which their nodes see under the same path. Runs
that are missing when a job ends (a node died, or the time limit was reached) are submitted again,
as long as the last job finished some runs.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bluewater.errors import InputError
from bluewater.study.execution.task import Failure, Progress, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bluewater.results.store import Store

TASKS = "tasks.jsonl"
"""The file of a job's folder that holds its runs."""
_POLL_S = (0.5, 10.0)
"""Seconds between two checks of a job: at first, and at most."""
_SEEN_S = 30.0
"""Seconds after a job's end until a shared folder shows its results."""


def failed(folder: Path, number: int) -> Path:
    """The file in which an element of the array lists runs that it could not make."""
    return folder / f"failed-{number}.jsonl"


def check() -> None:
    """Raises an :class:`InputError` if jobs cannot be submitted here."""
    if shutil.which("sbatch") is None:
        raise InputError(
            "SLURM is not here: there is no sbatch",
            key="on",
            value="slurm",
            hint="run this on a node that can submit jobs, or use --shard in your own job",
        )


def make(
    pending: Sequence[Task],
    store: Store,
    on_progress: Callable[[Progress], None],
    *,
    jobs: int,
) -> list[Failure]:
    """Makes runs in job arrays of at most ``jobs`` elements, of one processor each.

    Options of ``sbatch`` are those of its environment (``SBATCH_PARTITION``, ``SBATCH_TIMELIMIT``
    …).
    """
    waiting = {task.key: task for task in pending}
    failures: list[Failure] = []
    while waiting:
        before = len(waiting)
        folder = store.root.parent / "slurm" / uuid4().hex[:12]
        for failure in _submitted(waiting, store, folder, jobs, on_progress):
            failures.append(failure)
            on_progress(Progress(failure.task, 1.0, failure))
        if len(waiting) == before:
            for task in waiting.values():
                failures.append(Failure(task, f"its job ended without a result: see {folder}"))
                on_progress(Progress(task, 1.0, failures[-1]))
            break
    return failures


def _submitted(
    waiting: dict[str, Task],
    store: Store,
    folder: Path,
    jobs: int,
    on_progress: Callable[[Progress], None],
) -> list[Failure]:
    """Submits the waiting runs; when the job ends, removes those that finished or failed."""
    folder.mkdir(parents=True)
    lines = [json.dumps(asdict(task)) + "\n" for task in waiting.values()]
    (folder / TASKS).write_text("".join(lines), encoding="utf-8")
    count = min(jobs, len(waiting))
    job = _submit(folder.resolve(), store, count)

    def look() -> None:
        for key in [key for key in waiting if key in store]:
            on_progress(Progress(waiting.pop(key), 1.0))

    try:
        pause, most = _POLL_S
        while _runs(job):
            time.sleep(pause)
            pause = min(1.5 * pause, most)
            look()
    except BaseException:
        subprocess.run(["scancel", job], check=False, capture_output=True)
        raise
    told = [path for path in (failed(folder, n + 1) for n in range(count)) if path.exists()]
    lines = [line for path in told for line in path.read_text(encoding="utf-8").splitlines()]
    failures = [Failure(waiting.pop(key), reason) for key, reason in map(json.loads, lines)]
    look()
    until = time.monotonic() + _SEEN_S
    while waiting and len(told) == count and time.monotonic() < until:
        time.sleep(0.5)  # every element ended regularly, so its results will appear
        look()
    if not waiting:
        shutil.rmtree(folder, ignore_errors=True)
    return failures


def _submit(folder: Path, store: Store, count: int) -> str:
    """Submits a job that makes the runs of a folder; returns the job's number."""
    where = [str(folder), str(store.root.resolve()), store.share]
    part = [sys.executable, "-m", "bluewater.study.execution.part", *where]
    script = f"exec {shlex.join(part)} $SLURM_ARRAY_TASK_ID/{count}"
    command = [
        "sbatch", "--parsable", "--job-name=bluewater", f"--array=1-{count}", "--cpus-per-task=1",
        f"--output={folder}/%a.log", f"--chdir={Path.cwd()}", f"--wrap={script}",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise InputError(
            f"the job cannot be submitted: {done.stderr.strip()}",
            key="on",
            value="slurm",
            hint="set options of sbatch in the environment: SBATCH_PARTITION, SBATCH_ACCOUNT …",
        )
    return done.stdout.strip().partition(";")[0]


def _runs(job: str) -> bool:
    """Whether any element of a job waits or runs; true if the controller does not answer."""
    command = ["squeue", "--noheader", "--format=%T", f"--jobs={job}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return "Invalid job id" not in done.stderr
    return bool(done.stdout.strip())

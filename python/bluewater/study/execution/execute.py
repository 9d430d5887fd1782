"""Making many runs at once: in processes of this machine, or by an engine.

A run is a pure function from scenario to stored result, so an engine needs only texts and keys. If
it loses a process, it loses only that process' current run.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError, Interrupted, StorageError, unknown
from bluewater.kinds import KINDS
from bluewater.study.execution import on_dask, on_slurm
from bluewater.study.execution.task import Failure, Progress, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bluewater.results.store import Store

    Engine = Callable[[Sequence[Task], Store, Callable[[Progress], None]], list[Failure]]


@dataclass
class _Shared:
    """State shared by the threads that feed the workers."""

    waiting: deque[Task]
    events: queue.Queue[Progress | Exception] = field(default_factory=queue.Queue)
    stop: threading.Event = field(default_factory=threading.Event)
    workers: set[subprocess.Popen[str]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


AWAKE = 0.2
"""Seconds between polls for Ctrl-C: a library may swallow SIGINT, and then no wait ends."""

HERE = "here"
"""The name of the engine that uses processes of this machine."""


def execute(
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on: str = HERE,
) -> list[Failure]:
    """Makes every task that the store lacks; returns those that failed.

    If a task's process dies, that task fails and the others continue. A damaged result is put aside
    with a :class:`~bluewater.errors.DamagedWarning`, and made again. Runs that measure real time
    are always made on this machine.

    Args:
        tasks: The runs to make; duplicates are made once.
        store: The store for the results.
        jobs: Parallel runs.
        on_progress: Called with each event.
        on: ``here``, or another engine: see :func:`engine`.

    Raises:
        InputError: ``jobs`` is below 1, or the engine cannot be used.
        StorageError: The results cannot be written; those written before are kept.
        Interrupted: Ctrl-C; what was finished is kept, nothing half-written stays.
    """
    make = engine(on, jobs)
    store.prepare()
    store.put_aside(task.key for task in tasks)
    pending = [task for task in {t.key: t for t in tasks}.values() if task.key not in store]
    reasons = {name: KINDS[name].missing() for name in {task.kind for task in pending}}
    failures = [
        Failure(task, reason, skipped=True) for task in pending if (reason := reasons[task.kind])
    ]
    pending = [task for task in pending if not reasons[task.kind]]
    alone = [task for task in pending if KINDS[task.kind].alone]
    together = [task for task in pending if not KINDS[task.kind].alone]
    try:
        if together:
            failures += make(together, store, on_progress)
        failures += _here(alone, store, on_progress, jobs=1)
    except KeyboardInterrupt:
        kept = sum(task.key in store for task in tasks)
        raise Interrupted(kept, len(tasks)) from None
    finally:
        store.prepare()
    return failures


def engine(on: str, jobs: int) -> Engine:
    """The engine that makes ``jobs`` runs at a time.

    ``on`` is ``here``, ``dask`` (a cluster of processes on this machine), ``dask=ADDRESS`` (a
    scheduler's cluster), or ``slurm`` (job arrays).

    Raises:
        InputError: There is no such engine, or it needs a missing package.
    """
    if jobs < 1:
        raise InputError(
            "not a number of parallel runs", key="jobs", value=jobs, allowed="1 or more"
        )
    name, _, address = on.partition("=")
    if name == "dask":
        on_dask.check()
        return partial(on_dask.make, jobs=jobs, address=address)
    if on == "slurm":
        on_slurm.check()
        return partial(on_slurm.make, jobs=jobs)
    if on == HERE:
        return partial(_here, jobs=jobs)
    raise unknown("engine", on, (HERE, "dask", "dask=ADDRESS", "slurm"), key="on")


def _here(
    pending: Sequence[Task], store: Store, on_progress: Callable[[Progress], None], jobs: int
) -> list[Failure]:
    """Makes runs in processes of this machine."""
    shared = _Shared(deque(pending))
    threads = [
        threading.Thread(target=_feed, args=(shared, store), daemon=True)
        for _ in range(min(jobs, len(pending)))
    ]
    failures: list[Failure] = []
    finished = 0
    try:
        for thread in threads:
            thread.start()
        while finished < len(pending):
            try:
                event = shared.events.get(timeout=AWAKE)
            except queue.Empty:
                continue
            if isinstance(event, Exception):
                raise event
            if event.failure is not None:
                failures.append(event.failure)
            finished += event.fraction >= 1.0
            on_progress(event)
    finally:
        _abandon(shared, threads)
    return failures


def _abandon(shared: _Shared, threads: Sequence[threading.Thread]) -> None:
    shared.stop.set()
    with shared.lock:
        for worker in shared.workers:
            worker.kill()
    for thread in threads:
        if thread.ident is not None:
            thread.join()


def _feed(shared: _Shared, store: Store) -> None:
    """Hands tasks to one worker until none wait; replaces a worker that dies."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        worker: subprocess.Popen[str] | None = None
        try:
            while not shared.stop.is_set():
                try:
                    task = shared.waiting.popleft()
                except IndexError:
                    break
                if worker is None or worker.poll() is not None:
                    worker = _start(shared, store, log)
                _make(task, worker, log, shared)
        except Exception as error:
            shared.events.put(error)
        finally:
            if worker is not None:
                _end(worker, shared)


def _start(shared: _Shared, store: Store, log: Any) -> subprocess.Popen[str]:
    with shared.lock:
        worker = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bluewater.study.execution.worker",
                str(store.root),
                store.share,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        shared.workers.add(worker)
        if shared.stop.is_set():
            worker.kill()
    return worker


def _end(worker: subprocess.Popen[str], shared: _Shared) -> None:
    worker.__exit__(None, None, None)
    with shared.lock:
        shared.workers.discard(worker)


def _make(task: Task, worker: subprocess.Popen[str], log: Any, shared: _Shared) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(json.dumps(asdict(task)) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        pass  # the worker died: the read below fails too, and finds out why
    for line in worker.stdout:
        reply = json.loads(line)
        if "progress" in reply:
            shared.events.put(Progress(task, min(reply["progress"], 0.999)))
            continue
        error = reply.get("error")
        if error is None:
            shared.events.put(Progress(task, 1.0))
        elif error["kind"] == "storage":
            shared.stop.set()
            shared.events.put(StorageError(error["problem"], file=task.label, hint=error["hint"]))
        else:
            shared.events.put(Progress(task, 1.0, Failure(task, error["problem"])))
        return
    code = worker.wait()
    if not shared.stop.is_set():
        shared.events.put(Progress(task, 1.0, Failure(task, _death(code, log))))
    worker.stdin.close()
    worker.stdout.close()
    with shared.lock:
        shared.workers.discard(worker)


def _death(code: int, log: Any) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    log.seek(0)
    last = [line for line in log.read().splitlines() if line.strip()][-3:]
    return f"the process that made this run died ({how})" + "".join(
        f"\n    {line}" for line in last
    )

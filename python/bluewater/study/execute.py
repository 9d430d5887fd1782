"""Making many runs at once, in processes of this machine.

A run is a pure function from scenario to stored result, so an executor needs to know nothing but
texts and keys: whatever starts :mod:`bluewater.study.worker` elsewhere can take this one's place.
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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError, Interrupted, StorageError
from bluewater.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bluewater.results.store import Store


@dataclass(frozen=True)
class Task:
    """A run to make.

    Attributes:
        key: Its name in the store.
        text: Its canonical scenario.
        label: A name for people.
        kind: Of which of :data:`bluewater.kinds.KINDS` it is.
    """

    key: str
    text: str
    label: str
    kind: str = "simulator"


@dataclass(frozen=True)
class Failure:
    """A run that could not be made, and why.

    Attributes:
        skipped: Whether this machine does not allow it, so that it was not tried.
    """

    task: Task
    reason: str
    skipped: bool = False


@dataclass(frozen=True)
class Progress:
    """Something happened to a task: ``fraction`` of it is done, at 1 it is finished."""

    task: Task
    fraction: float
    failure: Failure | None = None


@dataclass
class _Shared:
    """What the threads that feed the workers share."""

    waiting: deque[Task]
    events: queue.Queue[Progress | Exception] = field(default_factory=queue.Queue)
    stop: threading.Event = field(default_factory=threading.Event)
    workers: set[subprocess.Popen[str]] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


def execute(
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> list[Failure]:
    """Makes every task that the store does not hold yet; returns those that failed.

    A task whose process dies is named in the failures and the others go on. A damaged result is put
    aside with a :class:`~bluewater.errors.DamagedWarning`, and made again.

    Raises:
        InputError: ``jobs`` is below 1.
        StorageError: The results cannot be written; those written before are kept.
        Interrupted: Ctrl-C; what was finished is kept, nothing half-written stays.
    """
    if jobs < 1:
        raise InputError("no run would be made", key="jobs", value=jobs, allowed="1 or more")
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
    for part, width in ((together, jobs), (alone, 1)):
        failures += _execute(part, tasks, store, width, on_progress)
    return failures


def _execute(
    pending: Sequence[Task],
    tasks: Sequence[Task],
    store: Store,
    jobs: int,
    on_progress: Callable[[Progress], None],
) -> list[Failure]:
    """Makes ``pending``, a part of ``tasks``."""
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
            event = shared.events.get()
            if isinstance(event, Exception):
                raise event
            if event.failure is not None:
                failures.append(event.failure)
            finished += event.fraction >= 1.0
            on_progress(event)
    except KeyboardInterrupt:
        _abandon(shared, threads)
        kept = sum(task.key in store for task in tasks)
        raise Interrupted(kept, len(tasks)) from None
    finally:
        _abandon(shared, threads)
        store.prepare()
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
    """Hands tasks to one worker, a new one if it dies, until none wait."""
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
            [sys.executable, "-m", "bluewater.study.worker", str(store.root)],
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
    request = {"key": task.key, "kind": task.kind, "text": task.text, "origin": task.label}
    try:
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
    except BrokenPipeError:
        pass  # it died: reading says so too, and why is found below
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

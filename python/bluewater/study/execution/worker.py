"""The process that makes runs: reads tasks on stdin, writes results to a store.

Both directions are JSON lines. Input: a :class:`~bluewater.study.execution.task.Task`. Output: some
``{"progress": fraction}``, then the answer of :func:`serve`. The process ends after its current run
when stdin ends, and at once when its parent is gone; only the parent handles Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.errors import StorageError
from bluewater.kinds import KINDS
from bluewater.results.store import Store
from bluewater.study.execution.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

REPORT_EVERY = 0.2
"""Seconds between two reports of progress."""


def main() -> None:
    """Serves tasks until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    store = Store(Path(sys.argv[1]), sys.argv[2])
    # Redirect prints to stderr, so that stdout has only the answers.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        _reply(replies, serve(Task(**json.loads(line)), store, _told(replies)))


def serve(
    task: Task, store: Store, progress: Callable[[float], object] | None = None
) -> dict[str, Any]:
    """Makes a run into a store: ``{"done": decision hash}`` or ``{"error": {…}}``."""
    try:
        result = KINDS[task.kind].run(task.text, task.label, progress)
        store.write(task.key, result)
    except StorageError as error:
        return {"error": {"kind": "storage", "problem": error.problem, "hint": error.hint}}
    except Exception as error:
        return {"error": {"kind": "run", "problem": f"{type(error).__name__}: {error}"}}
    return {"done": result.decision_hash}


def _end_with(parent: int) -> None:
    """Ends the process when its parent is gone: a run with a user's class may never end."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _told(replies: TextIO) -> Callable[[float], None]:
    last = time.monotonic()

    def progress(fraction: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_EVERY:
            last = now
            _reply(replies, {"progress": fraction})

    return progress


def _reply(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()

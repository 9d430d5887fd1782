"""The process that makes runs: reads tasks on stdin, writes results to a store.

Both directions are JSON lines. In: ``{"key", "kind", "text", "origin"}``. Out, a number of
``{"progress": fraction}``, then ``{"done": decision hash}`` or ``{"error": {…}}``. It ends when
stdin does, after the run in hand; its parent alone decides on Ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.errors import StorageError
from bluewater.kinds import KINDS
from bluewater.results.store import Store

if TYPE_CHECKING:
    from typing import TextIO

REPORT_EVERY = 0.2
"""Seconds between two reports of progress."""


def main() -> None:
    """Serves tasks until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store = Store(Path(sys.argv[1]))
    # Whatever prints goes to stderr: the replies have a stream of their own.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        _reply(replies, _serve(json.loads(line), store, replies))


def _serve(task: dict[str, str], store: Store, replies: TextIO) -> dict[str, Any]:
    last = time.monotonic()

    def progress(fraction: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_EVERY:
            last = now
            _reply(replies, {"progress": fraction})

    try:
        result = KINDS[task["kind"]].run(task["text"], task["origin"], progress)
        store.write(task["key"], result)
    except StorageError as error:
        return {"error": {"kind": "storage", "problem": error.problem, "hint": error.hint}}
    except Exception as error:
        return {"error": {"kind": "run", "problem": f"{type(error).__name__}: {error}"}}
    return {"done": result.decision_hash}


def _reply(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()

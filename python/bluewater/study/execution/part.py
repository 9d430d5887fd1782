"""The work of one element of a job array.

``python -m bluewater.study.execution.part FOLDER STORE SHARE I/N`` makes the I-th of N shards of
the tasks in a folder, one run after the other, into a store.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bluewater.results.store import Store
from bluewater.study.execution.execute import execute
from bluewater.study.execution.on_slurm import TASKS, failed
from bluewater.study.execution.task import Shard, Task


def main() -> None:
    """Makes the shard that the command line names."""
    folder, store = Path(sys.argv[1]), Store(Path(sys.argv[2]), sys.argv[3])
    shard = Shard.parse(sys.argv[4])
    lines = (folder / TASKS).read_text(encoding="utf-8").splitlines()
    failures = execute(shard.of([Task(**json.loads(line)) for line in lines]), store, 1)
    told = [json.dumps([failure.task.key, failure.reason]) + "\n" for failure in failures]
    failed(folder, shard.number).write_text("".join(told), encoding="utf-8")


if __name__ == "__main__":
    main()

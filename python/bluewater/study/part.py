"""What an element of a job array does: ``python -m bluewater.study.part FOLDER STORE I/N``.

Makes the I-th of N shards of the tasks in a folder into a store, one after the other.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bluewater.results.store import Store
from bluewater.study.execute import execute
from bluewater.study.on_slurm import TASKS, failed
from bluewater.study.task import Shard, Task


def main() -> None:
    """Makes the shard."""
    folder, root, shard = Path(sys.argv[1]), Path(sys.argv[2]), Shard.parse(sys.argv[3])
    lines = (folder / TASKS).read_text(encoding="utf-8").splitlines()
    failures = execute(shard.of([Task(**json.loads(line)) for line in lines]), Store(root), 1)
    told = [json.dumps([failure.task.key, failure.reason]) + "\n" for failure in failures]
    failed(folder, shard.number).write_text("".join(told), encoding="utf-8")


if __name__ == "__main__":
    main()

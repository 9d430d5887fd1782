from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import TINY, children

import bluewater
from bluewater import _core
from bluewater.errors import Interrupted, StorageError
from bluewater.results.store import Store, run_key
from bluewater.study.execution.execute import execute
from bluewater.study.execution.task import Progress, Task


def task(seed: int, duration: str = "2s") -> Task:
    text = f"seed = {seed}\n" + TINY.replace('"2s"', f'"{duration}"')
    canonical = _core.Prepared(text, "test").canonical
    return Task(run_key(canonical, _core.version()), canonical, f"seed={seed}")


def own_tasks(folder: Path) -> list[Task]:
    """Two runs of a class in Python whose file is gone."""
    file = folder / "coin.py"
    file.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Coin(Aqm):\n"
        "    def on_arrival(self, now, packet, queue): return 0.01\n"
    )
    name = f'aqm = "python:{file}:Coin"'
    texts = [f"seed = {seed}\n" + re.sub('aqm = "[a-z]+"', name, TINY) for seed in (1, 2)]
    canonical = [_core.Prepared(text, "test").canonical for text in texts]
    file.unlink()
    return [Task(run_key(text, _core.version()), text, "own") for text in canonical]


def hashes(store: Store, tasks: list[Task]) -> list[str]:
    return [store.read(each.key).decision_hash for each in tasks]


def test_one_and_two_processes_decide_alike(tmp_path: Path) -> None:
    tasks = [task(seed) for seed in range(4)]
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    assert execute(tasks, one, 1) == []
    assert execute(tasks, two, 2) == []
    here = [bluewater.run(each.text).decision_hash for each in tasks]
    assert hashes(one, tasks) == hashes(two, tasks) == here
    assert len(set(here)) == 4


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tasks = [task(1), task(1), task(2)]
    seen: list[Progress] = []
    execute(tasks, store, 2, seen.append)
    assert sum(step.fraction == 1 for step in seen) == 2
    seen.clear()
    execute(tasks, store, 2, seen.append)
    assert seen == []


def test_a_run_that_cannot_be_made_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    bad = Task("0" * 32, "duration = 3", "the bad one")
    failures = execute([bad, task(1), task(2)], store, 1)
    assert [failure.task.label for failure in failures] == ["the bad one"]
    assert "ScenarioError" in failures[0].reason
    assert task(1).key in store
    assert task(2).key in store


def test_a_worker_that_dies_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    victim = task(7, "100000s")
    others = children(os.getpid())

    def kill(step: Progress) -> None:
        if step.task == victim and step.fraction < 1:
            for pid in children(os.getpid()) - others:
                os.kill(pid, signal.SIGKILL)

    failures = execute([victim, task(1), task(2)], store, 1, kill)
    assert [failure.task for failure in failures] == [victim]
    assert "SIGKILL" in failures[0].reason
    assert task(1).key in store
    assert task(2).key in store
    assert victim.key not in store


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tasks = [task(1), task(2, "100000s"), task(3, "100000s")]
    others = children(os.getpid())

    def interrupt(step: Progress) -> None:
        if step.task == tasks[1]:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        execute(tasks, store, 1, interrupt)
    assert (raised.value.kept, raised.value.total) == (1, 3)
    assert tasks[0].key in store
    assert not list(tmp_path.glob(".tmp-*"))
    assert children(os.getpid()) <= others


def test_a_sweep_killed_in_the_middle_goes_on(tmp_path: Path) -> None:
    """The whole process dies by SIGKILL; nothing half-written is taken for a result."""
    tasks = [task(seed, "20s") for seed in range(6)]
    script = (
        "import sys; sys.path[:0] = [sys.argv[2]]\n"
        "from pathlib import Path; from test_execute import task\n"
        "from bluewater.results.store import Store\n"
        "from bluewater.study.execution.execute import execute\n"
        "execute([task(seed, '20s') for seed in range(6)], Store(Path(sys.argv[1])), 1)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)]
    )
    store = Store(tmp_path)
    deadline = time.monotonic() + 60
    while not any(each.key in store for each in tasks) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    kept = [each for each in tasks if each.key in store]
    assert kept
    stamps = {each.key: store.path(each.key).stat().st_mtime_ns for each in kept}
    assert execute(tasks, store, 2) == []
    assert all(each.key in store for each in tasks)
    assert all(store.path(key).stat().st_mtime_ns == stamp for key, stamp in stamps.items())


def test_a_full_disk_stops_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    store = Store(tmp_path / "runs")
    blocked = task(2)
    store.path(blocked.key).parent.write_text("a file where the folder of an entry belongs")
    with pytest.raises(StorageError, match="cannot write"):
        execute([task(1), blocked], store, 1)
    assert task(1).key in store


def test_progress_is_told_within_a_run(tmp_path: Path) -> None:
    seen: list[float] = []
    stopped = threading.Event()

    def watch(step: Progress) -> None:
        seen.append(step.fraction)
        if len(seen) >= 3:
            stopped.set()
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        execute([task(1, "100000s")], Store(tmp_path), 1, watch)
    assert seen == sorted(seen)
    assert 0 < seen[0] < 1

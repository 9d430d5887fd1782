"""Runs on a real Dask cluster of processes, of which some are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import SWEEP
from test_execute import hashes, own_tasks, task

import bluewater
from bluewater.errors import InputError, Interrupted, StorageError
from bluewater.results.store import Store
from bluewater.study.execution import on_dask
from bluewater.study.execution.execute import engine, execute
from bluewater.study.execution.task import Progress, Task

pytestmark = [pytest.mark.core, pytest.mark.slow, pytest.mark.timeout(300)]

PYTHON = [sys.executable, "-m"]


def workers(pid: int | None = None) -> list[psutil.Process]:
    """The processes below a process in which Dask makes runs, without their nannies."""
    below = psutil.Process(pid).children(recursive=True)
    return [each for each in below if lives(each) and "spawn_main" in " ".join(each.cmdline())]


def lives(process: psutil.Process) -> bool:
    """Whether it runs: whom nobody waits for is a zombie when it has ended."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_cluster_of_this_machine_decides_as_this_process(tmp_path: Path) -> None:
    here = bluewater.sweep(SWEEP, seeds=[1, 2], out=tmp_path / "here", progress=False)
    there = bluewater.sweep(
        SWEEP, seeds=[1, 2], jobs=2, on="dask", out=tmp_path / "there", progress=False
    )
    assert [run.decision_hash for _, run in there.results()] == [
        run.decision_hash for _, run in here.results()
    ]
    assert len(there.results()) == 8
    assert not list((tmp_path / "there" / "runs").glob(".*"))
    assert workers() == []


def test_workers_have_the_class_without_its_file(tmp_path: Path) -> None:
    tasks = own_tasks(tmp_path)
    store = Store(tmp_path / "dask")
    assert execute(tasks, store, 2, on="dask") == []
    assert hashes(store, tasks) == [bluewater.run(each.text).decision_hash for each in tasks]


def test_workers_that_are_killed_lose_nothing_that_was_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tasks = [task(seed, "60s") for seed in range(8)]
    killed: list[int] = []

    def kill(step: Progress) -> None:
        seen.add(step.task.key)
        if len(killed) < 3:
            victim = next(iter(workers()), None)
            if victim is None:  # the one that was killed has no successor yet
                return
            killed.append(victim.pid)
            victim.send_signal(signal.SIGKILL)

    seen: set[str] = set()
    assert execute(tasks, store, 2, kill, "dask") == []
    assert len(killed) == 3
    assert seen == {each.key for each in tasks}
    other = Store(tmp_path / "other")
    assert execute(tasks, other, 2) == []
    assert hashes(store, tasks) == hashes(other, tasks)


def test_workers_that_die_while_they_start_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_dask, "_ALONE_S", 20)
    killed: set[int] = set()
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.02):
            for each in workers():
                with contextlib.suppress(psutil.Error):
                    killed.add(each.pid)
                    each.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(InputError, match="no worker") as error:
            execute([task(1)], Store(tmp_path), 2, on="dask")
    finally:
        over.set()
        killer.join()
    assert killed
    assert error.value.key == "on"
    assert "--on here" in str(error.value.hint)


def test_who_asked_is_killed_and_the_same_call_goes_on(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path[:0] = [sys.argv[2]]\n"
        "from pathlib import Path; from test_execute import task\n"
        "from bluewater.results.store import Store\n"
        "from bluewater.study.execution import on_dask; on_dask._IDLE_S = 15\n"
        "from bluewater.study.execution.execute import execute\n"
        "tasks = [task(seed, '200s') for seed in range(20)]\n"
        "execute(tasks, Store(Path(sys.argv[1])), 2, on='dask')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), str(Path(__file__).parent)],
        stderr=subprocess.DEVNULL,
    )
    below: list[psutil.Process] = []
    tasks = [task(seed, "200s") for seed in range(20)]
    store = Store(tmp_path)
    until = time.monotonic() + 120
    while not any(each.key in store for each in tasks) and time.monotonic() < until:
        time.sleep(0.02)
    below = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    # Nobody is left to close the cluster: it ends by itself.
    until = time.monotonic() + 120
    while any(map(lives, below)) and time.monotonic() < until:
        time.sleep(0.2)
    left = [each for each in below if lives(each)]
    for each in left:
        each.kill()
    assert not left
    kept = {
        each.key: store.path(each.key).stat().st_mtime_ns for each in tasks if each.key in store
    }
    assert 0 < len(kept) < 20
    assert execute(tasks, store, 2, on="dask") == []
    assert all(store.path(key).stat().st_mtime_ns == stamp for key, stamp in kept.items())
    assert all(each.key in store for each in tasks)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler with a worker, as one that runs elsewhere."""
    file = tmp_path / "scheduler.json"
    opts = f'{{"host": "127.0.0.1", "port": 0, "dashboard": false, "scheduler_file": "{file}"}}'
    spec = f'{{"cls": "distributed.Scheduler", "opts": {opts}}}'
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    first = subprocess.Popen([*PYTHON, "dask", "spec", "--spec", spec], **quiet)  # type: ignore[call-overload]
    until = time.monotonic() + 30
    while not (file.exists() and file.read_text().strip().endswith("}")):
        assert time.monotonic() < until
        time.sleep(0.05)
    address = json.loads(file.read_text())["address"]
    spec = '{"cls": "distributed.Worker", "opts": {"nthreads": 1, "dashboard": false}}'
    second = subprocess.Popen([*PYTHON, "dask", "spec", address, "--spec", spec], **quiet)  # type: ignore[call-overload]
    yield address
    for each in (second, first):
        each.kill()
        each.wait()


def test_another_s_scheduler_and_runs_that_cannot_be_made(scheduler: str, tmp_path: Path) -> None:
    on = f"dask={scheduler}"
    store = Store(tmp_path / "store")
    wrong = Task("0" * 32, "duration = 3", "another version's")
    failures = execute([wrong, task(1), task(2)], store, 1, on=on)
    assert [failure.task for failure in failures] == [wrong]
    assert "another version" in failures[0].reason
    assert hashes(store, [task(1)]) == [bluewater.run(task(1).text).decision_hash]


def test_a_worker_without_the_folder_sends_the_files(tmp_path: Path) -> None:
    one = task(1)
    said = on_dask.work(one, str(tmp_path / "elsewhere"), ".seen-by-nobody")
    store = Store(tmp_path / "store")
    store.prepare()
    assert on_dask._failure(one, "finished", said, store) is None
    assert store.read(one.key).decision_hash == said["done"]
    assert not (tmp_path / "elsewhere").exists()


def test_what_a_worker_says_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".seen").touch()
    store, one = Store(tmp_path / "runs"), task(1)
    store.path(one.key).parent.write_text("a file where the folder of an entry belongs")
    said = on_dask.work(one, str(store.root), ".seen")
    with pytest.raises(StorageError, match="cannot write"):
        on_dask._failure(one, "finished", said, store)
    failure = on_dask._failure(one, "error", (ValueError, ValueError("it died"), None), store)
    assert failure is not None
    assert failure.reason == "ValueError: it died"


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    tasks = [task(1), task(2, "700000s"), task(3, "700000s")]

    def interrupt(step: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        execute(tasks, store, 2, interrupt, "dask")
    assert (raised.value.kept, raised.value.total) == (1, 3)
    assert workers() == []


def test_engines_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown engine 'dusk'") as raised:
        engine("dusk", 1)
    assert raised.value.hint == "did you mean 'dask'?"
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(InputError, match="no sbatch"):
        engine("slurm", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        execute([task(1)], Store(tmp_path), 1, on="dask=tcp://127.0.0.1:9")
    monkeypatch.setattr(on_dask, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="not installed"):
        engine("dask", 1)

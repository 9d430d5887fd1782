"""Job arrays, with programs in SLURM's place; `scripts/slurm.sh` has the real ones."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from conftest import TINY, Cli, children
from test_execute import hashes, own_tasks, task

import bluewater
from bluewater.errors import InputError, Interrupted
from bluewater.results.store import Store
from bluewater.study.execution.execute import execute
from bluewater.study.execution.task import Progress, Shard, Task

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]

SBATCH = """#!{python}
import os, re, subprocess, sys
told = dict(word.removeprefix("--").partition("=")[::2] for word in sys.argv[1:])
first, last = map(int, told["array"].split("-"))
started = []
for number in range(first, last + 1):
    log = open(told["output"].replace("%a", str(number)), "w")
    hang = number == last and os.path.exists("{folder}/hang")
    command = "sleep 1000" if hang else told["wrap"]
    environment = os.environ | {{"SLURM_ARRAY_TASK_ID": str(number)}}
    started.append(subprocess.Popen(["sh", "-c", command], cwd=told["chdir"], env=environment,
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True).pid)
with open("{folder}/jobs", "a") as jobs:
    print(*started, file=jobs)
print(len(open("{folder}/jobs").readlines()), "cluster", sep=";")
"""

SQUEUE = """#!{python}
import os, sys
number = int(next(word for word in sys.argv if word.startswith("--jobs=")).partition("=")[2])
for pid in open("{folder}/jobs").readlines()[number - 1].split():
    try:
        state = open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        continue
    if state != "Z":
        print("RUNNING")
"""

SCANCEL = """#!{python}
import os, sys
for pid in open("{folder}/jobs").readlines()[int(sys.argv[1]) - 1].split():
    try:
        os.killpg(int(pid), 15)
    except OSError:
        pass
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the processes of each job in a line."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(python=sys.executable, folder=folder))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "jobs"


def test_elements_have_the_class_without_its_file(slurm: Path, tmp_path: Path) -> None:
    tasks = own_tasks(tmp_path)
    store = Store(tmp_path / "out" / "runs")
    assert execute(tasks, store, 2, on="slurm") == []
    assert hashes(store, tasks) == [bluewater.run(each.text).decision_hash for each in tasks]


def test_elements_make_all_and_name_what_cannot_be_made(slurm: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "out" / "runs")
    bad = Task("0" * 32, "duration = 3", "the bad one")
    tasks = [bad, *(task(seed) for seed in range(5))]
    seen: list[Progress] = []
    failures = execute(tasks, store, 3, seen.append, "slurm")
    assert [failure.task for failure in failures] == [bad]
    assert "ScenarioError" in failures[0].reason
    assert sum(step.fraction == 1 for step in seen) == 6
    assert len(slurm.read_text().split()) == 3
    here = Store(tmp_path / "here")
    execute(tasks[1:], here, 2)
    assert hashes(store, tasks[1:]) == hashes(here, tasks[1:])
    assert list((tmp_path / "out" / "slurm").iterdir()) == [], "nothing is left but results"


@pytest.mark.slow
def test_what_a_killed_element_did_not_make_is_submitted_again(slurm: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "out" / "runs")
    tasks = [task(seed) for seed in range(6)]
    hang = slurm.with_name("hang")
    hang.touch()

    def kill(step: Progress) -> None:
        if hang.exists():
            hang.unlink()
            os.killpg(int(slurm.read_text().split()[-1]), signal.SIGKILL)

    assert execute(tasks, store, 2, kill, "slurm") == []
    assert len(slurm.read_text().splitlines()) == 2
    assert all(each.key in store for each in tasks)


def test_a_job_that_does_nothing_is_not_submitted_for_ever(
    slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    failures = execute([task(1), task(2)], Store(tmp_path / "runs"), 2, on="slurm")
    assert len(failures) == 2
    assert str(tmp_path / "slurm") in failures[0].reason
    assert len(slurm.read_text().splitlines()) == 1


def test_ctrl_c_cancels_the_job(slurm: Path, tmp_path: Path) -> None:
    tasks = [task(1), task(2, "700000s")]
    # Other tests leave some, such as what looks after multiprocessing.
    others = children(os.getpid())

    def interrupt(step: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as raised:
        execute(tasks, Store(tmp_path / "runs"), 2, interrupt, "slurm")
    assert raised.value.kept == 1
    until = time.monotonic() + 10
    while any(psutil.pid_exists(int(pid)) for pid in slurm.read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert children(os.getpid()) <= others


def test_what_sbatch_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho no such partition >&2; exit 1")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match="no such partition") as raised:
        execute([task(1)], Store(tmp_path / "runs"), 1, on="slurm")
    assert "SBATCH_PARTITION" in str(raised.value.hint)


def test_shards_are_all_runs_once() -> None:
    tasks = [Task(str(i), "", "") for i in range(10)] + [Task("3", "", "")]
    parts = [Shard.parse(f"{i}/3").of(tasks) for i in (1, 2, 3)]
    assert sorted(each.key for part in parts for each in part) == [str(i) for i in range(10)]
    assert [len(part) for part in parts] == [4, 3, 3]


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1/0", "-1/2", "1", "a/b", "1/2/3"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(InputError, match="not a part"):
        Shard.parse(text)


def test_shards_of_a_sweep_meet_in_one_folder(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "buffers.toml"
    file.write_text(TINY + '[sweep]\n"queue.0.buffer" = ["20kB", "50kB", "100kB"]\n')
    for part in ("1/2", "2/2"):
        found = cli("sweep", str(file), "--shard", part)
        assert found.exit_code == 0
        assert "makes the tables" in found.stderr
        assert not (cli.out / "buffers").exists()
    found = cli("sweep", str(file))
    assert "3 runs, 3 of them made before" in found.stderr
    assert (cli.out / "buffers" / "summary.csv").exists()

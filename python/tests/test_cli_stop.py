from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest
from conftest import TINY, children


@cache
def loading() -> float:
    """Processor time of a command that only loads, s."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "bluewater", "--version"], check=True, capture_output=True
    )
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system


def working(pid: int) -> bool:
    """Whether a process or one that it started has spent two seconds more than loading takes."""
    processes = {pid, *children(pid)}
    times = [Path(f"/proc/{each}/stat").read_text().split()[13:15] for each in processes]
    enough = (2 + 1.5 * loading()) * os.sysconf("SC_CLK_TCK")
    return any(sum(map(int, each)) > enough for each in times)


@pytest.mark.slow
def test_no_color_and_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text(TINY.replace('duration = "2s"', 'duration = "100000s"'))
    for command in (["run"], ["sweep"]):
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bluewater",
                *command,
                str(path),
                "--out",
                str(tmp_path / "out"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        # Until it is at work: a busy machine takes its time to load it.
        deadline = time.monotonic() + 60
        while not working(process.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 130, err
        assert "interrupted" in err
        assert "\x1b[" not in out + err
        assert not list((tmp_path / "out").glob("runs/.tmp-*"))


def test_ctrl_c_while_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise KeyboardInterrupt")
    found = subprocess.run(
        [sys.executable, "-m", "bluewater", "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert (found.returncode, found.stderr) == (130, "interrupted\n")


ENDLESS = """
from pathlib import Path
from bluewater.aqm import Aqm

class Endless(Aqm):
    def on_arrival(self, now, packet, queue):
        while now > 1_000_000_000:
            Path("called").touch()
"""


@pytest.mark.slow
def test_a_method_without_an_end_is_stopped(tmp_path: Path) -> None:
    """By Ctrl-C, and when whoever started it is killed."""
    (tmp_path / "endless.py").write_text(ENDLESS, "utf-8")
    for how in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bluewater", "compare", "python:endless.py:Endless"),
                *("--rate", "10mbit", "--out", str(tmp_path / "out")),
            ],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not (tmp_path / "called").exists():
            assert time.monotonic() < deadline, how
            time.sleep(0.1)
        workers = children(process.pid)
        assert workers
        process.send_signal(how)
        process.wait(timeout=20)
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{each}").exists() for each in workers):
            assert time.monotonic() < deadline, how
            time.sleep(0.1)
        (tmp_path / "called").unlink()

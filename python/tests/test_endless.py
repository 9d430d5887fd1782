"""Methods of users' classes that do not return, and those that only seem to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w

import bluewater
from bluewater import endless
from bluewater.own import OwnError

if TYPE_CHECKING:
    from pathlib import Path

CONTROLLER = """
from bluewater.control import Controller


class Mine(Controller):
    def start(self, s):
        self.cwnd, self.calls = float(s.initial_window), 0

    def on_ack(self, a):
        self.calls += 1
        {}
"""
QUEUE = """
from bluewater.aqm import Aqm


class Mine(Aqm):
    def start(self, now, queue):
        self.calls = 0

    def on_arrival(self, now, packet, queue):
        self.calls += 1
        {}
"""
FOREVER = "while self.calls == 20: pass"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endless, "LIMIT_S", 0.3)
    monkeypatch.setattr(endless, "LOOK_S", 0.05)


def scenario(folder: Path, text: str, body: str) -> dict[str, Any]:
    """Two flows for two seconds, over or under the class, which is in a file."""
    file = folder / "mine.py"
    file.write_text(text.format(body), encoding="utf-8")
    name = f"python:{file}:Mine"
    own = {"transport": name} if "Controller" in text else {"transport": "sack"}
    return {
        "duration": "2s",
        "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "10ms"},
        "queue": [{"aqm": name if text is QUEUE else "droptail", "buffer": "40p"}],
        "traffic": [{**own, "flows": 2}],
    }


def test_a_method_without_end_is_named_with_line_and_time(tmp_path: Path) -> None:
    for text, line in ((CONTROLLER, "mine.py:11: Mine.on_ack"), (QUEUE, "mine.py:11: Mine.on_a")):
        with pytest.raises(OwnError) as failed:
            bluewater.run(scenario(tmp_path, text, FOREVER))
        assert line in str(failed.value)
        assert " s: TimeoutError: it did not return within 0.3 s of real" in str(failed.value)


def test_a_method_that_catches_everything_ends_too(tmp_path: Path) -> None:
    body = "\n        ".join(
        ["while True:", "    try:", "        self.calls += 1", "    except BaseException: pass"]
    )
    with pytest.raises(OwnError, match="did not return within"):
        bluewater.run(scenario(tmp_path, CONTROLLER, body))


def test_a_class_that_does_not_return_is_checked_no_further(tmp_path: Path) -> None:
    began = time.monotonic()
    for text in (CONTROLLER, QUEUE):
        scenario(tmp_path, text, FOREVER)
        (found,) = bluewater.check(f"python:{tmp_path / 'mine.py'}:Mine")
        assert found.law == "works"
        assert "did not return within" in found.said
    assert time.monotonic() - began < 5


def test_many_calls_may_take_longer_than_one(tmp_path: Path) -> None:
    body = "if self.calls < 60: __import__('time').sleep(0.02)"
    began = time.monotonic()
    bluewater.run(scenario(tmp_path, CONTROLLER, body))
    assert time.monotonic() - began > 2 * endless.LIMIT_S


def test_loading_a_module_may_take_long(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.8)\nNUMBER = 7\n")
    bluewater.run(scenario(tmp_path, f"import slow\n{CONTROLLER}", "assert slow.NUMBER == 7"))


def test_a_debugged_method_may_take_long(tmp_path: Path) -> None:
    body = "if self.calls == 5: import sys; sys._getframe().f_trace = print; self.wait()"
    made = scenario(tmp_path, CONTROLLER, body)
    file = tmp_path / "mine.py"
    wait = "\n    def wait(self):\n        import time\n        time.sleep(0.8)\n"
    file.write_text(file.read_text() + wait)
    bluewater.run(made)


def test_the_watcher_is_there_only_while_it_is_needed(tmp_path: Path) -> None:
    made = scenario(tmp_path, CONTROLLER, "pass")
    with endless.watched():
        bluewater.run(made)
        assert endless._watcher is not None
    unwatched()


def unwatched() -> None:
    """Waits until the watcher has ended."""
    for _ in range(200):
        if endless._watcher is None:
            return
        time.sleep(0.05)
    pytest.fail("the watcher goes on")


def test_a_fork_has_a_watcher_of_its_own(tmp_path: Path) -> None:
    made = scenario(tmp_path, CONTROLLER, FOREVER)
    with endless.watched():
        child = os.fork()
        if not child:
            code = 1
            try:
                bluewater.run(made)
            except OwnError as error:
                code = 0 if "did not return within" in str(error) else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_without_a_thread_nothing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    unwatched()
    monkeypatch.setattr(threading.Thread, "start", refused)
    body = "if self.calls == 5: __import__('time').sleep(0.8)"
    bluewater.run(scenario(tmp_path, CONTROLLER, body))


@pytest.mark.parametrize("body", ["pass", FOREVER])
def test_nothing_is_left_for_the_interpreter_to_look_for(tmp_path: Path, body: str) -> None:
    """An exception that was revoked is looked for for good, and a profiler then never ends."""
    (tmp_path / "profiled.py").write_text(
        "import cProfile, sys, tomllib\n"
        "import bluewater\n"
        "from bluewater import endless\n"
        "from bluewater.own import OwnError\n"
        "endless.LIMIT_S, endless.LOOK_S = 0.3, 0.05\n"
        "try:\n"
        "    bluewater.run(tomllib.loads(sys.argv[1]))\n"
        "except OwnError as error:\n"
        "    assert 'did not return' in str(error)\n"
        "def some():\n"
        "    return [n for n in range(100)]\n"
        "with cProfile.Profile():\n"
        "    some()\n"
    )
    made = tomli_w.dumps(scenario(tmp_path, CONTROLLER, body))
    subprocess.run([sys.executable, tmp_path / "profiled.py", made], timeout=60, check=True)

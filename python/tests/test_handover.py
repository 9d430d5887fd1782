"""The gateway's commands: handed over word by word, before anything else is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bluewater import handover, programs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("shell --rate 1mbit --ecn -- ls -l", "shell --rate 1mbit --ecn -- ls -l"),
        ("shell --help", "shell --help"),
        ("gateway --lan a --wan b", "run --lan a --wan b"),
        ("gateway", "run"),
        ("gateway ctl lab show", "ctl lab show"),
        ("gateway join lab -- ls", "join lab -- ls"),
        ("gateway bench", "bench"),
        ("replay run.arr", "replay run.arr"),
        ("replay run.arr --aqm my.py:Mine", None),
        ("replay run.arr --aqm=codel", None),
        ("replay --help", None),
        ("testbed --rate 1mbit", "testbed --rate 1mbit"),
        ("testbed", "testbed"),
        ("testbed feng/fig13 --quick", None),
        ("gateway view lab", None),
        ("run scenario.toml", None),
        ("--help", None),
    ],
)
def test_what_is_handed_over(line: str, task: str | None) -> None:
    assert handover.task(line.split()) == (task and task.split())


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A gateway that tells what it was called with."""
    path = tmp_path / "bluewater-gateway"
    path.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    path.chmod(0o755)
    return path


def call(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bluewater", *arguments],
        env={**os.environ, "BLUEWATER_GATEWAY": str(program)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_words_arrive_as_they_are(program: Path) -> None:
    # A parser in between would take the "--" out, and the option would be the command.
    done = call(program, "shell", "--ecn", "--", "ls", "-l", "--", "a b")
    assert done.stdout == "<shell><--ecn><--><ls><-l><--><a b>"


def test_help_of_the_gateway_lists_its_commands(program: Path) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        text = call(program, "gateway", *arguments).stdout
        assert text.endswith("<run><--help>")
        for name in ("ctl", "view", "join", "bench"):
            assert f"\n  {name} " in text


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = call(tmp_path / "none", "shell", "--help")
    assert done.returncode == 2
    assert "No such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_slow_is_loaded_before() -> None:
    script = (
        "import sys; from bluewater import __main__, handover; handover.task(['shell']);"
        "print({'typer', 'polars', 'bluewater._core', 'subprocess'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_program_is_built_only_if_a_source_is_newer(tmp_path: Path) -> None:
    program, source = tmp_path / "bluewater-x", tmp_path / "a source.rs"
    for path in (program, source):
        path.write_text("")
    listed = program.with_name("bluewater-x.d")
    assert not programs._is_current(program)
    listed.write_text(f"{program}: {str(source).replace(' ', chr(92) + ' ')}\n")
    os.utime(source, (1000, 1000))
    os.utime(program, (2000, 2000))
    assert programs._is_current(program)
    os.utime(source, (3000, 3000))
    assert not programs._is_current(program)
    source.unlink()
    assert not programs._is_current(program)

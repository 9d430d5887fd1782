"""The gateway's commands: handed over word by word, before anything else is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bluewater import handover, programs
from bluewater.cli import app
from bluewater.errors import InputError

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
        ("replay run.arr --packets", "replay run.arr --packets"),
        ("replay run.arr", None),
        ("replay run.arr --aqm my.py:Mine", None),
        ("replay run.arr --aqm=codel", None),
        ("replay run.arr --to x.parquet", None),
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


def test_a_recording_is_the_program_s_and_another_file_is_refused_without_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.arr"
    file.write_bytes(b"hello")
    assert handover.task(["replay", str(file)]) is None
    file.write_bytes(b"bwarr\0\0\0")
    assert handover.task(["replay", str(file)]) == ["replay", str(file)]


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
        done = call(program, "gateway", *arguments)
        # Without what it needs it is a wrong line, as of `shell`.
        text, code = (done.stdout, 0) if arguments else (done.stderr, 2)
        assert done.returncode == code
        assert text.endswith("<run><--help>")
        for name in ("ctl", "view", "join", "bypass", "bench"):
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


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with a gateway that is older than its sources, and a compiler that tells."""
    home = tmp_path / "tree"
    release = home / "target" / "release"
    release.mkdir(parents=True)
    (home / "Cargo.toml").touch()
    program = release / "bluewater-gateway"
    program.write_text("#!/bin/sh\necho old\n")
    program.chmod(0o755)
    cargo = tmp_path / "bin" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(f"#!/bin/sh\ntouch {tmp_path}/compiled\nexit 1\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("BLUEWATER_GATEWAY", raising=False)
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.setattr(programs, "__file__", str(home / "python" / "bluewater" / "programs.py"))
    programs.find.cache_clear()
    return home


def test_who_wants_to_read_waits_for_no_compiler(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A report and a usage had begun with compiling, for minutes."""
    became: list[str] = []
    monkeypatch.setattr(os, "execv", lambda path, _: became.append(path))
    with programs.as_they_are():
        assert programs.find("bluewater-gateway") == str(tree / "target/release/bluewater-gateway")
    for line in (["shell", "--help"], ["run", "-h"], ["testbed", "--help"], ["ctl", "--help"]):
        handover.become(line)
    assert became == [str(tree / "target/release/bluewater-gateway")] * 4
    with pytest.raises(SystemExit) as ended:
        handover.become(["run"])
    assert ended.value.code == 2
    assert "old" in capfd.readouterr().err
    assert not (tmp_path / "compiled").exists()
    # What is after `--` is another program's, and this one builds.
    monkeypatch.setenv("BLUEWATER_GATEWAY", "")
    with pytest.raises(InputError, match="not installed"):
        handover.become(["shell", "--", "ls", "--help"])
    assert (tmp_path / "compiled").exists()


def test_a_program_that_is_not_built_is_said_with_how(tree: Path, tmp_path: Path) -> None:
    (tree / "target/release/bluewater-gateway").unlink()
    with programs.as_they_are(), pytest.raises(InputError, match="not built") as raised:
        programs.find("bluewater-gateway")
    assert "cargo build" in (raised.value.hint or "")
    assert not (tmp_path / "compiled").exists()


@pytest.mark.slow
def test_a_report_builds_nothing(tree: Path, tmp_path: Path) -> None:
    from bluewater.kinds import testbed  # noqa: PLC0415

    for each in (testbed.missing, testbed.version):
        each.cache_clear()
    found = CliRunner().invoke(app, ["report", "--quick", "--out", str(tmp_path / "out")])
    for each in (testbed.missing, testbed.version):
        each.cache_clear()
    assert found.exit_code == 2
    assert "runs are missing" in found.stderr
    assert tree.exists()
    assert not (tmp_path / "compiled").exists()

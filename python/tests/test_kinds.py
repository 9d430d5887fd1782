from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from bluewater import _core, programs
from bluewater.errors import InputError
from bluewater.kinds import KINDS, testbed
from bluewater.kinds.kind import fingerprint
from bluewater.results.store import run_key
from bluewater.study.experiments.experiment import parse

if TYPE_CHECKING:
    from pathlib import Path

CODE = '''"""What it is."""
FACTOR = 2

def twice(x: int) -> int:
    """Doubles."""
    return FACTOR * x  # by multiplying
'''


def of(folder: Path, text: str) -> str:
    file = folder / "code.py"
    file.write_text(text)
    fingerprint.cache_clear()
    return fingerprint(str(file))


def test_a_comment_leaves_results_in_place(tmp_path: Path) -> None:
    before = of(tmp_path, CODE)
    for old, new in [
        ("  # by multiplying", ""),
        ('"""Doubles."""', '"""Twice as much."""'),
        ('"""What it is."""\n', ""),
        ("FACTOR * x", "(FACTOR\n        * x)"),
    ]:
        assert old in CODE
        assert of(tmp_path, CODE.replace(old, new)) == before, new


def test_other_code_makes_results_old(tmp_path: Path) -> None:
    every = {of(tmp_path, CODE.replace("2", "3")), of(tmp_path, CODE.replace("*", "+"))}
    assert len(every | {of(tmp_path, CODE)}) == 3


@pytest.mark.timeout(600)  # a gateway that is not current is built first
def test_every_kind_says_what_it_is_made_by() -> None:
    versions = {name: kind.version() for name, kind in KINDS.items()}
    assert versions["simulator"] == _core.version()
    assert all(version.startswith(_core.version()) for version in versions.values())
    assert len(set(versions.values())) == len(KINDS)


def gateway(monkeypatch: pytest.MonkeyPatch, path: Path, version: str) -> None:
    path.write_text(f"#!/bin/sh\necho bluewater-gateway {version}\n")
    path.chmod(0o755)
    monkeypatch.setattr(programs, "find", lambda _: str(path))
    testbed.version.cache_clear()


def test_another_gateway_makes_runs_with_real_packets_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
place = "testbed"
duration = "3s"
network = { preset = "dumbbell", rate = "8mbit", delay = "5ms" }
queue = [{ aqm = "blue", buffer = "40kB" }]
traffic = [{ transport = "sack", packet = "1500B" }]
"""
    keys = []
    try:
        for version in ("1.0+a", "1.0+b", "1.0+a"):
            gateway(monkeypatch, tmp_path / "gateway", version)
            found = parse(text, "x.toml", "x")
            keys += [task.key for task, _ in found.plan(found.size("full"))]
        assert keys[0] == keys[2] != keys[1]
    finally:
        testbed.version.cache_clear()


def test_a_gateway_that_is_missing_is_no_error_before_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> str:
        raise InputError("not there")

    monkeypatch.setattr(programs, "find", missing)
    testbed.version.cache_clear()
    assert "gateway missing" in testbed.version()
    testbed.version.cache_clear()


@pytest.mark.timeout(600)
def test_the_gateway_tells_its_own() -> None:
    program = programs.find("bluewater-gateway")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert "+" in said.stdout
    assert said.stdout.split()[-1] in testbed.version()


def test_keys_are_of_scenario_and_makers() -> None:
    assert run_key("a", "1") != run_key("a", "2")

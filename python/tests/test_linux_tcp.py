"""The script that measures TCP of Linux, without a kernel."""

import csv
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "crates/validation/reference"
SETTING = ["qdisc", "limit", "rate_mbps", "rtt_ms", "flows", "cc", "ecn", "udp_mbps", "seconds"]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module; the kernel's, which it imports, is gone afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "uml", None)
    monkeypatch.delitem(sys.modules, "uml")
    spec = importlib.util.spec_from_file_location("linux_tcp", REFERENCE / "linux_tcp.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("table", "settings"),
    [("tcp", "settings"), ("bbr", "bbr_settings"), ("dctcp", "dctcp_settings")],
)
def test_each_row_is_of_a_setting(script: ModuleType, table: str, settings: str) -> None:
    known = {
        tuple(str(script.complete(s)[c]) for c in SETTING) for s in getattr(script, settings)()
    }
    with (REFERENCE / f"linux_{table}.csv").open() as file:
        rows = {tuple(row[c] for c in SETTING) for row in csv.DictReader(file)}
    assert rows
    assert rows <= known


@pytest.mark.parametrize(("words", "kernel"), [([], "linux.uml"), (["--kernel", "mine"], "mine")])
def test_a_setting_runs_under_the_kernel_that_is_named(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, words: list[str], kernel: str
) -> None:
    told: list[Any] = []

    def run(setting: dict[str, Any], *others: Any) -> dict[str, Any]:
        told.append((setting["seed"], others[-1]))
        return dict.fromkeys(script.COLUMNS)

    monkeypatch.setattr(script.kernel, "run", run)
    setting = {"qdisc": "pfifo limit 41", "rate_mbps": 10, "rtt_ms": 20, "cc": "reno", "ecn": 0}
    monkeypatch.setattr(sys, "argv", ["x", "--seeds", "2", "--json", json.dumps(setting), *words])
    script.outside()
    assert told == [(1, kernel), (2, kernel)]

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli


def test_explain(cli: Cli) -> None:
    assert "freeze_time" in cli("explain", "blue", keep_out=False).stdout
    found = json.loads(cli("explain", "red", "--json", keep_out=False).stdout)
    parameter = next(each for each in found["parameters"] if each["name"] == "w_q")
    assert set(parameter) == {"name", "kind", "unit", "default", "allowed", "doc", "source"}


def test_explain_tells_what_is_remembered(cli: Cli) -> None:
    def state(aqm: str, *more: str) -> dict[str, int]:
        found = json.loads(cli("explain", aqm, "--json", *more, keep_out=False).stdout)["state"]
        assert isinstance(found, dict)
        return found

    assert state("droptail")["queue"] < state("sfb")["queue"]
    assert state("sfb")["per_flow"] == 0
    assert state("sfb", "--buffer", "1000p")["per_packet"] == state("sfb")["per_packet"] > 0
    said = " ".join(cli("explain", "blue", "--buffer", "200kB", keep_out=False).stdout.split())
    assert f"remembers {state('blue')['queue']} bytes" in said
    assert said.endswith("with a buffer of 200kB.")
    refused = cli("explain", "blue", "--buffer", "7", keep_out=False)
    assert refused.exit_code == 2
    assert "allowed: packets (100p) or bytes (200kB)" in refused.stderr


def test_explain_advises_on_bins(cli: Cli, tmp_path: Path) -> None:
    """The paper's 46 bins and 8 flows: 2 x 23 has 8.96 %, one level 16.12 %; 3 x 15 is better."""
    ask = ["explain", "sfb", "--bins", "46", "--nonresponsive", "8"]
    drawn = ("--out", str(tmp_path))
    rows = [line.split() for line in cli(*ask, *drawn, keep_out=False).stdout.splitlines()]
    assert ["1", "46", "16.1", "%"] in rows
    assert ["2", "23", "8.96", "%"] in rows
    assert ["3", "15", "7.63", "%", "best"] in rows
    assert ["levels", "=", "3,", "bins", "=", "15"] in rows
    found = json.loads(cli(*ask, "--json", keep_out=False).stdout)
    assert found["best"] == {"levels": 3, "bins": 15}
    assert found["shapes"][1]["misclassified"] == pytest.approx(0.089555, abs=1e-6)


def test_explain_draws_figure_17(cli: Cli, tmp_path: Path) -> None:
    written = cli("explain", "sfb", "--bins", "900", "--out", str(tmp_path), keep_out=False).stdout
    assert f"{tmp_path}/sfb-900-bins.png" in written.split()
    points = pl.read_csv(tmp_path / "sfb-900-bins.csv")
    assert points["line"].n_unique() == 9
    at = points.filter(pl.col("x") == 600).sort("y")
    assert at["line"][0] == "1 level", "past half as many flows as bins, one level is best"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["blue", "--bins", "46"], "blue has no bins"),
        (["sfb", "--bins", "46"], "--bins 46 --nonresponsive 8"),
        (["sfb", "--nonresponsive", "8"], "--bins 46 --nonresponsive 8"),
        (["sfb", "--bins", "0"], "--bins"),
    ],
)
def test_explain_says_what_the_advice_needs(cli: Cli, arguments: list[str], says: str) -> None:
    found = cli("explain", *arguments, keep_out=False)
    assert found.exit_code == 2
    assert says in found.stderr


def test_a_class_is_explained_by_the_name_that_compare_takes(cli: Cli, tmp_path: Path) -> None:
    """The name of the file and class alone was no discipline."""
    file = tmp_path / "mine.py"
    file.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Mine(Aqm):\n"
        '    """Signals nothing."""\n'
        "    def on_arrival(self, now, packet, queue):\n"
        "        return None\n"
    )
    for name in (f"{file}:Mine", f"python:{file}:Mine"):
        found = cli("explain", name, keep_out=False)
        assert (found.exit_code, "Signals nothing." in found.stdout) == (0, True)

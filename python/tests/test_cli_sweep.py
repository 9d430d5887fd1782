from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import TINY, Cli

import bluewater


@pytest.mark.filterwarnings("default::bluewater.errors.DamagedWarning")
def test_a_damaged_result_is_put_aside_and_made_again(cli: Cli, tiny: Path) -> None:
    first = cli("run", str(tiny), "--json")
    (folder,) = (cli.out / "runs").glob("??/*")
    for name, text in [("tables.json", b"{}"), ("meta.json", b"{"), ("scenario.toml", b"")]:
        (folder / name).write_bytes(text)
        again = cli("sweep", str(tiny), "--json")
        assert again.exit_code == 0
        assert str(folder / name) in again.stderr
        assert "put aside" in again.stderr
        assert "1 runs, 0 of them made before" in again.stderr
        assert json.loads(first.stdout)["summary"]["loss"] == json.loads(again.stdout)[0]["loss"]
        assert "put aside" not in cli("sweep", str(tiny)).stderr
    assert len(list((cli.out / "runs" / "damaged").iterdir())) == 3


def test_hosts_are_no_obstacle_to_a_comparison(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    hosts = TINY.replace("[[traffic]]", "[[traffic]]\nhost = 1\npeer = 2\ndscp = 'AF41'")
    file.write_text(hosts)
    axes = {"queue.0.aqm": ["cake", "fq-codel"]}
    found = bluewater.sweep(file, axes, out=tmp_path, progress=False)
    assert not found.failures
    assert found.runs.height == 2


def test_seeds_that_change_nothing_are_said(cli: Cli, tmp_path: Path) -> None:
    still = TINY.replace('"red"', '"droptail"').replace('"feng"', '"dumbbell"')
    still = still.replace('start = "0s..1s"\n', "")
    path = tmp_path / "still.toml"
    path.write_text(still)
    assert "seed changes nothing" in cli("sweep", str(path), "--reps", "2").stderr
    path.write_text(TINY)
    assert "seed changes nothing" not in cli("sweep", str(path), "--reps", "2").stderr


def test_tables_of_other_runs_are_not_overwritten(cli: Cli, tiny: Path) -> None:
    def folder(*more: str) -> Path:
        told = cli("sweep", str(tiny), *more).stderr.strip().splitlines()
        return Path(told[-1].removeprefix("tables in "))

    first = folder()
    assert first == cli.out / "tiny"
    kept = (first / "summary.csv").read_bytes()
    beside = folder("--seed", "2")
    assert beside.parent == cli.out
    assert beside.name.startswith("tiny-")
    assert (first / "summary.csv").read_bytes() == kept != (beside / "summary.csv").read_bytes()
    assert "and keeps them" in cli("sweep", str(tiny), "--seed", "2").stderr
    # The same again is no other study, whatever was made between.
    assert (folder("--seed", "2"), folder("--seed", "1")) == (beside, first)


@pytest.mark.parametrize("name", ["seed", "loss", "time_s", "reading"])
def test_an_axis_does_not_hide_what_is_measured(cli: Cli, tiny: Path, name: str) -> None:
    axis = f'\n[sweep]\n{name} = {{ key = "queue.0.buffer", values = [50], unit = "kB" }}\n'
    tiny.write_text(tiny.read_text() + axis)
    found = cli("sweep", str(tiny))
    assert found.exit_code == 2
    assert f"sweep.{name}" in found.stderr

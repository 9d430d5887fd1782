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


THREE = """\
duration = "2s"
link = [
    { from = "a", to = "r", rate = "20mbit", delay = "5ms" },
    { from = "r", to = "s", rate = "10mbit", delay = "5ms" },
    { from = "s", to = "b", rate = "8mbit", delay = "5ms" },
]
queue = [
    { link = "a->r", aqm = "droptail", buffer = "100p" },
    { link = "r->s", aqm = "red", buffer = "100p", params = { mode = "bytes" } },
    { link = "s->b", aqm = "codel", buffer = "100kB" },
]
traffic = [{ flows = 4, transport = "cubic", from = ["a"], to = ["b"], start = "0s..1s" }]
"""
"""A scenario with three queues, the last of which is the bottleneck."""


def test_the_queue_of_a_table_is_named_and_can_be_chosen(cli: Cli, tmp_path: Path) -> None:
    """The table had the first queue's loss of 0 %, and did not say so."""
    file = tmp_path / "three.toml"
    file.write_text(THREE)
    wish = ["sweep", str(file), "--reps", "2"]
    first = cli(*wish)
    assert "the table is of a->r, the first queue; --queue has r->s, s->b" in first.stderr
    last = cli(*wish, "--queue", "s->b", "--table", str(tmp_path / "last.csv"))
    assert "the table is of" not in last.stderr
    found = bluewater.sweep(file, reps=2, out=cli.out, progress=False)
    for run, of in zip(found.at("s->b").runs.to_dicts(), found.results(), strict=True):
        own = of[1].queues.to_dicts()[2]
        assert {key: run[key] for key in own} == own
        assert run["seed"] == of[0]["seed"]
    assert all(found.at("s->b").runs["loss"] > 0)
    assert not any(found.runs["loss"])
    assert found.at("a->r").runs.equals(found.runs)
    assert "0.0" not in (tmp_path / "last.csv").read_text().splitlines()[1].split(",")[:2]
    refused = cli(*wish, "--queue", "s-b")
    assert refused.exit_code == 2
    for told in ("unknown queue 's-b'", "at --queue", "did you mean 's->b'?"):
        assert told in refused.stderr
    file.write_text(TINY)
    assert "the table is of" not in cli("sweep", str(file)).stderr


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

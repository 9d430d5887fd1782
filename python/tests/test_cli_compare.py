from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Cli

import bluewater
from bluewater.plots.run import side_by_side, stem
from bluewater.results.overview import Mean


def test_no_star_where_the_seed_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bluewater.cli import compare  # noqa: PLC0415

    setup: dict[str, Any] = {"rate": "5mbit", "flows": 5, "duration": "6s", "warmup": "2s"}
    found = bluewater.compare(
        ["red", "codel"], seeds=[1, 2, 3], settings={"traffic.0.start": "0s"}, jobs=2,
        out=tmp_path, progress=False, **setup,
    )  # fmt: skip
    hashes = {run.decision_hash for at, run in found.results() if at["aqm"] == "codel"}
    assert len(hashes) == 1
    apart = found.differences("aqm", "red").filter(pl.col("significant"))
    assert not apart.is_empty()
    _, codel = compare.overview(found, "red").rows
    assert not any(isinstance(cell, Mean) and cell.star for cell in codel)


@pytest.mark.slow
def test_compare_makes_a_table_and_a_picture(cli: Cli) -> None:
    arguments = ["compare", "red", "blue", "droptail", "--rate", "5mbit", "--flows", "10",
                 "--duration", "4s", "--warmup", "1s"]  # fmt: skip
    found = cli(*arguments)
    assert found.exit_code == 0
    (picture,) = cli.out.glob("compare-red-blue-droptail-*.png")
    assert str(picture) in found.stdout
    rows = json.loads(cli(*arguments, "--json").stdout)
    assert [row["aqm"] for row in rows] == ["red", "blue", "droptail"]


@pytest.mark.slow
def test_a_picture_for_a_paper_says_of_which_seed_it_is(cli: Cli, tmp_path: Path) -> None:
    link = ["--rate", "5mbit", "--flows", "5", "--duration", "2s", "--size", "column"]
    for more, said in (
        (["--seed", "3"], "Seed 3."),
        (["--reps", "2"], "Seed 1; the table has means over 2 seeds."),
    ):
        picture = tmp_path / "figure.svg"
        found = cli("compare", "red", "blue", "pie", *link, *more, "--picture", str(picture))
        assert found.exit_code == 0
        assert said in picture.read_text()
        assert "inches high" not in found.stderr
    many = ["red", "blue", "pie", "codel", "sfb", "drr", "sfq", "gsp"]
    found = cli("compare", *many, *link, "--picture", str(tmp_path / "many.png"))
    assert re.search(r"picture is 9\.\d inches high", found.stderr)


SMALL = ["--rate", "5mbit", "--flows", "5", "--duration", "6s"]


@pytest.mark.slow
def test_another_question_has_another_picture(cli: Cli) -> None:
    drawn = [
        cli("compare", "red", *SMALL, *more).stdout.split()[-1]
        for more in ([], ["--no-ecn"], ["--seed", "2"], [])
    ]
    assert len(set(drawn[:3])) == 3
    assert drawn[0] == drawn[3]
    assert all(Path(path).exists() for path in drawn)


def test_what_is_left_out_is_a_third_of_a_comparison(cli: Cli) -> None:
    (row,) = json.loads(cli("compare", "red", *SMALL, "--json").stdout)
    assert (row["duration_s"], row["measured_s"]) == (6, 4)


def test_a_comparison_shows_the_others_where_one_fails(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from bluewater.aqm import Aqm\n"
        "class Broken(Aqm):\n"
        "    def on_arrival(self, now, packet, queue):\n"
        "        return 1 / 0\n",
        "utf-8",
    )
    found = cli("compare", "red", f"python:{own}:Broken", "blue", *SMALL)
    assert found.exit_code == 1
    assert "failed: compare, aqm=python:" in found.stderr
    assert "ZeroDivisionError" in found.stderr
    assert all(name in found.stdout for name in (" red ", " blue "))
    assert list(cli.out.glob("compare-red-blue-*.png"))


def test_compare_shows_each_discipline_s_own_signal(tmp_path: Path) -> None:
    names = ["red", "codel", "sfb", "droptail", "fq-codel"]
    made = bluewater.compare(
        names, rate="5mbit", flows=20, duration="3s", warmup="1s", out=tmp_path, progress=False
    )
    grid, width = side_by_side([(str(at["aqm"]), run) for at, run in made.results()])
    assert width == 3
    assert len(grid) == 12
    shown = [panel for panel in grid if panel is not None]
    assert len(shown) == 10
    titles = [panel.title for panel in shown]
    assert titles[3:6] == ["red: p_a", "codel: sojourn", "sfb: p_mean"]
    assert titles[8:] == ["droptail: drops", "fq-codel: queues"]
    assert all(panel.points["y"].drop_nulls().len() > 0 for panel in shown)
    assert shown[0].y.high == shown[2].y.high == shown[7].y.high


def test_many_names_make_no_name_too_long() -> None:
    assert stem(["red", "blue"]) == "compare-red-blue"
    assert stem(["red", "blue"], "a") != stem(["red", "blue"], "b")
    names = [entry["name"] for entry in bluewater.catalog()["aqms"]]
    assert len(stem(names)) < 100
    assert stem(names) != stem(names[:-1])


def test_compare_with_seeds_settings_and_other_traffic(cli: Cli) -> None:
    found = cli(
        "compare", "red", "blue", "--rate", "5mbit", "--flows", "10", "--duration", "3s",
        "--warmup", "1s", "--reps", "3", "--against", "cbr:1mbit", "--set", "queue.0.buffer=30p",
    )  # fmt: skip
    assert found.exit_code == 0
    assert "±" in found.stdout
    assert "differs from red" in found.stderr
    assert "throughput of" in found.stdout
    assert found.stdout.count("Mb/s") == 4
    assert "delay p50, p99 of" in found.stdout
    refused = cli("compare", "red", "--against", "udp:3")
    assert refused.exit_code == 2
    assert "cbr" in refused.stderr


def test_compare_tells_how_long_each_kind_of_flow_waits(cli: Cli) -> None:
    load = ("--rate", "20mbit", "--rtt", "20ms", "--flows", "2", "--duration", "8s",
            "--warmup", "3s", "--transport", "prague", "--against", "cubic:2")  # fmt: skip
    (dual,) = json.loads(cli("compare", "dualpi2", *load, "--json").stdout)
    low, classic = (dual["delays_of"][name] for name in ("flows", "cubic:2"))
    # The step of the L queue marks at 1 ms (RFC 9332); the classic queue's target is 15 ms.
    assert low["delay_p50_s"] < 1e-3
    assert classic["delay_p50_s"] > 5e-3
    assert low["delay_p50_s"] <= low["delay_p99_s"]


@pytest.mark.slow
def test_a_single_flow_has_no_fairness(cli: Cli, tiny: Path) -> None:
    link = ("--rate", "5mbit", "--duration", "2s", "--warmup", "1s")
    for reps in ((), ("--reps", "2")):
        found = cli("compare", "red", "droptail", *link, "--flows", "1", *reps)
        assert found.exit_code == 0
        rows = [line.split() for line in found.stdout.splitlines() if line.strip()]
        assert [row[-1] for row in rows if row[0] in {"red", "droptail"}] == ["–", "–"]
    found = cli("run", str(tiny), "--set", "traffic.0.flows=1")
    assert "fairness (Jain) – (fewer than two bulk flows" in " ".join(found.stdout.split())


def test_beside_an_axis_stands_what_a_signal_is(cli: Cli, tmp_path: Path) -> None:
    """Of CAKE's `sparse` nobody could guess it."""
    picture = tmp_path / "signals.svg"
    found = cli("compare", "cake", "red", "droptail", "--rate", "5mbit", "--flows", "3",
                "--duration", "2s", "--picture", str(picture))  # fmt: skip
    assert found.exit_code == 0
    shown = " ".join(re.findall(r">([^<>]+)</text>", picture.read_text()))
    assert "sparse: new flows" in shown
    assert "p_a: probability with spacing," in shown


@pytest.mark.parametrize("place", ["file.toml", "file.toml/below"])
def test_where_nothing_can_be_written_room_is_not_what_lacks(
    cli: Cli, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file.toml").write_text("")
    found = cli("compare", "red", "--out", str(tmp_path / place), keep_out=False)
    assert found.exit_code == 2
    assert "--out" in found.stderr
    assert "room" not in found.stderr
    assert "finished runs" not in found.stderr

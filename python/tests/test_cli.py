from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import SWEEP, TINY, Cli
from rich.table import Table

from bluewater.cli import console
from bluewater.cli.options import seeds
from bluewater.errors import InputError


def test_list_json(cli: Cli) -> None:
    found = json.loads(cli("list", "--json", keep_out=False).stdout)
    assert set(found) == {"aqms", "transports", "experiments"}
    assert {"red", "blue", "droptail"} <= set(found["aqms"])
    assert "sack" in found["transports"]
    assert "feng/fig5" in found["experiments"]


@pytest.mark.parametrize("command", ["", "reproduce", "report", "compare", "run", "sweep", "plot",
                                     "export", "list", "explain", "bench", "doctor"])  # fmt: skip
def test_help_has_examples(cli: Cli, command: str) -> None:
    found = cli(*filter(None, [command]), "--help", keep_out=False)
    assert found.exit_code == 0
    assert command == "" or f"bluewater {command}" in " ".join(found.stdout.split())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            TINY.replace('"red"', '"blu"'),
            ["queue[0].aqm", '"blu"', "allowed", "did you mean `blue`?"],
        ),
        (TINY.replace('"100kB"', '"0B"'), ["queue[0].buffer", '"0B"']),
        (TINY.replace('"100kB"', '"100kb"'), ["queue[0].buffer", '"100kb"', "hint:"]),
        (TINY.replace('"2s"', '"-2s"'), ["duration", '"-2s"']),
        (TINY.replace("flows", "flowz"), ["flowz", "did you mean `flows`?"]),
        ("x = [", ["TOML"]),
    ],
)
def test_bad_scenarios_exit_2_and_say_where(
    cli: Cli, tmp_path: Path, text: str, says: list[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    for command in ("run", "sweep"):
        found = cli(command, str(path))
        assert found.exit_code == 2
        assert found.stdout == ""
        assert "error: " in found.stderr
        assert "bad.toml" in found.stderr
        if command == "run" and "TOML" not in says:
            assert all(word in found.stderr for word in says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "missing.toml"], "No such file"),
        (["run", "."], "directory"),
        (["reproduce", "feng/fig99"], "unknown experiment"),
        (["reproduce", "feng", "--size", "huge"], "unknown size"),
        (["reproduce", "feng", "--seeds", "1,1"], "seeds repeat"),
        (["reproduce", "feng", "--seeds", "one"], "not a list of seeds"),
        (["reproduce", "feng", "--seeds", "5-1"], "1,2,3 or 1-5"),
        (["reproduce", "feng", "--seeds", "1-3,2"], "seeds repeat"),
        (["plot", "x.toml"], "bluewater run x.toml"),
        (["reproduce", "feng", "--seeds", "1", "--reps", "2"], "--seeds cannot go with"),
        (["report", "feng/fig6-8", "--quick"], "runs are missing"),
        (["compare", "red", "blu"], "did you mean 'blue'?"),
        (["compare", "rde"], "did you mean 'red'?"),
        (["compare", "taildrop"], "it is `droptail` here"),
        (["compare", "red", "--rate", "fast"], "not a rate"),
        (["compare", "red", "--rtt", "20"], "not a duration"),
        (["reproduce", "--jobs", "0"], "jobs"),
    ],
)
def test_bad_arguments_exit_2(cli: Cli, arguments: list[str], says: str) -> None:
    found = cli(*arguments)
    assert found.exit_code == 2
    assert says in " ".join(found.stderr.split())
    assert found.stdout == ""


def test_explain_and_plot_refuse_what_is_not_there(cli: Cli, tmp_path: Path) -> None:
    found = cli("explain", "blu", keep_out=False)
    assert found.exit_code == 2
    assert "hint: did you mean 'blue'?" in found.stderr
    assert cli("plot", str(tmp_path), keep_out=False).exit_code == 2


def test_reproduce_json_and_strict(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments" / "mine"
    folder.mkdir(parents=True)
    claim = """
[[claim]]
id = "a"
text = "All is lost."
paper = "100 %"
measure = "SELECT seed, loss AS value FROM runs WHERE aqm = 'red' AND buffer = 20"
holds = ">= 1"
"""
    (folder / "one.toml").write_text(SWEEP + claim)
    (folder / "two.toml").write_text(SWEEP)
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(folder.parent))
    found = cli("reproduce", "mine/one", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["claims"][0]["verdict"] == "not reproduced"
    both = json.loads(cli("reproduce", "--json").stdout)
    named = json.loads(
        cli("reproduce", *(each["experiment"] for each in both), "mine", "--json").stdout
    )
    assert [each["experiment"] for each in named] == [each["experiment"] for each in both]
    assert [each["experiment"] for each in both] == ["mine/one", "mine/two"]
    assert [each["reused"] for each in both] == [4, 4]
    assert cli("reproduce", "mine/one", "--strict").exit_code == 1
    assert cli("report", "mine").exit_code == 0


def test_a_suite_is_run_by_its_name(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments" / "tests"
    folder.mkdir(parents=True)
    (folder / "one.toml").write_text(SWEEP)
    (folder / "paper.toml").write_text('title = "Tests"\ncite = "T"\nsource = "us"\nsuite = true\n')
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(folder.parent))
    found = json.loads(cli("suite", "tests", "--json").stdout)
    assert (found["experiment"], found["size"]) == ("tests/one", "full")


CLAIMED = f"""{SWEEP}
[[claim]]
id = "a"
origin = "ours"
text = "Some is lost."
paper = "some"
measure = "SELECT seed, loss AS value FROM runs WHERE aqm = 'R' AND buffer = 20"
holds = "> 0"
plot = "losses"
[[plot]]
id = "losses"
title = "Losses"
caption = "By buffer."
kind = "spread"
x = {{ label = "Buffer" }}
y = {{ label = "Loss" }}
[[plot.panel]]
title = "losses"
sql = "SELECT buffer AS x, loss AS y, aqm AS line, seed FROM runs"
"""


def test_an_experiment_of_ones_own_is_reproduced_from_where_it_stands(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my own"
    folder.mkdir()
    (folder / "loss.toml").write_text(CLAIMED)
    monkeypatch.chdir(folder)
    for name in ("loss.toml", str(folder / "loss.toml")):
        found = cli("reproduce", name, "--json")
        assert found.exit_code == 0, found.stderr
        made = json.loads(found.stdout)
        assert made["experiment"] == "my own/loss"
        assert [claim["verdict"] for claim in made["claims"]] == ["reproduced"]
    assert len(list(cli.out.rglob("*losses*.svg"))) == 1
    assert "my own" in (cli.out / "report.html").read_text("utf-8")
    assert cli("report", "loss.toml").exit_code == 0
    missing = cli("reproduce", "gone.toml")
    assert missing.exit_code == 2
    assert "gone.toml" in missing.stderr
    assert "No such file" in missing.stderr


def test_a_sweep_says_that_it_judges_and_draws_nothing(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "loss.toml"
    for text, says in ((CLAIMED, True), (SWEEP, False)):
        file.write_text(text)
        found = cli("sweep", str(file))
        assert found.exit_code == 0, found.stderr
        told = " ".join(found.stderr.split())
        assert ("its claims and plots are left out: `bluewater reproduce" in told) is says


def test_doctor(cli: Cli) -> None:
    found = cli("doctor", "--json", keep_out=False)
    assert found.exit_code == 0, found.stdout
    assert {check["name"] for check in json.loads(found.stdout)} >= {"core", "determinism"}


def test_a_load_that_chance_made_is_said(cli: Cli, tmp_path: Path) -> None:
    def told(*more: str) -> str:
        path = str(tmp_path / "x.pcap")
        return cli("trace", "generate", path, "--load", "5mbit", *more, keep_out=False).stderr

    assert "mean over many traces" in told("--duration", "5s", "--seed", "1")
    assert "mean over many traces" not in told("--duration", "60s", "--seed", "4", "--most", "9999")


def test_seeds_may_be_a_range() -> None:
    assert seeds(None, "1-3, 7", None) == (1, 2, 3, 7)
    assert seeds(None, "5-5", None) == (5,)


def test_one_bound_on_the_number_of_seeds() -> None:
    """A list of seeds that is too long is refused before it takes memory, by each option."""
    assert seeds(None, "1-200000", None) == seeds(None, None, 200_000)
    for many, reps in (("1-1000001", None), (f"7,9-{2**62}", None), (None, 1_000_001)):
        with pytest.raises(InputError, match="1000000"):
            seeds(None, many, reps)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("advise --rate 10apples", "--rate = '10apples'"),
        ("advise --rtt 10apples", "--rtt = '10apples'"),
        ("advise --buffer 10apples", "--buffer = '10apples'"),
        ("advise --duration 10apples", "--duration = '10apples'"),
        ("compare red --rate 10apples", "--rate = '10apples'"),
        ("compare red --warmup 10apples", "--warmup = '10apples'"),
        ("trace generate x.pcap --load 10apples", "--load = '10apples'"),
        ("trace generate x.pcap --duration 10apples", "--duration = '10apples'"),
    ],
)
def test_options_are_called_as_they_are_typed(cli: Cli, line: str, key: str) -> None:
    found = cli(*line.split(), keep_out="trace" not in line)
    assert found.exit_code == 2
    assert f"  at {key}\n" in found.stderr
    assert "  allowed: " in found.stderr


@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_word_of_a_table_is_cut(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal too narrow for a table has a paragraph a row: names and verdicts were cut."""
    verdict = "reproduced under a stated reading (w11-rfc2988), fitted"
    cells = ["feng/fig13-simulated d", "BLUE is above RED.", "1.02 ± 0.0032 ×", "> 1 ×", verdict]
    table = Table("claim", "statement", "measured", "holds if", "verdict", box=None)
    table.columns[0].no_wrap = True
    table.add_row(*cells)
    monkeypatch.setattr(console, "out", console._Out(highlight=False, width=width))
    console.show(table, (0, 4))
    shown = capsys.readouterr().out
    assert "…" not in shown
    words = " ".join(shown.split())
    assert all(word in words for cell in cells for word in cell.split())
    assert ("claim feng/fig13-simulated d verdict reproduced" in words) is (width < 80)

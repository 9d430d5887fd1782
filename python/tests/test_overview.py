"""Tables of means: each format has the numbers, their units and their intervals."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from bluewater import text
from bluewater.cli import console
from bluewater.errors import InputError
from bluewater.results.aggregate import summarise
from bluewater.results.overview import METRICS, Mean, Overview
from bluewater.results.quantities import quantity

NAMES = ("red", "fq-codel", "red:max_p=0.02,gentle=true", "a_b & c% #1 {x} $y$ ~^\\ <z>")
RUNS = pl.DataFrame(
    [
        {
            "aqm": name, "buffer": buffer, "seed": seed, "loss": 0.01 * (1 + 0.1 * seed),
            "mark_rate": 0.0, "utilisation": 0.98 + 0.005 * seed,
            "queue_mean_packets": 20.0 + seed, "delay_p99_s": 0.05 + 0.001 * seed,
            "jain": None if name == "red" else 0.9 + 0.01 * seed,
        }
        for name in NAMES for buffer in (25, 100) for seed in (1, 2, 3)
    ]
)  # fmt: skip


def overview(runs: pl.DataFrame = RUNS) -> Overview:
    over = summarise(runs, ["aqm", "buffer"])
    return Overview.of(over, ["aqm", "buffer"], units={"buffer": "kB"})


def test_a_table_for_a_spreadsheet_has_every_digit_and_both_ends(tmp_path: Path) -> None:
    overview().write(tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["aqm"] for row in rows[::2]] == list(NAMES)
    first = rows[0]
    assert first["buffer (kB)"] == "25"
    assert [float(first[f"loss{end} (%)"]) for end in ("", " low", " high")] == pytest.approx(
        [1.2, 1.2 - 0.2484, 1.2 + 0.2484], abs=1e-4
    )
    assert float(first["delay p99 (ms)"]) == 52
    assert first["Jain"] == first["Jain low"] == ""
    single = overview(RUNS.filter(pl.col("seed") == 1)).csv()
    assert "low" not in single.splitlines()[0]


def test_a_table_in_markdown_is_one() -> None:
    lines = overview().markdown().splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    assert len({len(row) for row in cells}) == 1
    assert "| 1.20 ± 0.25 |" in lines[2]
    assert "delay p99 (ms)" in lines[0]


def test_a_table_in_latex_has_heads_units_and_nothing_that_is_a_command() -> None:
    made = overview().latex()
    body = made.partition("\\begin{tabular}")[2]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    counts = {len(re.findall(r"(?<!\\)&", row)) for row in rows}
    assert counts == {len(overview().columns) - 1}
    assert all(rule in made for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert r"& (\%) &" in rows[1]
    assert r"$1.20 \pm 0.25$" in made
    odd = next(row for row in rows if "a" in row and "textasciicircum" in row)
    assert r"a\_b \& c\% \#1 \{x\} \$y\$ \textasciitilde{}\textasciicircum{}\textbackslash{}" in odd
    assert " -- &" in made or "& -- " in made, "where nothing was measured"


def test_a_table_explains_its_stars() -> None:
    over = summarise(RUNS, ["aqm", "buffer"])
    starred = Overview.of(over, ["aqm", "buffer"], stars={("red", "25", "loss")})
    made = replace(starred, starred="differs from it by 5 %")
    assert "1.20 ± 0.25*" in made.markdown()
    assert made.markdown().endswith("\n\n\\* differs from it by 5 %\n")
    assert r"$1.20 \pm 0.25^{*}$" in made.latex()
    note = r"\multicolumn{9}{l}{\footnotesize $^{*}$ differs from it by 5 \%}"
    assert note in made.latex().partition("\\bottomrule")[2]
    assert "differs" not in overview().latex() + overview().markdown()


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.html"])
def test_another_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is no format of a table") as error:
        overview().write(tmp_path / name)
    assert error.value.allowed == "a file that ends in .csv, .md, .tex"


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [
        (22.634, 0.41, ("22.63", "0.41")),
        (104.2, 12.3, ("104", "12")),
        (0.0293, 0.0051, ("0.0293", "0.0051")),
        (1.0, 8.6e-5, ("1.000", "0.000")),
        (0.0, 0.0, ("0", "0")),
        (100.0, 0.0, ("100", "0")),
        (0.0, 0.013, ("0.000", "0.013")),
        (99.721, 0.0047, ("99.72", "0.00")),
        (3.2e9, 1e8, ("3.20e+09", "1.0e+08")),
    ],
)
def test_a_mean_has_as_many_decimals_as_its_interval(
    mean: float, half: float, shown: tuple[str, str]
) -> None:
    assert text.interval(mean, half) == shown


def printed(width: int, shown: Overview, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    out = Console(width=width, record=True, quiet=False, file=io.StringIO())
    monkeypatch.setattr(console, "out", out)
    console.show_overview(shown)
    return out.export_text().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_a_terminal_of_any_width_has_tables(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = overview(RUNS.filter(pl.col("aqm") != NAMES[-1]))
    lines = printed(width, shown, monkeypatch)
    assert max(map(len, lines)) <= width
    whole = "\n".join(lines)
    assert "…" not in whole
    # Each number and each half of an interval, whole.
    for row in shown.rows:
        for cell in row:
            for part in cell.texts if isinstance(cell, Mean) else ():
                assert re.search(rf"(?<![\d.]){re.escape(part)}(?![\d.])", whole), part
    assert whole.count("ms") == 1
    assert ("± " in whole) is (width == 140)


def test_every_metric_of_a_table_has_words_and_a_unit() -> None:
    heads = {name: quantity(name) for name in METRICS}
    assert {name: (each.head, each.unit) for name, each in heads.items()} == {
        "loss": ("loss", "%"),
        "mark_rate": ("marked", "%"),
        "utilisation": ("link used", "%"),
        "queue_mean_packets": ("queue", "packets"),
        "delay_p99_s": ("delay p99", "ms"),
        "jain": ("Jain", ""),
    }
    assert quantity("throughput_bps").label == "Throughput (Mb/s)"
    assert quantity("completed_s").unit == "s", "of downloads, not of queues"


def test_a_small_half_width_has_no_exponent() -> None:
    assert text.measured(0.0253, 4.2e-5, "Mb/s") == "0.0253 ± 0.000042 Mb/s"

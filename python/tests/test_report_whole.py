"""The page of a folder is about all that the folder has."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import SWEEP, Cli

from bluewater.report import build, write_report
from bluewater.report.section import describe
from bluewater.results.store import Store
from bluewater.study.execution.task import Failure
from bluewater.study.experiments import experiment
from bluewater.study.experiments.reproduce import Outcome, Plan, reproduce

if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIM = """
[[claim]]
id = "{id}"
origin = "{origin}"
text = "Claim {id}."
paper = "some"
measure = "SELECT seed, MAX(loss) AS value FROM runs GROUP BY seed"
holds = "{holds}"
plot = "losses"
"""

PLOT = """
[[plot]]
id = "losses"
title = "Losses"
caption = "By buffer."
kind = "spread"
x = { label = "Buffer" }
y = { label = "Loss" }
[[plot.panel]]
title = "losses"
sql = "SELECT buffer AS x, loss AS y, aqm AS line, seed FROM runs"
"""

QUICK = "\n[sizes.quick]\nset = { duration = '1500ms' }\n"

DURATIONS = {"one": "2s", "two": "2500ms", "three": "3s"}


def claim(id_: str, holds: str, origin: str = "paper") -> str:
    return CLAIM.format(id=id_, holds=holds, origin=origin)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two papers, with two experiments and one."""
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(tmp_path / "experiments"))
    for paper, names in (("mine", ("one", "two")), ("yours", ("three",))):
        made = tmp_path / "experiments" / paper
        made.mkdir(parents=True)
        (made / "paper.toml").write_text(
            f'cite = "{paper.title()}26"\ntitle = "{paper}"\nsource = "somebody"\n'
        )
        for name in names:
            text = SWEEP.replace('duration = "2s"', f'duration = "{DURATIONS[name]}"')
            own = claim("b", "> 0", "ours") if name == "one" else ""
            (made / f"{name}.toml").write_text(text + claim("a", "> 2") + own + PLOT + QUICK)
    return tmp_path / "experiments"


def words(text: str) -> str:
    text = " ".join(html.unescape(re.sub("<[^>]*>", " ", text)).split())
    return re.sub(r" (?=[,.:] )", "", text)


def rows(page: str) -> list[str]:
    table = page.partition('class="matrix"')[2].partition("</table>")[0]
    return [words(row.partition(">")[2]) for row in table.split("<tr")[2:]]


def sections(page: str) -> list[str]:
    return re.findall(r'<section id="([a-z]+-[a-z]+)">', page)


@pytest.mark.slow
def test_each_paper_s_page_has_the_others(folder: Path, cli: Cli) -> None:
    page = cli.out / "report.html"
    assert cli("reproduce", "mine/two").exit_code == 0
    assert sections(page.read_text()) == ["mine-two"]
    assert rows(page.read_text()) == ["Mine26 1 of 2 experiments · · · · 1 · 1 ·"]
    assert cli("reproduce", "yours").exit_code == 0
    both = page.read_text()
    assert sections(both) == ["mine-two", "yours-three"]
    assert 'href="#mine-two"' in both.partition('<div class="menu">')[2].partition("</div>")[0]
    found = cli("reproduce", "mine/one", "--json")
    assert json.loads(found.stdout)["experiment"] == "mine/one"  # what was asked for
    whole = page.read_text()
    assert sections(whole) == ["mine-one", "mine-two", "yours-three"]
    assert rows(whole) == [
        "Mine26 · · · · 2 · 2 ·",
        "Yours26 · · · · 1 · 1 ·",
        "all papers · · · · 3 · 3 ·",
        "ours, beside Mine26 1 · · · · · 1 ·",
    ]
    assert "12 runs" in words(whole.partition("<header")[2].partition("</header>")[0])
    assert "Not on this page" not in whole
    # What was kept says what was drawn.
    (folder.parent / "again").mkdir()
    again = (folder.parent / "again") / "report.html"
    plan = Plan.of([(each, each.size("full")) for each in experiment.select(None)])
    write_report(reproduce(plan, Store(cli.out / "runs"), 1), again.parent)
    alike = [
        re.sub(r"[-0-9]+ [0-9:]+ UTC| · [0-9.]+ s\b| · 4 runs from before| open(?=>)", "", text)
        for text in (whole, again.read_text())
    ]
    assert alike[0] == alike[1]


@pytest.mark.slow
def test_what_was_kept_is_not_shown_for_something_else(folder: Path, cli: Cli) -> None:
    for name in ("mine", "yours"):
        assert cli("reproduce", name).exit_code == 0
    page = cli.out / "report.html"

    def left_out(*asked: str) -> str:
        found = cli("reproduce", *asked)
        assert found.exit_code == 0
        text = page.read_text()
        if "Not on this page" not in text:
            return ""
        told = words(
            text.partition("<summary>Not on this page</summary>")[2].split("</details>")[0]
        )
        assert f"not on the page: {told}" in " ".join(found.stderr.split())
        return told

    assert left_out("yours") == ""
    # Another size.
    assert cli("reproduce", "mine/two", "--quick").exit_code == 0
    assert left_out("yours") == "mine/two: was last reported at size quick"
    assert sections(page.read_text()) == ["mine-one", "yours-three"]
    assert cli("report", "mine").exit_code == 0
    # Other runs.
    two = folder / "mine" / "two.toml"
    kept = json.loads((cli.out / "mine-two" / "section.json").read_text())
    Store(cli.out / "runs").remove(kept["keys"][0])
    assert left_out("yours") == "mine/two: 1 of 4 runs are missing"
    assert left_out("mine") == ""
    # Another experiment.
    two.write_text(two.read_text().replace("By buffer", "By buffers"))
    assert left_out("yours") == "mine/two: was reported by another version"
    assert cli("report").exit_code == 0
    assert sections(page.read_text()) == ["mine-one", "mine-two", "yours-three"]
    assert "By buffers" in page.read_text()
    # None.
    two.unlink()
    (cli.out / "mine-one" / "section.json").write_text("{")
    assert left_out("yours") == ""
    assert sections(page.read_text()) == ["yours-three"]


def test_a_report_is_about_what_is_complete(folder: Path, cli: Cli) -> None:
    nothing = cli("report")
    assert nothing.exit_code == 2
    assert "12 of 12 runs are missing, first mine/one" in " ".join(nothing.stderr.split())
    assert cli("reproduce", "mine/one").exit_code == 0
    (cli.out / "mine-one" / "section.json").unlink()
    two = experiment.load("mine/two")
    task, _ = two.plan(two.size("full"))[0]
    (cli.out / "mine-two").mkdir()
    reproduce(Plan([(two, two.size("full"), [two.plan(two.size("full"))[0]])]),
              Store(cli.out / "runs"), 1)  # fmt: skip
    assert task.key in Store(cli.out / "runs")
    found = cli("report")
    assert found.exit_code == 0
    told = " ".join(found.stderr.split())
    assert "not on the page: mine/two: 3 of 4 runs are missing" in told
    assert "not on the page: yours/three: 4 of 4 runs are missing" in told
    assert sections((cli.out / "report.html").read_text()) == ["mine-one"]
    named = cli("report", "mine")
    assert named.exit_code == 2
    assert "3 of 8 runs are missing, first mine/two" in " ".join(named.stderr.split())


def test_a_paper_without_runs_is_left_out_in_a_line(folder: Path, cli: Cli) -> None:
    assert cli("reproduce", "yours").exit_code == 0
    told = " ".join(cli("report").stderr.split())
    assert "not on the page: mine, 2 experiments: none of 8 runs is there" in told


@pytest.mark.slow
def test_what_was_drawn_of_the_same_runs_is_not_drawn_again(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("reproduce", "yours").exit_code == 0
    drawn: list[str] = []

    def watched(outcome: Outcome, into: Path, formats: Sequence[str]) -> dict[str, object]:
        drawn.append(outcome.experiment.id)
        return describe(outcome, into, formats)

    monkeypatch.setattr(build, "describe", watched)
    before = (cli.out / "yours-three" / "claims.json").read_text()
    assert cli("report", "yours").exit_code == 0
    assert drawn == []
    assert (cli.out / "yours-three" / "claims.json").read_text() == before
    (cli.out / "yours-three" / "losses.svg").unlink()
    assert cli("report", "yours").exit_code == 0
    assert drawn == ["yours/three"]
    assert (cli.out / "yours-three" / "losses.svg").is_file()
    assert cli("report", "yours", "--pictures", "pdf, svg").exit_code == 0
    assert drawn == ["yours/three"] * 2
    assert (cli.out / "yours-three" / "losses.pdf").is_file()
    assert cli("report", "yours").exit_code == 0
    assert drawn == ["yours/three"] * 2
    assert cli("reproduce", "yours", "--seeds", "2").exit_code == 0
    assert drawn == ["yours/three"] * 3
    told = " ".join(cli("report", "yours", "--pictures", "gif").stderr.split())
    assert "allowed: png, svg, pdf, pgf" in told
    assert folder.is_dir()


def made(name: str, store: Path) -> Outcome:
    loaded = experiment.load(name)
    (outcome,) = reproduce(Plan.of([(loaded, loaded.size("full"))]), Store(store), 2)
    return outcome


def test_a_run_of_two_experiments_is_counted_once(folder: Path, tmp_path: Path) -> None:
    outcome = made("mine/one", tmp_path / "runs")
    other = replace(outcome, experiment=replace(outcome.experiment, id="mine/two"))
    page = write_report([outcome, other], tmp_path / "page").read_text()
    assert ", 4 runs." in words(page.partition("<header")[2].partition("</header>")[0])
    assert folder.is_dir()


def test_runs_that_were_skipped_are_told_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    outcome = made("mine/one", tmp_path / "runs")
    loaded = experiment.load("mine/one")
    tasks = [task for task, _ in loaded.plan(loaded.size("full"))]
    gone = [Failure(task, "there are no network namespaces", skipped=True) for task in tasks]
    tables = replace(outcome.tables, entries=[])
    none = replace(outcome, tables=tables, findings=[], failures=gone)
    page = write_report([none], tmp_path / "none").read_text()
    text = words(page)
    assert (
        "All 4 runs were skipped, which this machine does not allow: there are no network "
        "namespaces. Nothing was measured here: its 2 claims are not judged, and nothing is drawn."
        in text
    )
    assert "1 more, of experiments without runs here, is not judged." in text
    assert gone[0].task.label not in text
    head = words(page.partition("<header")[2].partition("</header>")[0])
    assert "4 more were skipped: this machine does not allow them." in head
    own = page.partition('<section id="mine-one">')[2].partition("</section>")[0]
    for link in re.findall(r'href="([^"#]+)"', own):
        assert (tmp_path / "none" / link).is_file(), link
    assert "decision hash" not in own
    assert "<pre></pre>" not in own

    failed = replace(outcome, failures=[Failure(tasks[0], "it died")])
    text = words(write_report([failed], tmp_path / "failed").read_text())
    assert "1 of 5 runs failed and are missing from everything below" in text
    assert f"{tasks[0].label}: it died" in text
    assert "1 run has failed." in text


READING = """
[[claim]]
id = "a"
text = "Nobody shares."
paper = "one"
unit = "flows"
measure = "SELECT seed, CAST(MAX(flows) AS DOUBLE) AS value FROM runs GROUP BY seed"
holds = "<= 1"
[[reading]]
id = "alone"
title = "One flow"
why = "w"
post_hoc = true
set = { "traffic.0.flows" = 1 }
"""


def test_the_table_shows_what_a_verdict_rests_on(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SWEEP + READING)
    found = cli("reproduce", str(tmp_path / "own.toml"))
    assert "under a stated reading" in " ".join(found.stdout.split())
    assert "1 flows" in found.stdout
    assert "20 flows" not in found.stdout

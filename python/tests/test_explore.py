from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Cli

from bluewater.errors import InputError
from bluewater.results.store import Store
from bluewater.study.execution.execute import execute
from bluewater.study.execution.task import Task
from bluewater.study.experiments import experiment
from bluewater.study.experiments.explore import Point, Search, groups

PAPER = """
title = "Nonresponsive flows"
cite = "Me26"
source = "me"
[[section]]
id = "1"
title = "Misclassification"
experiments = ["one", "two"]
[[section.unknown]]
name = "levels"
why = "Not said."
standard = "2"
values = { 1 = { levels = 1 }, 2 = {}, 3 = { levels = 3 } }
[[section.unknown]]
name = "colour"
why = "It changes nothing."
standard = "red"
values = { red = {}, blue = { title = "blue" } }
"""

# (1 − (1 − 1/23)^8)^L: 0.30, 0.090, 0.027 for 1, 2, 3 levels.
ONE = """
formula = "misclassification"
levels = 2
bins = 23
nonresponsive = 8
[[claim]]
id = "standard"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "between 0.08 and 0.1"
[[claim]]
id = "deep"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "< 0.05"
[[claim]]
id = "never"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "> 1"
"""

# Its own unknown makes it 0.21 for 3 levels of 8 bins with 8 flows: (1 − (7/8)^8)^3 = 0.28.
TWO = """
formula = "misclassification"
levels = 2
bins = 23
nonresponsive = 8
[[unknown]]
name = "bins"
why = "Not said."
standard = "23"
values = { 23 = {}, 8 = { bins = 8 } }
[[claim]]
id = "deep"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "< 0.05"
[[claim]]
id = "crowded"
text = "t"
paper = "p"
measure = "SELECT seed, value FROM runs"
holds = "between 0.27 and 0.29"
[[reading]]
id = "small"
title = "8 bins"
why = "w"
post_hoc = true
choose = { bins = "8" }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLUEWATER_EXPERIMENTS", str(tmp_path / "experiments"))
    made = tmp_path / "experiments" / "mine"
    made.mkdir(parents=True)
    (made / "paper.toml").write_text(PAPER)
    (made / "one.toml").write_text(ONE)
    (made / "two.toml").write_text(TWO)
    return made


def search(store: Store, budget: int = 100, hold_out: int = 0, name: str = "mine") -> Search:
    (group,) = groups(experiment.select(name))
    made = Search(group, "full", None, store, 1, budget, hold_out)
    made.run()
    return made


def test_everything_is_tried_if_the_budget_allows(tmp_path: Path) -> None:
    found = search(Store(tmp_path))
    assert found.group.possible == len(found.rows) == 12
    assert found.met(found.standard) == {"one/standard"}
    # With 3 levels of 23 bins both 'deep' are met; a point that meets three there is none.
    assert found.met(found.best) == {"one/deep", "two/deep"}
    assert found.best.choices == (("levels", "3"),)
    assert found.some == {"one/standard", "one/deep", "two/deep", "two/crowded"}
    assert found.cover[0] == (found.best, 2)
    assert [count for _, count in found.cover] == [2, 3, 4]


def test_what_depends_on_what(tmp_path: Path) -> None:
    found = search(Store(tmp_path))
    items = {item.id: item for item in found.items}
    levels, colour, bins = found.group.variables
    assert (levels.name, colour.name, bins.name) == ("levels", "colour", "two: bins")
    assert found.sensitivity(items["one/deep"], levels) == pytest.approx(1)
    assert found.sensitivity(items["one/deep"], colour) == 0
    assert found.sensitivity(items["one/deep"], bins) is None
    of_levels = found.sensitivity(items["two/deep"], levels)
    of_bins = found.sensitivity(items["two/deep"], bins)
    assert of_levels is not None
    assert of_bins is not None
    assert 0 < of_bins < 1
    assert 0 < of_levels < 1
    assert found.alone(items["one/deep"], levels) == ["3"]
    assert found.alone(items["one/standard"], levels) == ["2"]


def test_a_budget_is_kept_and_stated_readings_come_first(tmp_path: Path) -> None:
    found = search(Store(tmp_path), budget=3)
    assert [point.choices for point in found.rows] == [
        (),
        (("two: bins", "8"),),
        (("levels", "1"),),
    ]
    found = search(Store(tmp_path), budget=9)
    assert len(found.rows) == 9
    assert len(found.designed) < 9


def test_held_out_claims_do_not_choose(tmp_path: Path) -> None:
    found = search(Store(tmp_path), hold_out=2)
    assert [item.id for item in found.unseen] == ["one/deep", "two/deep"]
    # Three levels meet both of these and nothing else: they must not count.
    assert found.best.choices != (("levels", "3"),)
    assert found.met(found.best, found.seen) == {"one/standard"}


def test_a_search_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made: list[int] = []

    def counted(tasks: Sequence[Task], into: Store, jobs: int) -> dict[str, str]:
        made.append(sum(task.key not in into for task in tasks))
        return {each.task.key: each.reason for each in execute(tasks, into, jobs)}

    (group,) = groups(experiment.select("mine"))
    first = Search(group, "full", None, store, 1, 100, 0, make=counted)
    first.run()
    assert sum(made) == 6  # 3 levels of 23 bins, and of 8; the title is nothing to a run
    made.clear()
    second = Search(group, "full", None, store, 1, 100, 0, make=counted)
    second.run()
    assert sum(made) == 0
    assert list(second.rows) == list(first.rows)


def test_a_run_that_fails_meets_nothing(tmp_path: Path) -> None:
    def broken(tasks: Sequence[Task], into: Store, jobs: int) -> dict[str, str]:
        return {each.key: "broken" for each in tasks}

    (group,) = groups(experiment.select("mine/one"))
    found = Search(group, "full", None, Store(tmp_path), 1, 1, 0, make=broken)
    found.run()
    assert found.met(Point()) == set()
    assert list(found.failed.values()) == ["broken"]


def test_one_experiment_alone(tmp_path: Path) -> None:
    found = search(Store(tmp_path), name="mine/two")
    assert found.group.title == "mine/two"
    assert found.group.possible == 12
    assert len(found.items) == 2


def test_real_packets_are_not_searched(folder: Path) -> None:
    one = (folder / "one.toml").read_text()
    (folder / "one.toml").write_text(
        'place = "testbed"\n'
        + one.replace('formula = "misclassification"\nlevels = 2\nbins = 23\nnonresponsive = 8', "")
    )
    (group,) = groups(experiment.select("mine"))
    assert [each.id for each in group.experiments] == ["mine/two"]


def test_command(cli: Cli) -> None:
    done = cli("explore", "Me26", "--json", "--jobs", "1", "--hold-out", "0")
    assert done.exit_code == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert (told["standard"]["met"], told["joint"]["met"], told["some"]) == (1, 2, 4)
    assert told["never"] == ["one/never"]
    assert [(each["name"], each["met"]) for each in told["stated"]] == [("small", 1)]
    assert told["possible"] == told["tried"] == 12
    page = (cli.out / "explore-Me26" / "explore.html").read_text("utf-8")
    for said in ("Me26 §1: Misclassification", "one/never", "<svg", "levels = 3"):
        assert said in page
    assert 'src="' not in page
    # White letters on a dark cell are not the page's background.
    assert "fefefe" in page
    assert json.loads((cli.out / "explore-Me26" / "explore.json").read_text())[0]["some"] == 4


def test_one_section_is_searched_and_has_its_own_page(cli: Cli) -> None:
    done = cli("explore", "Me26", "--section", "1", "--json", "--jobs", "1")
    assert done.exit_code == 0, done.stderr
    assert (cli.out / "explore-Me26-1" / "explore.html").exists()
    refused = cli("explore", "Me26", "--section", "7")
    assert refused.exit_code == 2
    assert "unknown section '7'" in refused.stderr


def test_nothing_open_is_said(folder: Path, cli: Cli) -> None:
    (folder / "paper.toml").unlink()
    (folder / "two.toml").unlink()
    with pytest.raises(InputError, match="unknown experiment"):
        experiment.select("nothing")
    done = cli("explore", "mine")
    assert done.exit_code == 2
    assert "mine declares no unknowns" in done.stderr

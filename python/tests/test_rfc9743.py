"""The suite that evaluates a congestion controller by the criteria of RFC 9743."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import DOCS, Cli

from bluewater.errors import InputError
from bluewater.lab import criteria
from bluewater.lab.making import make_all
from bluewater.results.store import Store
from bluewater.study.rfc9743 import card, cells, measures, suite
from bluewater.study.rfc9743.cells import Reading, Setting, Verdict
from bluewater.study.rfc9743.paths import Path as Route
from bluewater.study.rfc9743.paths import grid
from bluewater.study.rfc9743.senders import candidate

# Measures, each on numbers that can be worked out by hand.


def test_jain_of_equal_and_of_one_sided_shares() -> None:
    assert measures.jain([5, 5, 5, 5]) == 1
    assert measures.jain([8, 0, 0, 0]) == 0.25
    assert measures.jain([3, 1]) == pytest.approx(16 / 20)
    assert measures.jain([0, 0]) == 0


def test_harm_is_what_was_lost_of_what_one_had_alone() -> None:
    assert measures.harm_to_more(10, 4) == pytest.approx(0.6)
    assert measures.harm_to_less(20, 50) == pytest.approx(0.6)
    # A gain is no harm.
    assert measures.harm_to_more(10, 12) == 0
    assert measures.harm_to_less(20, 10) == 0
    assert measures.harm_to_more(0, 0) == 0
    # A transfer that never ends is the greatest harm.
    assert measures.harm_to_less(20, math.inf) == 1
    assert measures.harm_to_less(math.inf, math.inf) == 0


def test_a_ratio_to_nothing_is_infinite() -> None:
    assert measures.ratio(3, 2) == 1.5
    assert measures.ratio(3, 0) == math.inf
    assert measures.ratio(0, 0) == 1


def test_losses_near_zero_do_no_harm() -> None:
    least = measures.LEAST_LOSS
    assert measures.harm_to_less(0, least, least) == 0
    assert measures.harm_to_less(0, 4 * least, least) == pytest.approx(0.75)
    assert measures.harm_to_less(0, least) == 1


def test_a_flow_starves_below_a_tenth_of_an_equal_share() -> None:
    # Two windows of two samples; an equal share is 10 a sample, and in the second one flow has 0.9.
    assert measures.starved([[10, 10, 19, 19.2], [10, 10, 1, 0.8]], 1, 2) == pytest.approx(1 / 4)
    # Exactly a tenth is enough.
    assert measures.starved([[19], [1]], 1, 1) == 0
    # The incomplete window at the end does not count, unless there is no other.
    assert measures.starved([[10, 10, 20], [10, 10, 0]], 1, 2) == 0
    assert measures.starved([[20], [0]], 1, 10) == 0.5
    assert measures.starved([[0, 0], [0, 0]], 1, 1) == 0
    assert (measures.window_s(0.01), measures.window_s(0.2)) == (10, 20)


def test_the_first_time_that_a_level_is_reached_and_held() -> None:
    samples = [0, 9, 0, 8, 9, 9, 0]
    assert measures.first(samples, 1, 0, 8) == 2
    assert measures.first(samples, 1, 0, 8, hold=3) == 4
    assert measures.first(samples, 1, 2, 8) == 2
    assert measures.first(samples, 0.5, 1, 8) == 1
    assert measures.first(samples, 1, 0, 10) == math.inf
    assert measures.first(samples, 1, 0, 8, hold=4) == math.inf


def test_flows_converge_when_those_there_have_shared_evenly_for_five_seconds() -> None:
    # The second joins at 4 s, and shares evenly from 7 s on; the third is not there yet.
    one = [4, 4, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2]
    two = [0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2]
    times = [(0.0, 99.0), (4.0, 99.0), (50.0, 99.0)]
    assert measures.converged([one, two, [0] * 13], times, 1, 4) == 4
    # A flow that has left no longer counts.
    assert measures.converged([one, [0] * 13], [(0, 99), (0, 4)], 1, 4) == 1
    assert measures.converged([one, [0] * 13], [(0, 99), (4, 99)], 1, 4) == math.inf


def test_a_queue_is_drained_after_it_grew() -> None:
    queue = [1, 1, 5, 7, 3, 1, 1]
    assert measures.drained(queue, 1, 2, 3) == 3
    assert measures.drained(queue, 1, 2, 2) == 4
    assert measures.drained(queue, 1, 5, 3) == 0
    assert measures.drained([1, 5, 5], 1, 0, 3) == math.inf


def test_timeouts_double() -> None:
    # 0.2 + 0.4 + 0.8 + 1.6 = 3.0 s; the next lasts 3.2 s.
    count, longest = measures.timeouts(0.2, 3.1)
    assert (count, round(longest, 9)) == (4, 3.2)
    assert measures.timeouts(1.0, 0.5) == (0, 1.0)


def test_a_chain_of_timeouts_ends_with_a_repair() -> None:
    events = [
        (1.0, "timeout"), (2.0, "timeout"), (3.0, "timeout"), (4.0, "recovered"),
        (5.0, "timeout"), (6.0, "timeout"), (7.0, "recovered"), (8.0, "timeout"),
    ]  # fmt: skip
    assert measures.chain(events, 0) == 3
    assert measures.chain(events, 3.5) == 2
    assert measures.chain(events, 9) == 0


def test_the_reaction_to_a_mark_is_the_least_window_of_two_round_trips() -> None:
    # The mark is at 4 s, the round trip takes 2 s.
    windows = [10, 12, 14, 16, 16, 16, 9, 8, 4, 20]
    assert measures.reaction(windows, 1, 4, 2) == 0.5
    assert measures.reaction([10] * 10, 1, 4, 2) == 1


def test_laws_and_bounds() -> None:
    assert measures.reno_rate(0.01) == pytest.approx(12.2)
    assert (measures.step_bound(0.01), measures.step_bound(0.2)) == (5, 10)
    assert (measures.join_bound(0.01), measures.join_bound(0.2)) == (20, 40)


# Readings and rows.


def test_a_reading_holds_in_part_or_not_at_all() -> None:
    def most(value: float) -> Verdict:
        return Reading("V", value, "<=", 1.0, 2.0).verdict

    assert [most(v) for v in (1.0, 1.5, 2.1, math.inf)] == [
        Verdict.HOLDS, Verdict.PARTLY, Verdict.NOT, Verdict.NOT,
    ]  # fmt: skip
    assert Reading("V", 0.8, ">=", 0.9).verdict is Verdict.NOT
    assert Reading.none("V", "why").verdict is Verdict.UNJUDGED
    assert "never" in Reading("V", math.inf, "<=", 1.0).text


def test_seeds_are_averaged_with_their_bounds() -> None:
    two = [Reading("V", 1.0, "<=", 2.0, 4.0), Reading("V", 3.0, "<=", 4.0, 6.0)]
    found = cells.mean(two)
    assert (found.value, found.holds, found.partly) == (2.0, 3.0, 5.0)


def row(*readings: Reading) -> suite.Row:
    return suite.Row("R", "what", "1", cells.Force.MUST, "rule", readings, "")


def test_a_run_is_as_good_as_its_worst_reading() -> None:
    good, fair = Reading("a", 0, "<=", 1), Reading("b", 2, "<=", 1, 3, cell="there")
    worse = Reading("b", 2.5, "<=", 1, 3)
    none = Reading.none("–", "the candidate does not use marks")
    assert row(good).verdict is Verdict.HOLDS
    assert row(good, none).verdict is Verdict.HOLDS
    assert row(good, fair, worse).verdict is Verdict.PARTLY
    assert row(good, fair, worse).worst == [worse, good]
    assert row(none, none).verdict is Verdict.UNJUDGED
    assert row(none, none).why_not == "the candidate does not use marks"


# Candidates and plans.


@pytest.mark.parametrize("name", ["reno", "newreno", "sack", "cubic", "dctcp", "prague", "bbr"])
def test_any_tcp_can_be_the_candidate(name: str) -> None:
    planned = suite.plan(candidate(name), "quick", (1,), ("R01", "R16"))
    assert {task.kind for task in planned.tasks} == {"simulator"}


def test_a_class_is_told_how_many_marks_there_were() -> None:
    assert candidate("own.py:Own").with_ecn().flows("one")["accecn"]
    assert "accecn" not in candidate("own.py:Own").flows("one")
    assert "accecn" not in candidate("cubic").with_ecn().flows("one")


@pytest.mark.parametrize("name", ["cbr", "bbb", "red", "own.py", "python:own.py"])
def test_what_is_no_controller_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        candidate(name)
    assert caught.value.key == "--candidate"
    assert "FILE" in (caught.value.allowed or "")


def test_the_full_size_has_every_path_of_the_grid_once() -> None:
    paths = list(grid(quick=False))
    assert len(paths) == len(set(paths))
    # At 1 Mb/s two buffers of 10 ms, and two of 40 ms, would be smaller than four packets.
    assert len(paths) == 36 - 3
    assert list(grid(quick=True)) == [Route.of(10e6, 0.04, 1)]
    assert Route.of(10e6, 0.04, 1).buffer == 50_000


@pytest.mark.parametrize("run", suite.RUNS, ids=lambda run: run.id)
def test_every_run_has_cells_with_their_own_labels(run: cells.Run) -> None:
    for quick in (True, False):
        found = list(run.cells(Setting(candidate("bbr"), quick)))
        assert found
        assert len({cell.label for cell in found}) == len(found)


@pytest.mark.parametrize("size", ["quick", "full"])
def test_every_simulation_can_be_made(size: str) -> None:
    """Planning builds each of them."""
    planned = suite.plan(candidate("prague"), size, (1, 2))
    assert {part.run.id for part in planned.parts} == {run.id for run in suite.RUNS}
    assert all(len(part.keys) == 2 for part in planned.parts)


RENO = re.compile(r'```python title="reno.py"\n(.*?)```', re.DOTALL)


@pytest.fixture
def reno(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The controller of the documentation."""
    text = (DOCS / "controllers.md").read_text("utf-8")
    found = RENO.search(text)
    assert found is not None
    (tmp_path / "reno.py").write_text(found[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    return "reno.py:Reno"


def judged(name: str, out: Path, *runs: str) -> dict[str, suite.Row]:
    planned = suite.plan(candidate(name), "quick", (1,), runs)
    store = Store(out / "runs")
    failures = make_all(planned.tasks, store, 2, "starting", progress=False)
    assert not failures
    return {row.id: row for row in suite.judge(planned, store).rows}


CHEAP = ("R03", "R08", "R20")


def test_some_runs_of_cubic_and_of_a_class(reno: str, tmp_path: Path) -> None:
    found = {name: judged(name, tmp_path, *CHEAP) for name in ("cubic", reno, "bbr1")}
    for rows in found.values():
        assert set(rows) == {*CHEAP, "R30"}
        assert rows["R30"].verdict is Verdict.UNJUDGED
        assert "several paths" in rows["R30"].why_not
        for name in CHEAP[:2]:
            assert re.fullmatch("[0-9a-f]{16}", rows[name].decision_hash)
            assert all(each.cell and not math.isnan(each.value) for each in rows[name].readings)
    for name in ("cubic", reno):
        assert found[name]["R03"].verdict is Verdict.HOLDS
        assert found[name]["R08"].verdict is Verdict.HOLDS
        answers = [each for each in found[name]["R20"].readings if "after a mark" in each.rule]
        # CUBIC leaves 0.7 of the window, Reno half.
        assert answers[0].value == pytest.approx(0.5 if name == reno else 0.7, abs=0.06)
    assert found["bbr1"]["R20"].verdict is Verdict.UNJUDGED
    assert found["bbr1"]["R20"].why_not == "the candidate does not use marks"
    again = judged(reno, tmp_path, *CHEAP)
    assert [again[name].decision_hash for name in CHEAP] == [
        found[reno][name].decision_hash for name in CHEAP
    ]


def test_the_command_prints_and_writes_a_scorecard(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "RUNS", [run for run in suite.RUNS if run.id in ("R03", "R24")])
    found = cli("suite", "rfc9743", "--quick", "--candidate", "cubic", "--json")
    assert found.exit_code == 0
    card: dict[str, Any] = json.loads(found.stdout)
    assert (card["candidate"], card["size"]) == ("cubic", "quick")
    assert [run["id"] for run in card["runs"]] == ["R03", "R24", "R30"]
    place = cli.out / "rfc9743-cubic"
    assert json.loads((place / "scorecard.json").read_text("utf-8")) == card
    with (place / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [each["hash"] for each in rows[:2]] == [run["hash"] for run in card["runs"][:2]]
    with (place / "readings.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == sum(len(run["readings"]) for run in card["runs"])
    words = " ".join(cli("suite", "rfc9743", "--quick", "--candidate", "cubic").stdout.split())
    assert "cubic by RFC 9743, size quick" in words
    assert "not run: no transport here has several paths" in words


def test_only_this_suite_has_a_candidate(cli: Cli) -> None:
    found = cli("suite", "l4s", "--candidate", "bbr")
    assert found.exit_code == 2
    assert "evaluates no congestion controller" in found.stderr
    assert "`bluewater suite rfc9743 --candidate bbr` does" in found.stderr
    assert "rfc9743" in cli("suite").stdout


def test_a_class_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        criteria.planned("nosuch.py:Mine", "quick", None)


def test_a_class_that_fails_names_cause_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from bluewater.control import Controller\nclass Fails(Controller):\n"
    text += "    def start(self, s): self.cwnd = 1 / (s.mtu - s.mtu)\n"
    (tmp_path / "fails.py").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"fails\.py:3: Fails\.start .* ZeroDivisionError"):
        criteria.planned("fails.py:Fails", "quick", None)
    with pytest.raises(InputError, match="no congestion controller ''"):
        criteria.planned("", "quick", None)


def test_candidates_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    places = []
    for transport in ("python:one.py:Own", "python:two.py:Own", "python:one.py:Own"):
        planned = suite.Plan(candidate(transport), "quick", (1,), (), ())
        places.append(card.write(suite.judge(planned, Store(tmp_path)), tmp_path))
    assert places[0] == places[2] == tmp_path / "rfc9743-Own"
    assert places[1].name.startswith("rfc9743-Own-")

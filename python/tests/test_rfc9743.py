"""The suite that evaluates a congestion controller by the criteria of RFC 9743."""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from conftest import DOCS, Cli

import bluewater
from bluewater.errors import InputError
from bluewater.lab import criteria
from bluewater.lab.making import make_all
from bluewater.results.store import Store
from bluewater.study.rfc9743 import card, cells, measures, rules, suite
from bluewater.study.rfc9743.cells import Reading, Setting, Verdict, View
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


def test_the_larger_of_two_by_the_smaller_whichever_it_is() -> None:
    assert measures.uneven(8, 2) == measures.uneven(2, 8) == 4
    assert measures.uneven(3, 0) == measures.uneven(0, 3) == measures.uneven(0, 0) == math.inf


def test_a_window_counts_when_any_flow_starves_in_it() -> None:
    # Two windows of two samples; an equal share is 10 a sample, and in the second one flow has 0.9.
    assert measures.starved([[10, 10, 19, 19.2], [10, 10, 1, 0.8]], 1, 2) == 0.5
    # Exactly a tenth is enough.
    assert measures.starved([[19], [1]], 1, 1) == 0
    # The incomplete window at the end does not count, unless there is no other.
    assert measures.starved([[10, 10, 20], [10, 10, 0]], 1, 2) == 0
    assert measures.starved([[20], [0]], 1, 10) == 1
    # Where nobody gets anything, all starve.
    assert measures.starved([[0, 1], [0, 1]], 1, 1) == 0.5
    # One of many that never gets anything does not vanish among them.
    assert measures.starved([[1.0] * 60] * 31 + [[0.0] * 60], 1, 10) == 1
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


def test_a_path_change_is_followed_when_the_queue_is_short_and_the_rate_used() -> None:
    rates, waits = [9.0] * 12, [1.0, 5, 7, 6, 4, 2, 1, 1, 1, 1, 1, 1]
    # From 4 s on, five samples have a mean wait of 9 / 5.
    assert measures.settled(rates, waits, 1, 0, 9, 2) == 5
    assert measures.settled(rates, waits, 1, 6, 9, 2) == 1
    # One short sample is no short queue, as before the queue grows.
    assert measures.settled(rates, [0.0] + [9.0] * 11, 1, 0, 9, 2) == math.inf
    # A flow that sends nothing has no queue, and has not followed.
    assert measures.settled([0.0] * 12, [0.0] * 12, 1, 0, 9, 2) == math.inf


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


def test_what_is_in_flight_came_and_has_not_left_a_round_trip_ago() -> None:
    arrivals, drops, departures = [4, 3, 2, 1, 0], [0, 1, 0, 0, 0], [1, 2, 2, 2, 2]
    assert measures.in_flight(arrivals, drops, departures, 0.5, 1) == [4, 6, 7, 6, 4]


def test_the_reaction_to_a_mark_is_what_is_in_flight_by_the_same_without_it() -> None:
    # The mark is at 4 s, the round trip takes 2 s: the answer is complete at 8 s.
    unmarked = [10, 12, 14, 16, 16, 16, 16, 10, 10, 20]
    assert measures.reaction([*unmarked[:6], 9, 6, 5, 20], unmarked, 1, 4, 2) == 0.5
    # What falls without a mark too is no reaction.
    assert measures.reaction(unmarked, unmarked, 1, 4, 2) == 1


def test_bounds_of_time() -> None:
    assert (measures.step_bound(0.01), measures.step_bound(0.2)) == (5, 10)
    assert (measures.join_bound(0.01), measures.join_bound(0.2)) == (20, 40)


# Rules on results whose true verdict is known.


def view(
    flows: dict[str, list[list[float]]] | None = None,
    queue: dict[str, list[float]] | None = None,
    **more: Any,
) -> View:
    """A result: the goodput of flows in each second, samples of the queue, and other values."""
    rates = [(group, at, each) for group, of in (flows or {}).items() for at, each in enumerate(of)]
    samples = [
        {"flow": number, "group": group, "time_s": time + 1.0, "goodput_bps": value}
        for number, (group, _, each) in enumerate(rates)
        for time, value in enumerate(each)
    ]
    totals = [
        {"group": group, "goodput_bps": sum(each) / len(each), "arrivals": 1000, "drops": 0}
        for group, _, each in rates
    ]
    length = len(next(iter((queue or {"": []}).values())))
    columns = {"queue": ["R->B"] * length, "time_s": [at + 1.0 for at in range(length)]}
    empty: dict[str, list[Any]] = {"group": [], "kind": [], "queue": [], "delay_mean_s": []}
    found = {
        "flow_series": pl.DataFrame(samples),
        "flows": pl.DataFrame(totals),
        "series": pl.DataFrame(columns | (queue or {})),
        "delays": pl.DataFrame(empty),
        "control": pl.DataFrame({"event": [""], "time_s": [0.0]}),
        "summary": {},
    }
    return View(cast("Any", SimpleNamespace(**found | more)))


def cell(run: str, label: str, name: str = "bbr") -> cells.Cell:
    """The cell of a run that has this label."""
    found = next(each for each in suite.RUNS if each.id == run)
    return next(
        each for each in found.cells(Setting(candidate(name), quick=False)) if each.label == label
    )


def verdicts(cell: cells.Cell, **views: View) -> dict[str, Verdict]:
    """The verdicts on a cell by their rules, the worst of each."""
    order = (Verdict.UNJUDGED, Verdict.HOLDS, Verdict.PARTLY, Verdict.NOT)
    found: dict[str, Verdict] = {}
    for each in cell.judge(views):
        found[each.rule] = max(found.get(each.rule, order[0]), each.verdict, key=order.index)
    return found


def test_harm_is_judged_by_what_own_kind_leaves() -> None:
    """One among 16 loses 70 % of what it has among its own kind."""
    one = cell("R13", "cubic, 100 Mb/s, 40 ms, 1 BDP, 16 : 1")
    alone, own = view({"incumbent": [[95e6] * 60]}), view({"incumbent": [[5.6e6] * 60]})
    for left, verdict in ((1.0, Verdict.HOLDS), (0.8, Verdict.PARTLY), (0.3, Verdict.NOT)):
        beside = {"incumbent": [[left * 5.6e6] * 60], "beside": [[5.6e6] * 60] * 16}
        found = verdicts(one, alone=alone, own=own, candidate=view(beside))
        assert found["V-harm goodput"] is verdict
    by = {each.rule: each for each in one.judge({"alone": alone, "own": own, "candidate": own})}
    difference = by["difference of harms, goodput"]
    assert (difference.value, difference.verdict) == (0, Verdict.UNJUDGED)


def test_harm_where_nothing_is_left_is_not_judged() -> None:
    def found(quantity: rules.Harm, own: float, beside: float) -> Verdict:
        return next(rules.harm(quantity, 0.0, own, beside)).verdict

    assert found(rules.losses("loss"), 0.01, 0.03) is Verdict.NOT
    assert found(rules.losses("loss"), 0.01, 0.012) is Verdict.PARTLY
    assert found(rules.losses("loss"), 0.95, 0.99) is Verdict.UNJUDGED
    assert found(rules.rates("goodput"), 0.0, 0.0) is Verdict.UNJUDGED
    # A buffer of a twentieth of a round trip cannot make it longer by a tenth.
    assert found(rules.times("delay", 1.05), 1.0, 1.05) is Verdict.UNJUDGED
    assert found(rules.times("delay", 2.0), 1.0, 2.0) is Verdict.NOT
    assert found(rules.times("completion"), 1.0, math.inf) is Verdict.NOT


def test_round_trips_are_unfair_in_both_directions() -> None:
    pair = cell("R09", "40 : 160 ms, 0.5 BDP")
    for short, long, verdict in (
        (3.0, 1.0, Verdict.HOLDS), (1.0, 3.0, Verdict.HOLDS), (8.8, 1.0, Verdict.PARTLY),
        (1.0, 8.8, Verdict.PARTLY), (1.0, 17.0, Verdict.NOT), (1.0, 0.0, Verdict.NOT),
    ):  # fmt: skip
        found = view({"short": [[short] * 120], "long": [[long] * 120]})
        assert verdicts(pair, own=found)["V-rtt"] is verdict


@pytest.mark.parametrize(
    ("packets", "bdps", "verdict"),
    [
        (0.9, 10, Verdict.HOLDS), (1.19, 100, Verdict.PARTLY), (86, 100, Verdict.NOT),
        (0.9, 1, Verdict.UNJUDGED),
    ],
)  # fmt: skip
def test_a_long_queue_is_long_even_if_cubic_has_one(
    packets: float, bdps: float, verdict: Verdict
) -> None:
    deep = cell("R04", f"50 Mb/s, 30 ms, {bdps} BDP", "cubic")
    found = view(summary={"delay_p50_s": packets * 0.03})
    assert verdicts(deep, own=found)["V-queue"] is verdict


def test_a_flow_that_never_slows_down_does_not_follow_a_step_down() -> None:
    """The rate after it was there before, and the queue is always full."""
    full = {"departures": [833.4] * 60, "arrivals": [900.0] * 60, "backlog_bytes": [5e5] * 60}
    slower = cell("R27", "rate / 10")
    assert verdicts(slower, own=view(queue=full))["V-step down"] is Verdict.NOT
    follows = full | {"backlog_bytes": [*[5e5] * 23, *[4e4] * 37]}
    assert verdicts(slower, own=view(queue=follows))["V-step down"] is Verdict.HOLDS
    nothing = {name: [0.0] * 60 for name in full}
    assert verdicts(slower, own=view(queue=nothing))["V-step down"] is Verdict.NOT
    nearer = verdicts(
        cell("R27", "RTT / 4"), own=view(queue=full | {"backlog_bytes": [1.9e5] * 60})
    )
    assert nearer["V-step down"] is Verdict.NOT
    flows = {"own": [[25e6] * 60], "datagrams": [[75e6] * 60]}
    comes = cell("R26", "0 to 75 Mb/s")
    for bytes_, verdict in ((1.5e6, Verdict.NOT), (1e6, Verdict.HOLDS)):
        found = view(flows, {"backlog_bytes": [bytes_] * 60})
        assert verdicts(comes, own=found, cubic=found)["V-step down"] is verdict


def test_a_flow_that_does_not_grow_does_not_follow_a_step_up() -> None:
    farther = cell("R27", "RTT x 4")
    for rate, verdict in ((400.0, Verdict.NOT), (833.0, Verdict.HOLDS)):
        queue = {"departures": [*[833.0] * 20, *[rate] * 40], "backlog_bytes": [0.0] * 60}
        assert verdicts(farther, own=view(queue=queue))["V-step"] is verdict


def marked(packets: float) -> View:
    """A run with this many packets in flight from 8 s on, with samples of 5 ms."""
    # One leaves in each sample: eight are on the way.
    steady = {"arrivals": [1.0] * 2400, "drops": [0.0] * 2400, "departures": [1.0] * 2400}
    steady["arrivals"][0] = 192.0
    steady["arrivals"][1600] = 1.0 + packets - 200
    trips = pl.DataFrame(
        {"flow": [0] * 2400, "group": ["own"] * 2400, "srtt_s": [0.04] * 2400}
    ).with_columns(time_s=pl.int_range(1, 2401) * 0.005)
    return view(queue=steady, flow_series=trips)


@pytest.mark.parametrize(
    ("packets", "verdict"),
    [
        (200, Verdict.NOT), (198, Verdict.NOT), (190, Verdict.PARTLY), (140, Verdict.HOLDS),
        (40, Verdict.PARTLY),
    ],
)  # fmt: skip
def test_a_mark_is_answered_by_what_is_in_flight(packets: int, verdict: Verdict) -> None:
    one = cell("R20", "one mark")
    found = verdicts(one, own=marked(packets), unmarked=marked(200))
    assert found == {"V-ecn in flight after a mark": verdict}


def test_a_flow_that_did_not_slow_down_is_not_judged_by_its_speeding_up() -> None:
    everything = cell("R20", "all packets marked")
    steady = {"arrivals": [3333.0] * 45, "departures": [3333.0] * 45}
    found = verdicts(everything, own=view(queue=steady))
    assert found == {"sent while all is marked": Verdict.NOT, "V-step": Verdict.UNJUDGED}
    slow = {name: [*[3333.0] * 10, *[10.0] * 12, *[3333.0] * 23] for name in steady}
    found = verdicts(everything, own=view(queue=slow))
    assert found == {"sent while all is marked": Verdict.HOLDS, "V-step": Verdict.HOLDS}


def test_at_half_loss_a_packet_a_round_trip_is_enough() -> None:
    lossy = cell("R03", "10 Mb/s, 40 ms, 1 BDP")
    for packets, verdict in ((0.5, Verdict.HOLDS), (3.0, Verdict.PARTLY), (5.0, Verdict.NOT)):
        rates = {"0.1": 20.0, "0.3": 8.0, "0.5": packets}
        views = {p: view(summary={"arrivals": each * 2500}) for p, each in rates.items()}
        assert verdicts(lossy, **views)["sent at 50 % loss"] is verdict


def test_random_loss_is_judged_by_what_reno_gets() -> None:
    lossy = cell("R06", "loss 10 %", "sack")
    reno = view({"own": [[3e5] * 60]})
    for rate, verdict in ((3e5, Verdict.HOLDS), (2.5e5, Verdict.PARTLY), (2e5, Verdict.NOT)):
        own = view({"own": [[rate] * 60]})
        assert verdicts(lossy, own=own, reno=reno) == {"goodput, by Reno's": verdict}


# Readings and rows.


def test_a_reading_holds_in_part_or_not_at_all() -> None:
    def most(value: float) -> Verdict:
        return Reading("V", value, "<=", 1.0, 2.0).verdict

    assert [most(v) for v in (1.0, 1.5, 2.1, math.inf)] == [
        Verdict.HOLDS, Verdict.PARTLY, Verdict.NOT, Verdict.NOT,
    ]  # fmt: skip
    assert Reading("V", 0.8, ">=", 0.9).verdict is Verdict.NOT
    assert Reading.none("V", "why").verdict is Verdict.UNJUDGED
    assert Reading("V", 0.5, "<=", 1.0, reason="cannot fail here").verdict is Verdict.UNJUDGED
    assert "never" in Reading("V", math.inf, "<=", 1.0).text


def test_seeds_are_averaged_with_their_bounds() -> None:
    two = [Reading("V", 1.0, "<=", 2.0, 4.0), Reading("V", 3.0, "<=", 4.0, 6.0)]
    found = cells.mean(two)
    assert (found.value, found.holds, found.partly) == (2.0, 3.0, 5.0)
    # A seed that is not judged does not count beside one that is.
    unjudged = Reading("V", 9.0, "<=", 9.0, reason="why")
    assert cells.mean([unjudged, two[0]]) == two[0]
    assert cells.mean([unjudged, unjudged]).verdict is Verdict.UNJUDGED


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


@pytest.mark.parametrize("name", ["quinn", "quinn:newreno", "noq:cubic"])
def test_a_quic_stack_can_be_the_candidate(name: str) -> None:
    """Every run is planned, and what does not apply says why."""
    planned = suite.plan(candidate(name), "quick", (1,))
    stack, _, control = name.partition(":")
    groups = [group for task in planned.tasks for group in tomllib.loads(task.text)["traffic"]]
    controls = {group["control"] for group in groups if group["transport"] == stack}
    assert controls == {control or "cubic"}
    missing = {(part.run.id, part.cell.label): part.cell.missing for part in planned.parts}
    why = {key: reason for key, reason in missing.items() if reason}
    assert set(why) == {
        *(("R15", f"5.7, {media}") for media in ("scream", "cbr")),
        *(("R29", receiver) for receiver in ("ack-division", "optimistic", "no-echo")),
        *(("R23", f"100 ms of buffer, loss {loss} %, 1MB") for loss in ("0", "0.1")),
        *(("R24", f"1000 Mb/s, 80 ms, 1 BDP, {size}") for size in ("1500kB", "15MB")),
    }
    assert all("the stack" in reason or "a QUIC stack" in reason for reason in why.values())


@pytest.mark.slow
def test_a_quic_stack_has_rows_without_a_verdict(tmp_path: Path) -> None:
    found = judged("quinn:newreno", tmp_path, "R03", "R27", "R29")
    assert found["R03"].verdict is Verdict.HOLDS
    by_rule = {each.rule: each for each in found["R27"].readings}
    assert by_rule["timeouts in a row"].verdict is Verdict.UNJUDGED
    assert "does not report" in by_rule["timeouts in a row"].reason
    assert by_rule["V-step"].verdict is not Verdict.UNJUDGED
    assert found["R29"].verdict is Verdict.UNJUDGED
    assert "none cheats" in found["R29"].why_not


@pytest.mark.parametrize("name", ["cubic", "sack", "dctcp"])
def test_no_run_is_compared_with_itself(name: str) -> None:
    """Not even under another name of its groups."""
    planned = suite.plan(candidate(name), "quick", (1, 2))
    texts = {task.key: tomllib.loads(task.text) for task in planned.tasks}
    for part in planned.parts:
        for keys in part.keys:
            runs = [json.dumps(nameless(texts[key]), sort_keys=True) for key in keys.values()]
            assert len(set(runs)) == len(runs), part.cell.label


def nameless(scenario: dict[str, Any]) -> dict[str, Any]:
    groups = [{**each, "name": ""} for each in scenario["traffic"]]
    return {**scenario, "traffic": groups}


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


@pytest.mark.slow
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
        # CUBIC leaves 0.7 in flight. This Reno halves, and paces by a round trip that is no more.
        assert answers[0].value == pytest.approx(0.29 if name == reno else 0.7, abs=0.03)
    assert found["bbr1"]["R20"].verdict is Verdict.UNJUDGED
    assert found["bbr1"]["R20"].why_not == "the candidate does not use marks"
    again = judged(reno, tmp_path, *CHEAP)
    assert [again[name].decision_hash for name in CHEAP] == [
        found[reno][name].decision_hash for name in CHEAP
    ]


TEN = """from bluewater.control import Controller


class Ten(Controller):
    def start(self, s):
        self.cwnd = 10.0 * s.mtu
"""


def test_a_transfer_is_judged_by_the_time_of_a_slow_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1000 packets at 1 Gb/s and 80 ms: the handshake, rounds of 10 to 320 packets, and in the
    # seventh the last 370.
    ideal = 0.08 + 6 * 0.08 + 370 * 12e-6 + 0.08
    (tmp_path / "ten.py").write_text(TEN, "utf-8")
    monkeypatch.chdir(tmp_path)
    found = {}
    for name in ("cubic", "ten.py:Ten"):
        readings = judged(name, tmp_path, "R24")["R24"].readings
        found[name] = next(each for each in readings if each.cell.endswith("1500kB"))
    planned = suite.plan(candidate("cubic"), "quick", (1,), ("R24",))
    text = next(task.text for task in planned.tasks if "1500kB" in task.label)
    took = bluewater.run(tomllib.loads(text)).transfers["time_mean_s"][0]
    assert found["cubic"].value == pytest.approx(took / ideal, rel=1e-3)
    assert found["cubic"].verdict is Verdict.HOLDS
    # A hundred rounds in place of seven, some longer by a delayed acknowledgement.
    slow = found["ten.py:Ten"]
    assert 101 * 0.08 <= slow.value * ideal <= 110 * 0.08
    assert slow.verdict is Verdict.NOT


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

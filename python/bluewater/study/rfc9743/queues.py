"""Runs with queues that mark or drop early: R19, R20."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bluewater import own
from bluewater.study.rfc9743 import measures, rules
from bluewater.study.rfc9743.cells import Cell, Reading
from bluewater.study.rfc9743.marks import Marks
from bluewater.study.rfc9743.paths import Path
from bluewater.study.rfc9743.senders import CUBIC, PACKET, time
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bluewater.study.rfc9743.cells import Setting, View, Views

AQMS = ("codel", "pie", "fq-codel", "dualpi2", "red")


def aqms(s: Setting) -> Iterator[Cell]:
    """R19."""
    for rtt in s.some((0.01, 0.08), (0.01,)):
        # Room for what a discipline with a target lets through; droptail is not used here.
        path = Path.of(40e6, rtt, max(4.0, 0.1 / rtt))
        for aqm in AQMS:
            for ecn in (False, True):
                label = f"{aqm}, {number(1e3 * rtt)} ms, {'with' if ecn else 'without'} ECN"
                if s.candidate.needs_marks and not ecn:
                    yield Cell(label, missing="the candidate needs ECN")
                    continue
                if not s.candidate.answers_marks and ecn:
                    yield Cell(label, missing="the candidate does not use marks")
                    continue
                mine, cubic = s.candidate, CUBIC
                if ecn:
                    mine, cubic = mine.with_ecn(), cubic.with_ecn()

                def judge(found: Views, path: Path = path) -> Iterator[Reading]:
                    wait, theirs = (
                        1e3 * (found[each].summary["delay_p99_s"] or 0.0)
                        for each in ("own", "alone")
                    )
                    yield Reading("delay p99", wait, "<=", 2 * theirs, unit="ms")
                    yield rules.used(found["own"])
                    views = (found[each] for each in ("alone", "two", "candidate"))
                    yield from rules.harms(path, "incumbent", views)

                incumbent = cubic.flows("incumbent")
                groups = {
                    "own": (mine.flows("own"),),
                    "alone": (incumbent,),
                    "two": (incumbent, cubic.flows("beside")),
                    "candidate": (incumbent, mine.flows("beside")),
                }
                scenarios = {
                    name: path.scenario(*each, aqm={"aqm": aqm}, duration=20.0 if s.quick else 60.0)
                    for name, each in groups.items()
                }
                yield Cell(label, scenarios, judge)


def reaction(s: Setting) -> Iterator[Cell]:
    """R20."""
    if not s.candidate.answers_marks:
        for label in ("one mark", "a step", "all packets marked", "in a tunnel"):
            yield Cell(label, missing="the candidate does not use marks")
        return
    mine = s.candidate.with_ecn()
    yield _one_mark(mine.flows("own"))
    # 20 packets at 1 Gb/s are 242 µs (google/bbr).
    for rate, packets in s.some(((100e6, 8), (1e9, 20)), ((100e6, 8),)):
        yield _step(mine.flows("own"), rate, packets, 20.0 if s.quick else 60.0)
    yield _all_marked(mine.flows("own"))
    yield _tunnel(mine.flows("beside"), CUBIC.with_ecn())


def _one_mark(flow: dict[str, Any]) -> Cell:
    """A mark in a long queue, so that nothing else lowers what is in flight, and no mark."""
    path = Path.of(40e6, 0.04, 8)
    mark, step, length = 8.0, 0.005, 12.0

    def judge(found: Views) -> Iterator[Reading]:
        trip = found["own"].series("own", column="srtt_s")[0][round(mark / step) - 1]
        marked, unmarked = (_in_flight(found[each], step, path) for each in ("own", "unmarked"))
        value = measures.reaction(marked, unmarked, step, mark, trip)
        yield Reading("V-ecn in flight after a mark", value, ">=", 0.45, 0.0)
        # A mark hurries an acknowledgement, which may shift the least flight here by two packets.
        yield Reading("V-ecn in flight after a mark", value, "<=", 0.90, 0.98)

    scenarios = {
        name: path.scenario(flow, duration=length, warmup=1, step=step, aqm=_marks(at, at))
        for name, at in (("own", mark), ("unmarked", length))
    }
    return Cell("one mark", scenarios, judge)


def _in_flight(view: View, step: float, path: Path) -> list[float]:
    arrivals, drops, departures = map(view.queue, ("arrivals", "drops", "departures"))
    return measures.in_flight(arrivals, drops, departures, step, path.rtt)


def _marks(begin: float, until: float) -> dict[str, Any]:
    return own.keys(Marks) | {"params": {"begin": time(begin), "until": time(until)}}


def _step(flow: dict[str, Any], rate: float, packets: int, length: float) -> Cell:
    path = Path.of(rate, 0.01, 4)
    params = {
        "min_th": f"{packets}p", "max_th": f"{packets}p", "w_q": 1, "gentle": False, "max_p": 1,
    }  # fmt: skip

    def judge(found: Views) -> Iterator[Reading]:
        summary = found["own"].summary
        yield Reading("V-ecn lost under marks", summary["drops"], "<=", 0.0, unit="packets")

    scenario = path.scenario(
        flow, duration=length, warmup=min(5.0, length / 4), aqm={"aqm": "red", "params": params}
    )
    label = f"a step at {number(packets * PACKET * 8e3 / rate)} ms, {number(rate / 1e6)} Mb/s"
    return Cell(label, {"own": scenario}, judge)


def _all_marked(flow: dict[str, Any]) -> Cell:
    path = Path.of(40e6, 0.04, 1)
    begin, end, length = 10.0, 20.0, 45.0

    def judge(found: Views) -> Iterator[Reading]:
        view = found["own"]
        sent = view.queue("arrivals")[round(begin) + 5 : round(end)]
        value = sum(sent) / len(sent) * path.rtt
        yield Reading("sent while all is marked", value, "<=", 2.0, unit="packets a RTT")
        again = rules.follows(rules.sends_again(view, 1.0, end, path.rate), path.rtt)
        slowed = value * PACKET * 8 < 0.8 * path.rate * path.rtt
        yield again if slowed else rules.unbreakable(again, "it never slowed down")

    scenario = path.scenario(flow, duration=length, warmup=5, aqm=_marks(begin, end))
    return Cell("all packets marked", {"own": scenario}, judge)


def _tunnel(beside: dict[str, Any], cubic: Any) -> Cell:
    """In a tunnel all flows share one queue, whatever the discipline."""
    path = Path.of(50e6, 0.02, 4)
    incumbent = cubic.flows("incumbent")
    groups = {
        "alone": (incumbent,),
        "own": (incumbent, cubic.flows("beside")),
        "candidate": (incumbent, beside),
    }

    def judge(found: Views) -> Iterator[Reading]:
        yield from rules.harms(path, "incumbent", found.values())

    aqm = {"aqm": "fq-codel", "params": {"preset": "linux", "queues": 1}}
    scenarios = {name: path.scenario(*each, aqm=aqm) for name, each in groups.items()}
    return Cell("in a tunnel", scenarios, judge)

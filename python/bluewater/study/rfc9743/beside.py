"""Runs in which the candidate meets other traffic: R10 to R15, R18, R29."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bluewater.study.rfc9743 import measures, rules
from bluewater.study.rfc9743.cells import Cell, Reading
from bluewater.study.rfc9743.paths import Path, grid
from bluewater.study.rfc9743.senders import CUBIC, INCUMBENTS, RENO, rate
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bluewater.study.rfc9743.cells import Setting, Views
    from bluewater.study.rfc9743.senders import Sender

SHORT = Path.of(20e6, 0.04, 1)
"""The path of short flows, whose load is 30 % of it."""

TAILS = ("p50", "p95")


def _short(s: Setting, sender: Sender, size: int) -> dict[str, Any]:
    """Short flows of one size that come at random times."""
    load = 0.3 * SHORT.rate
    count = round(load * _length(s) / 8 / size)
    more: dict[str, Any] = {"app": "finite", "size": f"{size}B", "load": rate(load)}
    return sender.flows("short", count, (5.0, 5.0), **more) | {"start": "5s"}


def _length(s: Setting) -> float:
    return 20.0 if s.quick else 60.0


def _sizes(s: Setting) -> Iterator[tuple[str, int]]:
    sizes = (("15 kB", 15_000), ("100 kB", 100_000), ("1 MB", 1_000_000))
    yield from s.some(sizes, sizes[1:2])


def short_own(s: Setting) -> Iterator[Cell]:
    """R10."""
    for label, size in _sizes(s):

        def judge(found: Views) -> Iterator[Reading]:
            for tail in TAILS:
                mine, theirs = (
                    found[each].transfer("short", f"time_{tail}_s") for each in ("own", "cubic")
                )
                yield Reading(f"completion {tail}, by CUBIC's", mine / theirs, "<=", 1.25, 2.0)

        scenarios = {
            name: SHORT.scenario(
                sender.flows("long"), _short(s, sender, size), duration=_length(s), warmup=5
            )
            for name, sender in (("own", s.candidate), ("cubic", CUBIC))
        }
        yield Cell(label, scenarios, judge)


def short_mixed(s: Setting) -> Iterator[Cell]:
    """R11."""
    for incumbent in INCUMBENTS:
        for label, size in _sizes(s):

            def judge(found: Views) -> Iterator[Reading]:
                for tail in TAILS:
                    x, own, other = (
                        found[each].transfer("short", f"time_{tail}_s")
                        for each in ("short alone", "beside own", "beside candidate")
                    )
                    yield from rules.harm(rules.times(f"completion {tail}"), x, own, other)
                x, own, other = (
                    found[each].goodput("long")
                    for each in ("long alone", "beside own", "candidate beside")
                )
                yield from rules.harm(rules.rates("goodput of the long flow"), x, own, other)

            theirs, own = _short(s, incumbent, size), _short(s, s.candidate, size)
            groups = {
                "short alone": (theirs,),
                "long alone": (incumbent.flows("long"),),
                "beside own": (incumbent.flows("long"), theirs),
                "beside candidate": (s.candidate.flows("long"), theirs),
                "candidate beside": (incumbent.flows("long"), own),
            }
            scenarios = {
                name: SHORT.scenario(*each, duration=_length(s), warmup=5)
                for name, each in groups.items()
            }
            yield Cell(f"{incumbent.name}, {label}", scenarios, judge)


def one_beside_one(s: Setting) -> Iterator[Cell]:
    """R12."""
    length = 40.0 if s.quick else 180.0
    coexist = [
        (Path.of(50e6, 0.03, bdps), length) for bdps in s.some((0.1, 1, 2, 4, 8, 16), (0.1, 1, 4))
    ]
    for path, lasts in [*coexist, *((each, each.duration) for each in grid(s.quick))]:
        for incumbent in INCUMBENTS:
            yield _beside(s, path, incumbent, 1, 1, lasts)


def one_beside_many(s: Setting) -> Iterator[Cell]:
    """R13."""
    path = Path.of(100e6, 0.04, 1)
    counts = ((1, 4), (1, 16), (4, 1), (16, 1))
    for mine, theirs in s.some(counts, (counts[0], counts[2])):
        for incumbent in INCUMBENTS:
            yield _beside(s, path, incumbent, mine, theirs, 20.0 if s.quick else 60.0)


def _beside(
    s: Setting, path: Path, incumbent: Sender, mine: int, theirs: int, length: float
) -> Cell:
    """Some flows of the candidate beside some of an incumbent."""

    def judge(found: Views) -> Iterator[Reading]:
        views = (found[each] for each in ("alone", "own", "candidate"))
        yield from rules.harms(path, "incumbent", views)
        flows = found["candidate"].series(since=length / 4)
        yield rules.starving(flows, 1.0, path.rtt)

    begin = (0.0, 1.0) if mine + theirs > 2 else (0.0, 0.1)
    incumbents = incumbent.flows("incumbent", theirs, begin)
    groups = {
        "alone": (incumbents,),
        "own": (incumbents, incumbent.flows("beside", mine, begin)),
        "candidate": (incumbents, s.candidate.flows("beside", mine, begin)),
    }
    scenarios = {name: path.scenario(*each, duration=length) for name, each in groups.items()}
    count = "" if mine == theirs == 1 else f", {mine} : {theirs}"
    return Cell(f"{incumbent.name}, {path.label}{count}", scenarios, judge)


def late(s: Setting) -> Iterator[Cell]:
    """R14."""
    length, join = 120.0, 30.0
    for bdps in s.some((0.5, 1, 4), (1,)):
        path = Path.of(50e6, 0.03, bdps)
        for incumbent in INCUMBENTS:
            for first, second in ((incumbent, s.candidate), (s.candidate, incumbent)):

                def judge(found: Views, path: Path = path) -> Iterator[Reading]:
                    view = found["own"]
                    yield rules.starving(view.series(since=join), 1.0, path.rtt)
                    seconds = measures.first(view.total("late"), 1.0, join, path.rate / 4, 5.0)
                    yield rules.converges(seconds, path.rtt, "half of an equal share after")

                name = "the candidate" if second is s.candidate else incumbent.name
                scenario = path.scenario(
                    first.flows("first"),
                    second.flows("late", 1, (join, join + 0.1)),
                    duration=length,
                    warmup=join,
                )
                yield Cell(
                    f"{incumbent.name}, {path.label}, {name} joins", {"own": scenario}, judge
                )


def calls(s: Setting) -> Iterator[Cell]:
    """R15."""
    path = Path(2e6, 0.1, 75_000)
    media: dict[str, dict[str, Any]] = {
        "scream": {"transport": "scream", "packet": "1200B", "start_rate": "150kbit"},
        "cbr": {"transport": "cbr", "packet": "1200B", "rate": "500kbit"},
    }
    cases: dict[str, dict[str, Any]] = {
        "5.6": {},
        "5.7": {"app": "web", "size": "40kB", "objects": 1, "off": "10s"},
    }
    length = 120.0
    for case, app in cases.items():
        for kind, keys in media.items():
            if app and s.candidate.is_quic:
                yield Cell(f"{case}, {kind}", missing="the stack carries no web sessions here")
                continue
            call = {"name": "call", "from": ["S"], "to": ["D"], "start": "5s..5500ms"} | keys
            flows, begin = (10, (0.0, 10.0)) if app else (1, (0.0, 0.5))

            def judge(found: Views) -> Iterator[Reading]:
                alone, own, mine = (
                    found[each].result.calls.to_dicts()[0] | {"rate": found[each].goodput("call")}
                    for each in ("alone", "reno", "own")
                )
                for column, quantity in (
                    ("delay_p95_s", rules.times("delay p95")),
                    ("loss", rules.losses("loss")),
                    ("rate", rules.rates("rate")),
                ):
                    yield from rules.harm(quantity, alone[column], own[column], mine[column])

            groups = {
                "alone": (call,),
                "reno": (call, RENO.flows("tcp", flows, begin, **app)),
                "own": (call, s.candidate.flows("tcp", flows, begin, **app)),
            }
            scenarios = {}
            for name, each in groups.items():
                made = path.scenario(*each, duration=length, warmup=30)
                made["measure"]["calls"] = True
                scenarios[name] = made
            yield Cell(f"{case}, {kind}", scenarios, judge)


def policer(s: Setting) -> Iterator[Cell]:
    """R18."""
    path = Path(100e6, 0.1, 5_000_000)
    length, warmup = 60.0, 40.0
    for tokens in s.some((1e6, 10e6), (10e6,)):
        for bdps in s.some((0.5, 1, 2, 4), (1,)):
            burst = round(bdps * path.rate * path.rtt / 8)
            aqm = {
                "prefilter": "policer",
                "prefilter_params": {"rate": rate(tokens), "burst": f"{burst}B"},
            }

            def judge(found: Views, tokens: float = tokens) -> Iterator[Reading]:
                share = found["alone"].goodput() / tokens
                yield Reading("goodput of the tokens", 100 * share, ">=", 90.0, unit="%")
                yield rules.lost(found["alone"], found["cubic alone"])
                views = (found[each] for each in ("cubic alone", "own", "candidate"))
                yield from rules.harms(path, "incumbent", views)

            incumbent = CUBIC.flows("incumbent")
            groups = {
                "alone": (s.candidate.flows("own"),),
                "cubic alone": (incumbent,),
                "own": (incumbent, CUBIC.flows("beside")),
                "candidate": (incumbent, s.candidate.flows("beside")),
            }
            scenarios = {
                name: path.scenario(*each, duration=length, warmup=warmup, aqm=aqm)
                for name, each in groups.items()
            }
            label = f"{number(tokens / 1e6)} Mb/s, {number(bdps)} BDP"
            yield Cell(label, scenarios, judge)


def cheats(s: Setting) -> Iterator[Cell]:
    """R29."""
    path = Path.of(20e6, 0.04, 1)
    length = 40.0 if s.quick else 120.0
    for receiver in ("ack-division", "optimistic", "no-echo"):
        marks = receiver == "no-echo"
        if s.candidate.is_quic:
            yield Cell(receiver, missing="the stack's receivers are its own, and none cheats")
            continue
        if marks and not s.candidate.answers_marks:
            yield Cell(receiver, missing="the candidate does not use marks")
            continue
        sender = s.candidate.with_ecn() if marks else s.candidate

        def judge(found: Views) -> Iterator[Reading]:
            # What arrives in order is no measure: some of it never arrived.
            cheat, honest = (
                found[each].flows("one")[0]["throughput_bps"] for each in ("cheat", "honest")
            )
            yield Reading("share, by an honest flow's", measures.ratio(cheat, honest), "<=", 1.1)

        other = sender.flows("other")
        groups = {
            "cheat": (sender.flows("one", receiver=receiver), other),
            "honest": (sender.flows("one"), other),
        }
        scenarios = {
            name: path.scenario(
                *each, duration=length, warmup=10, aqm={"aqm": "codel"} if marks else None
            )
            for name, each in groups.items()
        }
        yield Cell(receiver, scenarios, judge)

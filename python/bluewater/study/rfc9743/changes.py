"""Runs on paths that change: R02, R17, R21, R26, R27."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater.study.rfc9743 import measures, rules
from bluewater.study.rfc9743.cells import Cell, Reading
from bluewater.study.rfc9743.paths import Path
from bluewater.study.rfc9743.senders import CUBIC, PACKET, rate, time
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bluewater.study.rfc9743.cells import Setting, View, Views

LEAST_RTO = 0.2
"""The least timeout of the preset ``modern``, s."""


def _steps(values: Sequence[tuple[float, str]], repeat: bool = False) -> dict[str, Any]:
    """A trace that changes at these times."""
    return {"steps": [[time(at), value] for at, value in values], "repeat": repeat}


def outage(s: Setting) -> Iterator[Cell]:
    """R02."""
    path = Path.of(10e6, 0.04, 1)
    begin, length, more = 20.0, 30.0, 45.0
    end = begin + length
    lost = {"loss_trace": _steps([(0, "0"), (begin, "1"), (end, "0")])}
    dead = {"rate_trace": _steps([(0, rate(1e9)), (begin, "0bit"), (end, rate(1e9))])}

    def judge(found: Views) -> Iterator[Reading]:
        view = found["own"]
        window = view.series("own", column="cwnd_packets")[0][round(begin) - 1]
        rto = max(LEAST_RTO, view.series("own", column="srtt_s")[0][round(begin) - 1])
        count, last = measures.timeouts(rto, length)
        # What was on its way to the queue when the outage began is of the window.
        sent = sum(view.queue("arrivals")[round(begin) : round(end)])
        yield Reading("sent in the outage", sent, "<=", window + count + 3, unit="packets")
        seconds = rules.sends_again(view, 1.0, end, path.rate)
        yield Reading("80 % used after", seconds, "<=", last + 5.0, unit="s")

    cases: dict[str, dict[str, Any]] = {"acknowledgements": {"back": dead}, "data": {"link": lost}}
    for label, keys in cases.items():
        scenario = path.scenario(
            s.candidate.flows("own"), duration=end + more, warmup=begin / 2, **keys
        )
        yield Cell(label, {"own": scenario}, judge)


def wireless(s: Setting) -> Iterator[Cell]:
    """R17."""
    path = Path.of(20e6, 0.04, 4)
    impaired = {"loss": "gemodel 0.3% 29.7% 100% 0%", "jitter": "10ms"}
    for model in s.some(("wifi", "cellular", "fade"), ("wifi", "cellular")):
        for label, wire in (("", {}), (", 1 % loss and jitter", impaired)):
            trace = {"model": model, "mean": rate(path.rate), "seed": 1}

            def judge(found: Views) -> Iterator[Reading]:
                view, cubic = found["own"], found["cubic"]
                links = view.result.links
                capacity = links.filter(links["wire"] == "R->B")["capacity_bps"][0]
                share = 100 * view.goodput() / capacity
                yield Reading("goodput of the trace", share, ">=", 70.0, unit="%")
                mine, theirs = (each.summary["delay_p95_s"] or 0.0 for each in (view, cubic))
                yield Reading("delay p95", 1e3 * mine, "<=", 1e3 * theirs, unit="ms")

            scenarios = {
                name: path.scenario(sender.flows("own"), link={"rate_trace": trace} | wire)
                for name, sender in (("own", s.candidate), ("cubic", CUBIC))
            }
            yield Cell(f"{model}{label}", scenarios, judge)


def varying_delay(s: Setting) -> Iterator[Cell]:
    """R21."""
    path = Path.of(20e6, 0.04, 1)
    ramp = [(0.5 * at, 0.01 + 0.09 * at / 60) for at in range(61)]
    links: dict[str, dict[str, Any]] = {
        "40 and 80 ms": {
            "delay_trace": _steps([(0, "20ms"), (5, "60ms"), (10, "60ms")], repeat=True)
        },
        "leo": {"rate_trace": {"model": "leo", "mean": rate(path.rate), "seed": 1}},
        "20 to 200 ms": {
            "delay_trace": _steps([(0, time(0.01)), *((10 + at, time(d)) for at, d in ramp)])
        },
    }
    for label, link in links.items():
        back = {"delay": "10ms"} if label == "20 to 200 ms" else {}
        if back:
            # Both ways change: the round trip begins at 20 ms and ends at 200.
            back["delay_trace"] = link["delay_trace"]

        def judge(found: Views) -> Iterator[Reading]:
            view = found["own"]
            yield rules.used(view)
            row = view.flows("own")[0]
            links = view.result.links
            wire = links.filter(links["wire"] == "R->B")["lost"].fill_null(0).sum()
            needless = max(0.0, row["retransmits"] - row["drops"] - wire)
            share = 100 * needless / max(1, row["arrivals"])
            yield Reading("spurious repairs", share, "<=", 1.0, unit="%")

        scenario = path.scenario(s.candidate.flows("own"), warmup=5, link=link, back=back)
        yield Cell(label, {"own": scenario}, judge)


def transients(s: Setting) -> Iterator[Cell]:
    """R26."""
    path = Path(100e6, 0.1, 1024 * PACKET)
    begin, length = 30.0, 60.0
    full, most = path.rate, 75e6
    cases: dict[str, tuple[list[tuple[float, float]], float]] = {
        "75 to 0 Mb/s": ([(0, most), (begin, 0)], begin),
        "0 to 75 Mb/s": ([(begin, most)], begin),
        "30 steps up": ([(begin + at, 2.5e6 * (at + 1)) for at in range(30)], begin + 29),
    }
    for label, (changes, last) in cases.items():
        begins, stops = changes[0][0], [at for at, value in changes if not value]
        datagrams: dict[str, Any] = {
            "name": "datagrams", "transport": "cbr", "packet": f"{PACKET}B", "from": ["S"],
            "to": ["D"], "start": time(begins), "rate": rate(changes[0][1]),
        }  # fmt: skip
        if stops:
            datagrams["stop"] = time(stops[0])
        elif len(changes) > 1:
            datagrams["rates"] = [[time(at), rate(value)] for at, value in changes[1:]]
        left = full - changes[-1][1]
        ends = last + 30.0

        def judge(
            found: Views, left: float = left, last: float = last, grows: bool = bool(stops)
        ) -> Iterator[Reading]:
            view = found["own"]
            used = view.total("own")
            if grows:
                yield rules.follows(measures.first(used, 1.0, last, 0.8 * left), path.rtt)
            else:
                seconds = rules.settles(view, used, left, path, last)
                yield rules.follows(seconds, path.rtt, "V-step down")
            mine, theirs = (100 * found[each].loss("datagrams") for each in ("own", "cubic"))
            yield Reading("loss of the datagrams", mine, "<=", max(2 * theirs, 0.1), unit="%")

        scenarios = {
            name: path.scenario(
                sender.flows("own"), datagrams, duration=max(length, ends), warmup=15
            )
            for name, sender in (("own", s.candidate), ("cubic", CUBIC))
        }
        yield Cell(label, scenarios, judge)


def path_change(s: Setting) -> Iterator[Cell]:
    """R27."""
    at, length = 20.0, 60.0
    slow, fast, near, far = 10e6, 100e6, 0.04, 0.16
    cases: dict[str, tuple[float, float, float, float]] = {
        "rate x 10": (slow, fast, near, near),
        "rate / 10": (fast, slow, near, near),
        "RTT x 4": (slow, slow, near, far),
        "RTT / 4": (slow, slow, far, near),
        "rate x 10, RTT x 4": (slow, fast, near, far),
        "rate / 10, RTT / 4": (fast, slow, far, near),
    }
    for label, (r0, r1, d0, d1) in cases.items():
        path = Path.of(r0, d0, 1)
        after = Path(r1, d1, path.buffer)

        def judge(
            found: Views,
            after: Path = after,
            longer: float = max(d0, d1),
            grows: bool = r1 > r0 or d1 > d0,
        ) -> Iterator[Reading]:
            view = found["own"]
            if grows:
                yield rules.follows(rules.sends_again(view, 1.0, at, after.rate), longer)
            else:
                seconds = rules.settles(view, rules.carried(view, 1.0), after.rate, after, at)
                yield rules.follows(seconds, longer, "V-step down")
            yield _chain(s, view, at)

        link: dict[str, Any] = {}
        back: dict[str, Any] = {}
        if r0 != r1:
            link["rate_trace"] = _steps([(0, rate(r0)), (at, rate(r1))])
        if d0 != d1:
            trace = _steps([(0, time(d0 / 2)), (at, time(d1 / 2))])
            link["delay_trace"], back["delay_trace"] = trace, trace
        scenario = path.scenario(
            s.candidate.flows("own"), duration=length, warmup=10, link=link, back=back, control=True
        )
        yield Cell(label, {"own": scenario}, judge)
    path = Path.of(slow, near, 1)
    for lasts in s.some((1.0, 10.0), (1.0,)):
        end = at + lasts

        def judge_outage(found: Views, end: float = end) -> Iterator[Reading]:
            view = found["own"]
            seconds = rules.sends_again(view, 1.0, end, slow)
            yield rules.follows(seconds, near)
            yield _chain(s, view, end)

        # An outage loses what is on the way: another path would not deliver it either.
        link = {"loss_trace": _steps([(0, "0"), (at, "1"), (end, "0")])}
        scenario = path.scenario(
            s.candidate.flows("own"), duration=length, warmup=10, link=link, control=True
        )
        yield Cell(f"outage of {number(lasts)} s", {"own": scenario}, judge_outage)


def _chain(s: Setting, view: View, since: float) -> Reading:
    """How many timeouts follow one another after the change."""
    if s.candidate.is_quic:
        return Reading.none("timeouts in a row", "the stack does not report its timeouts")
    table = view.result.control.filter(pl.col("event").is_in(["timeout", "recovered"]))
    events = list(zip(table["time_s"].to_list(), table["event"].to_list(), strict=True))
    return Reading("timeouts in a row", measures.chain(events, since), "<=", 2.0)

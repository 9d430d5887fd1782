"""Runs in which flows of the candidate are alone: R01, R03 to R09, R16, R22 to R25."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bluewater.study.rfc9743 import measures, rules
from bluewater.study.rfc9743.cells import Cell, Reading
from bluewater.study.rfc9743.paths import Path, grid
from bluewater.study.rfc9743.senders import CUBIC, PACKET, RENO
from bluewater.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bluewater.study.rfc9743.cells import Setting, Views

SPREAD = (0.0, 1.0)
"""When each of several flows starts, s."""


def collapse(s: Setting) -> Iterator[Cell]:
    """R01."""
    path = Path.of(10e6, 0.04, 0.5)
    counts = s.some((1, 4, 16, 64, 256), (1, 16, 64))

    def judge(found: Views) -> Iterator[Reading]:
        shares = [100 * found[str(n)].goodput() / path.rate for n in counts]
        yield Reading("goodput of the link", min(shares), ">=", 90.0, unit="%")
        falls = (a - b for at, a in enumerate(shares) for b in shares[at:])
        yield Reading("fall with the number of flows", max(falls), "<=", 5.0, unit="%")

    yield Cell(
        path.label,
        {
            str(n): path.scenario(s.candidate.flows("own", n, SPREAD), duration=40, warmup=10)
            for n in counts
        },
        judge,
    )


def persistent_loss(s: Setting) -> Iterator[Cell]:
    """R03."""
    path = Path.of(10e6, 0.04, 1)
    losses = (0.1, 0.3, 0.5)
    length, warmup = 120.0, 20.0

    def judge(found: Views) -> Iterator[Reading]:
        sent = [found[str(p)].summary["arrivals"] / (length - warmup) * path.rtt for p in losses]
        rises = max(measures.ratio(b, a) for a, b in pairwise(sent))
        yield Reading("rate at more loss, by that at less", rises, "<=", 1.0)
        # One packet a round trip, then exponential back-off (RFC 9743 §5.1.1).
        yield Reading("sent at 50 % loss", sent[-1], "<=", 1.0, 4.0, "packets a RTT")

    yield Cell(
        path.label,
        {
            str(p): path.scenario(
                s.candidate.flows("own"), duration=length, warmup=warmup, link={"loss": str(p)}
            )
            for p in losses
        },
        judge,
    )


def deep_buffers(s: Setting) -> Iterator[Cell]:
    """R04."""
    for bdps in s.some((1, 10, 50, 100), (1, 10)):
        path = Path.of(50e6, 0.03, bdps)
        length = 40.0 if s.quick else 120.0

        def judge(found: Views, path: Path = path) -> Iterator[Reading]:
            yield rules.queue(found["own"], path)

        own = s.candidate.flows("own", 2, SPREAD)
        yield Cell(path.label, {"own": path.scenario(own, duration=length)}, judge)


def shallow_buffers(s: Setting) -> Iterator[Cell]:
    """R05."""
    for bdps in s.some((0.02, 0.1, 0.5, 1, 1.5, 2), (0.1, 1)):
        for n in s.some((1, 10, 100), (1, 10)):
            path = Path.of(100e6, 0.1, bdps)

            def judge(found: Views) -> Iterator[Reading]:
                yield rules.lost(found["own"], found["cubic"])
                yield rules.used(found["own"])

            length = 20.0 if s.quick else 60.0
            yield Cell(f"{path.label}, {n} flows", _pair(s, path, n, length), judge)


def _pair(s: Setting, path: Path, n: int, length: float | None) -> dict[str, dict[str, Any]]:
    """The same flows of the candidate and of CUBIC."""
    return {
        name: path.scenario(
            sender.flows("own", n, SPREAD if n > 1 else (0.0, 0.1)), duration=length
        )
        for name, sender in (("own", s.candidate), ("cubic", CUBIC))
    }


def random_loss(s: Setting) -> Iterator[Cell]:
    """R06."""
    path = Path.of(100e6, 0.1, 1)
    for loss in s.some((1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2), (1e-3, 0.05)):

        def judge(found: Views) -> Iterator[Reading]:
            share = measures.ratio(found["own"].goodput(), found["reno"].goodput())
            # Two runs of Reno differ by their losses, hence the second step.
            yield Reading("goodput, by Reno's", share, ">=", 1.0, 0.75)

        scenarios = {
            name: path.scenario(
                sender.flows("own"),
                duration=30.0 if s.quick else 60.0,
                link={"loss": f"{loss:.5f}"},
            )
            for name, sender in (("own", s.candidate), ("reno", RENO))
        }
        yield Cell(f"loss {number(100 * loss)} %", scenarios, judge)


def own_kind(s: Setting) -> Iterator[Cell]:
    """R07."""
    for path in grid(s.quick):
        for n in s.some((2, 4, 8, 32), (2, 8)):

            def judge(found: Views, path: Path = path) -> Iterator[Reading]:
                view, length = found["own"], path.duration
                yield rules.even(view, duration=length)
                yield rules.starving(view.series(since=length / 4), 1.0, path.rtt)

            scenario = path.scenario(s.candidate.flows("own", n, SPREAD))
            yield Cell(f"{path.label}, {n} flows", {"own": scenario}, judge)


def convergence(s: Setting) -> Iterator[Cell]:
    """R08."""
    path = Path.of(40e6, 0.04, 1)
    times = [(20.0 * at, 80.0 + 20 * at) for at in range(4)]

    def judge(found: Views) -> Iterator[Reading]:
        flows = [found["own"].series(str(at))[0] for at in range(4)]
        for join, _ in times[1:]:
            yield rules.converges(measures.converged(flows, times, 1.0, join), path.rtt)

    groups = [
        s.candidate.flows(str(at), 1, (start, start + 0.1), stop)
        for at, (start, stop) in enumerate(times)
    ]
    yield Cell(path.label, {"own": path.scenario(*groups, duration=140)}, judge)


def rtt_fairness(s: Setting) -> Iterator[Cell]:
    """R09."""
    pairs = ((0.01, 0.04), (0.02, 0.16), (0.04, 0.16), (0.03, 0.12))
    for short, long in s.some(pairs, pairs[:1]):
        for bdps in (0.5, 4):
            # The bottleneck has the short round trip, the buffer counts in the long one.
            room = Path.of(40e6, long, bdps).buffer
            path = Path(40e6, short, room)

            def judge(found: Views, short: float = short, long: float = long) -> Iterator[Reading]:
                view, ratio = found["own"], long / short
                value = measures.uneven(view.goodput("short"), view.goodput("long"))
                yield Reading("V-rtt", value, "<=", ratio, ratio**2)
                yield rules.starving(view.series(since=30), 1.0, long)

            scenario = path.scenario(
                s.candidate.flows("short"),
                s.candidate.flows("long", ends=("L", "D")),
                access={"L": long - short},
                duration=120,
                warmup=30,
            )
            label = f"{number(1e3 * short)} : {number(1e3 * long)} ms, {number(bdps)} BDP"
            yield Cell(label, {"own": scenario}, judge)


def wired(s: Setting) -> Iterator[Cell]:
    """R16."""
    for path in grid(s.quick):

        def judge(found: Views, path: Path = path) -> Iterator[Reading]:
            yield rules.used(found["own"])
            yield rules.queue(found["own"], path)
            yield rules.lost(found["own"], found["cubic"])

        yield Cell(path.label, _pair(s, path, 1, None), judge)


def constrained(s: Setting) -> Iterator[Cell]:
    """R22."""
    places = [(rtt, packets * PACKET) for rtt in (0.02, 0.2, 1.0) for packets in (4, 10)]
    for rtt, room in s.some([*places, (0.005, 10_000)], places[2:4]):
        for n in (1, 4):
            path = Path(64e3, rtt, room)

            def judge(found: Views, path: Path = path, n: int = n) -> Iterator[Reading]:
                view = found["own"]
                yield rules.used(view, 0.80, None)
                if n > 1:
                    yield rules.starving(view.series(since=75), 1.0, path.rtt)
                yield Reading("loss", 100 * view.summary["loss"], "<=", 10.0, unit="%")

            scenario = path.scenario(s.candidate.flows("own", n, SPREAD), duration=375, warmup=75)
            label = f"64 kb/s, {number(1e3 * rtt)} ms, {number(room / 1e3)} kB, {n} flows"
            yield Cell(label, {"own": scenario}, judge)


def satellite(s: Setting) -> Iterator[Cell]:
    """R23."""
    for buffer in s.some((0.1, 1.0), (0.1,)):
        for loss in (0, 0.001):
            path = Path(40e6, 0.6, round(40e6 * buffer / 8))

            def judge(found: Views, path: Path = path) -> Iterator[Reading]:
                seconds = rules.sends_again(found["own"], path.rtt, 0, path.rate)
                yield Reading("80 % used after", seconds / path.rtt, "<=", 15.0, 40.0, "RTT")
                yield rules.lost(found["own"], found["cubic"])

            keys: dict[str, Any] = {"back": {"rate": "4mbit"}}
            if loss:
                keys["link"] = {"loss": str(loss)}
            scenarios = {
                name: path.scenario(sender.flows("own"), step=path.rtt, duration=60, **keys)
                for name, sender in (("own", s.candidate), ("cubic", CUBIC))
            }
            label = f"{number(1e3 * buffer)} ms of buffer, loss {number(100 * loss)} %"
            yield Cell(label, scenarios, judge)
            for size in s.some(("1MB", "10MB"), ("1MB",)):
                # Several, since few packets of one are lost.
                yield _transfers(s, path, label, size, 4 if loss else 1, **keys)


def large_bdp(s: Setting) -> Iterator[Cell]:
    """R24."""
    for rtt in s.some((0.08, 0.16), (0.08,)):
        path = Path.of(1e9, rtt, 1)

        def judge(found: Views, path: Path = path) -> Iterator[Reading]:
            seconds = rules.sends_again(found["own"], path.rtt, 0, path.rate)
            yield Reading("80 % used after", seconds / path.rtt, "<=", 20.0, 100.0, "RTT")

        scenario = path.scenario(
            s.candidate.flows("own", start=(0, 0.001)), duration=8 if s.quick else 20, step=rtt
        )
        yield Cell(path.label, {"own": scenario}, judge)
        # 1500 · 10ⁿ bytes
        for size in s.some(
            ("15kB", "150kB", "1500kB", "15MB", "150MB", "1500MB"), ("1500kB", "15MB")
        ):
            yield _transfers(s, path, path.label, size)


def _transfers(s: Setting, path: Path, where: str, size: str, count: int = 1, **keys: Any) -> Cell:
    """Transfers of one size, one after the other."""
    apart = 120.0

    def judge(found: Views) -> Iterator[Reading]:
        times = [found["own"].transfer(str(n), "slowdown_mean") for n in range(count)]
        value = sum(times) / count
        yield Reading("time of a transfer, by slow start's", value, "<=", 1.5, 3.0)

    label = f"{where}, {size}"
    if s.candidate.is_quic:
        return Cell(label, missing="slow start's time is unknown for a QUIC stack")
    groups = [
        s.candidate.flows(str(n), start=(apart * n, apart * n + 0.001), app="finite", size=size)
        for n in range(count)
    ]
    return Cell(
        label, {"own": path.scenario(*groups, duration=apart * count, warmup=0, **keys)}, judge
    )


def reordering(s: Setting) -> Iterator[Cell]:
    """R25."""
    path = Path.of(20e6, 0.04, 1)
    for jitter in s.some((0.005, 0.02, 0.05), (0.02,)):

        def judge(found: Views) -> Iterator[Reading]:
            share = measures.ratio(found["own"].goodput(), found["without"].goodput())
            yield Reading("goodput, by that without", 100 * share, ">=", 70.0, unit="%")

        own = s.candidate.flows("own")
        wire = {"jitter": f"{round(1e3 * jitter)}ms", "reorder": True}
        scenarios = {"own": path.scenario(own, link=wire), "without": path.scenario(own)}
        yield Cell(f"jitter {number(1e3 * jitter)} ms", scenarios, judge)

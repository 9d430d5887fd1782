"""Runs in a data centre and with a slow way back: R28."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

from bluewater.study.rfc9743 import measures, rules
from bluewater.study.rfc9743.cells import Cell, Reading
from bluewater.study.rfc9743.paths import BACK, Path
from bluewater.study.rfc9743.senders import CUBIC, PACKET, Sender, rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bluewater.study.rfc9743.cells import Setting, Views

DCTCP = Sender("dctcp", "dctcp", ecn=True)

STEP = {
    "aqm": "red",
    "params": {"min_th": "65p", "max_th": "65p", "w_q": 1, "gentle": False, "max_p": 1},
}
"""Marks every packet that finds more than 65 packets."""


def data_centre(s: Setting) -> Iterator[Cell]:
    """R28."""
    path = Path(10e9, 100e-6, 4 * 83 * PACKET)
    length = 0.3 if s.quick else 1.0
    mine = s.candidate.with_ecn() if s.candidate.answers_marks else s.candidate
    begin = (0.0, 0.001)
    for incumbent in (CUBIC.with_ecn(), DCTCP):
        theirs = incumbent.flows("incumbent", 1, begin)

        def judge(found: Views) -> Iterator[Reading]:
            yield rules.used(found["own"], 0.80, None)
            views = (found[each] for each in ("alone", "two", "candidate"))
            yield from rules.harms(path, "incumbent", views)

        groups = {
            "own": (mine.flows("own", 1, begin),),
            "alone": (theirs,),
            "two": (theirs, incumbent.flows("beside", 1, begin)),
            "candidate": (theirs, mine.flows("beside", 1, begin)),
        }
        scenarios = {
            name: path.scenario(*each, aqm=STEP, duration=length, step=0.01)
            for name, each in groups.items()
        }
        yield Cell(f"10 Gb/s, 100 us, beside {incumbent.name}", scenarios, judge)
    yield _incast(path, mine)
    there = Path.of(20e6, 0.04, 1)
    for part in s.some((10, 50), (10,)):
        back = {"rate": rate(there.rate / part)}

        def judge_back(found: Views) -> Iterator[Reading]:
            yield rules.used(found["own"], 0.80, None)

        own = s.candidate.flows("own")
        other = s.candidate.flows("back", ends=("D", "S"))
        scenario = there.scenario(own, other, back=back)
        scenario["queue"].append({"link": BACK, "aqm": "droptail", "buffer": f"{10 * PACKET}B"})
        yield Cell(f"way back 1/{part}, with a flow on it", {"own": scenario}, judge_back)


def _incast(path: Path, sender: Sender) -> Cell:
    """32 flows send 1 MB each to one host at once."""
    flows, size, step, length = 32, 1_000_000, 0.0005, 0.5
    packets = math.ceil(size / PACKET)

    def judge(found: Views) -> Iterator[Reading]:
        sent = list(accumulate(each * step / 8 for each in found["own"].total()))
        took = measures.first(sent, step, 0, 0.9999 * flows * packets * PACKET)
        ideal = flows * packets * PACKET * 8 / path.rate
        yield Reading("incast of 32: link used", 100 * ideal / took, ">=", 80.0, unit="%")

    group = sender.flows("own", flows, (0.0, 0.0001), app="finite", size=f"{size}B")
    scenario = path.scenario(group, aqm=STEP, duration=length, warmup=0, step=step)
    return Cell("10 Gb/s, 100 us, incast of 32", {"own": scenario}, judge)

"""The rules of the suite: readings of results, with the bounds of each rule.

RFC 9743 has no thresholds. All bounds are ours. A bound that a path cannot break judges nothing:
the reading says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bluewater.study.rfc9743 import measures
from bluewater.study.rfc9743.cells import Reading
from bluewater.study.rfc9743.senders import PACKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bluewater.study.rfc9743.cells import View
    from bluewater.study.rfc9743.paths import Path


def used(view: View, holds: float = 0.90, partly: float | None = 0.75) -> Reading:
    """V-util: what the bottleneck sent, by what it could have sent."""
    links = view.result.links
    if links.height and "R->B" in links["wire"].to_list():
        row = links.filter(links["wire"] == "R->B")
        value = view.summary["throughput_bps"] / row["capacity_bps"][0]
    else:
        value = view.summary["utilisation"]
    return Reading("V-util", 100 * value, ">=", 100 * holds, _percent(partly), "%")


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def unbreakable(reading: Reading, why: str) -> Reading:
    """The same reading, not judged, because nothing could break its bound here."""
    return replace(reading, reason=f"cannot fail here: {why}")


def queue(view: View, path: Path) -> Reading:
    """V-queue: the median delay in the queue in round trips."""
    value = (view.summary["delay_p50_s"] or 0.0) / path.rtt
    reading = Reading("V-queue", value, "<=", 1.0, 2.0, "RTT")
    if path.longest_wait <= path.rtt:
        return unbreakable(reading, "the buffer holds no more than a round trip")
    return reading


def lost(view: View, cubic: View) -> Reading:
    """V-loss: the share lost at the bottleneck, beside CUBIC's."""
    mine, theirs = 100 * view.summary["loss"], 100 * cubic.summary["loss"]
    return Reading("V-loss", mine, "<=", max(2 * theirs, 0.1), 5.0, "%")


def even(view: View, *groups: str, duration: float) -> Reading:
    """V-jain: the fairness index of the second half."""
    flows = [sum(flow) for flow in view.series(*groups, since=duration / 2)]
    return Reading("V-jain", measures.jain(flows), ">=", 0.90, 0.75)


def starving(flows: Sequence[Sequence[float]], step: float, rtt: float) -> Reading:
    """V-starve: the share of windows in which any flow gets less than a tenth of an equal share."""
    value = measures.starved(flows, step, measures.window_s(rtt))
    return Reading("V-starve", 100 * value, "<=", 0.0, 5.0, "%")


@dataclass(frozen=True)
class Harm:
    """A quantity of an incumbent's that can be harmed.

    Attributes:
        what: Its name.
        harmed: The harm of a change from one value to another.
        worst: The value at which no more harm can be done.
    """

    what: str
    harmed: Callable[[float, float], float]
    worst: float


def rates(what: str) -> Harm:
    """A rate, of which more is better."""
    return Harm(what, measures.harm_to_more, 0.0)


def times(what: str, worst: float = math.inf) -> Harm:
    """A time, of which less is better."""
    return Harm(what, measures.harm_to_less, worst)


def losses(what: str) -> Harm:
    """A share lost; a small one counts as 0.1 %."""
    return Harm(what, lambda x, y: measures.harm_to_less(x, y, measures.LEAST_LOSS), 1.0)


def harm(quantity: Harm, alone: float, own: float, candidate: float) -> Iterator[Reading]:
    """V-harm: what a flow loses beside the candidate of what it has beside its own kind.

    The other reading is the difference of both harms by Ware et al., each of what the flow has
    alone. It is not judged: where own kind takes nearly all, little is left to differ by.
    """
    value = quantity.harmed(own, candidate)
    reading = Reading(f"V-harm {quantity.what}", value, "<=", 0.10, 0.25)
    if quantity.harmed(own, quantity.worst) <= reading.holds:
        reading = unbreakable(reading, "own kind leaves too little to harm")
    yield reading
    difference = quantity.harmed(alone, candidate) - quantity.harmed(alone, own)
    name = f"difference of harms, {quantity.what}"
    yield replace(reading, rule=name, value=difference, reason="shown beside V-harm")


def harms(path: Path, group: str, views: Iterable[View]) -> Iterator[Reading]:
    """V-harm to goodput, loss and delay of an incumbent's flows; delays count with propagation.

    Args:
        path: The path.
        group: The incumbent's group.
        views: Its flows alone, beside others of its kind, and beside the candidate's.
    """
    found = tuple(views)
    yield from harm(rates("goodput"), *(view.per_flow(group) for view in found))
    yield from harm(losses("loss"), *(view.loss(group) for view in found))
    delays = times("delay", path.rtt + path.longest_wait)
    yield from harm(delays, *(path.rtt + view.delay(group) for view in found))


def converges(seconds: float, rtt: float, rule: str = "V-conv") -> Reading:
    """V-conv: how long flows take after a join."""
    return Reading(rule, seconds, "<=", measures.join_bound(rtt), 60.0, "s")


def follows(seconds: float, rtt: float, rule: str = "V-step") -> Reading:
    """V-step: how long a flow takes after a step."""
    return Reading(rule, seconds, "<=", measures.step_bound(rtt), 20.0, "s")


def sends_again(view: View, step: float, since: float, rate: float) -> float:
    """Seconds until 80 % of a rate leave the bottleneck's queue."""
    return measures.first(carried(view, step), step, since, 0.8 * rate)


def carried(view: View, step: float) -> list[float]:
    """What the bottleneck sends in each sample, bit/s."""
    return [each * PACKET * 8 / step for each in view.queue("departures")]


def settles(view: View, used: Sequence[float], left: float, path: Path, since: float) -> float:
    """Seconds until over 5 s the wait is a round trip at most, and 80 % of what is left is used.

    Args:
        view: The run.
        used: What the flows get, or the link carries, in each second, bit/s.
        left: What the step leaves to them, bit/s.
        path: The path after the step.
        since: When the step ended, s.
    """
    waits = [each * 8 / path.rate for each in view.queue("backlog_bytes")]
    return measures.settled(used, waits, 1.0, since, 0.8 * left, path.rtt)

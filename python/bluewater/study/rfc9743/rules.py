"""The rules of the suite: readings of results, with the bounds of each rule.

RFC 9743 has no thresholds. All bounds are ours, and were written before the first run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.study.rfc9743 import measures
from bluewater.study.rfc9743.cells import Reading
from bluewater.study.rfc9743.senders import PACKET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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


def queue(view: View, cubic: View, rtt: float) -> Reading:
    """V-queue: the median delay in the queue in round trips, beside CUBIC's."""
    mine, theirs = ((each.summary["delay_p50_s"] or 0.0) / rtt for each in (view, cubic))
    return Reading("V-queue", mine, "<=", 1.0, theirs, "RTT")


def lost(view: View, cubic: View) -> Reading:
    """V-loss: the share lost at the bottleneck, beside CUBIC's."""
    mine, theirs = 100 * view.summary["loss"], 100 * cubic.summary["loss"]
    return Reading("V-loss", mine, "<=", max(2 * theirs, 0.1), 5.0, "%")


def even(view: View, *groups: str, duration: float) -> Reading:
    """V-jain: the fairness index of the second half."""
    flows = [sum(flow) for flow in view.series(*groups, since=duration / 2)]
    return Reading("V-jain", measures.jain(flows), ">=", 0.90, 0.75)


def starving(flows: Sequence[Sequence[float]], step: float, rtt: float) -> Reading:
    """V-starve: the share of windows in which a flow gets less than a tenth of an equal share."""
    value = measures.starved(flows, step, measures.window_s(rtt))
    return Reading("V-starve", 100 * value, "<=", 0.0, 5.0, "%")


def harm(what: str, difference: float) -> Reading:
    """V-harm: how much more harm the candidate does than another of the incumbent's kind."""
    return Reading(f"V-harm {what}", difference, "<=", 0.10, 0.25)


def harms(path: Path, group: str, views: Iterable[View]) -> Iterator[Reading]:
    """V-harm to goodput, loss and delay of an incumbent's flows; delays count with propagation.

    Args:
        path: The path.
        group: The incumbent's group.
        views: Its flows alone, beside others of its kind, and beside the candidate's.
    """
    alone, own, candidate = (_qualities(path, group, view) for view in views)
    for what, harmed in _HARMS.items():
        x = alone[what]
        yield harm(what, harmed(x, candidate[what]) - harmed(x, own[what]))


def _qualities(path: Path, group: str, view: View) -> dict[str, float]:
    return {
        "goodput": view.per_flow(group),
        "loss": view.loss(group),
        "delay": path.rtt + view.delay(group),
    }


def harm_to_loss(alone: float, beside: float) -> float:
    """The harm of losses."""
    return measures.harm_to_less(alone, beside, measures.LEAST_LOSS)


_HARMS: Mapping[str, Callable[[float, float], float]] = {
    "goodput": measures.harm_to_more,
    "loss": harm_to_loss,
    "delay": measures.harm_to_less,
}


def converges(seconds: float, rtt: float, rule: str = "V-conv") -> Reading:
    """V-conv: how long flows take after a join."""
    return Reading(rule, seconds, "<=", measures.join_bound(rtt), 60.0, "s")


def follows(seconds: float, rtt: float, rule: str = "V-step") -> Reading:
    """V-step: how long a flow takes after a step."""
    return Reading(rule, seconds, "<=", measures.step_bound(rtt), 20.0, "s")


def uses_again(view: View, *groups: str, step: float, since: float, rate: float) -> float:
    """Seconds until 80 % of a rate arrive."""
    return measures.first(view.total(*groups), step, since, 0.8 * rate)


def sends_again(view: View, step: float, since: float, rate: float) -> float:
    """Seconds until 80 % of a rate leave the bottleneck's queue."""
    sent = [each * PACKET * 8 / step for each in view.queue("departures")]
    return measures.first(sent, step, since, 0.8 * rate)


def empties(view: View, rate: float, rtt: float, step: float, since: float) -> float:
    """Seconds until a queue that grew is no longer above a round trip."""
    waits = [each * 8 / rate for each in view.queue("backlog_bytes")]
    return measures.drained(waits, step, since, rtt)

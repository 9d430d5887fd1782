"""What a step shows, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from bluewater import _core
from bluewater.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Seen = Mapping[str, "NDArray[np.float64]"]
"""What a step showed, a number for each environment, in the units of :data:`OF_QUEUE` and
:data:`OF_SENDER`, with ``rate`` (bit/s) and ``time``, the length of a step (s)."""

OF_QUEUE = dict(_core.Episodes.observed(sends=False))
"""What an agent at a queue sees of a step, with units."""
OF_SENDER = dict(_core.Episodes.observed(sends=True))
"""What an agent that sends sees of a step, with units; all its connections together."""


Made = Callable[[Seen], "NDArray[np.float64]"]
"""What makes observations or rewards of it."""


def queue_features(seen: Seen) -> NDArray[np.float64]:
    """What a network is shown of a queue: six numbers near 0 … 1, a row for each environment.

    The queueing delay for which the backlog stands and the mean delay of packets that left, both in
    units of 20 ms and at most 10; what left and how long the link sent, as shares; and the shares
    of arriving packets that were dropped and marked.
    """
    arrived = np.maximum(seen["arrived"], 1)
    columns = (
        np.minimum(seen["backlog"] * 8 / seen["rate"] / 0.02, 10),
        np.minimum(seen["sojourn"] / 2e7, 10),
        seen["sent"] * 8 / (seen["rate"] * seen["time"]),
        seen["busy"],
        seen["dropped"] / arrived,
        seen["marked"] / arrived,
    )
    return np.stack(columns, axis=1)


def sender_features(seen: Seen) -> NDArray[np.float64]:
    """What a network is shown of connections: six numbers, a row for each environment.

    The rate of acknowledged data, in units of 10 Mb/s; the least round trip in units of 100 ms; by
    how much of it the mean round trip was longer, at most 10; the share of bytes that were lost;
    marks and episodes of congestion, as counts up to 10 in units of ten.
    """
    least = np.maximum(seen["min_rtt"], 1)
    heard = np.where(seen["rtt"] > 0, seen["rtt"], seen["min_rtt"])
    total = np.maximum(seen["acked"] + seen["lost"], 1)
    columns = (
        seen["acked"] * 8 / seen["time"] / 1e7,
        seen["min_rtt"] / 1e8,
        np.minimum((heard - seen["min_rtt"]) / least, 10),
        seen["lost"] / total,
        np.minimum(seen["marked"], 10) / 10,
        np.minimum(seen["episodes"], 10) / 10,
    )
    return np.stack(columns, axis=1)


def queue_reward(seen: Seen) -> NDArray[np.float64]:
    """How busy the link was, less delay and loss.

    That is the share of the step in which it sent, less half of the mean delay in units of 20 ms,
    less the share of packets that were dropped.
    """
    lost = seen["dropped"] / np.maximum(seen["arrived"], 1)
    return np.asarray(seen["busy"] - np.minimum(seen["sojourn"] / 2e7, 10) / 2 - lost)


def sender_reward(seen: Seen) -> NDArray[np.float64]:
    """The rate, less delay and loss.

    That is the logarithm of the rate in Mb/s, at least 0.01, less the queueing delay in units of
    20 ms and ten times the share that was lost.
    """
    rate = np.log(np.maximum(seen["acked"] * 8 / seen["time"] / 1e6, 0.01))
    delay = np.where(seen["rtt"] > 0, seen["rtt"] - seen["min_rtt"], 0) / 2e7
    lost = seen["lost"] / np.maximum(seen["acked"] + seen["lost"], 1)
    return np.asarray(rate - np.minimum(delay, 10) - 10 * lost)


def defaults(sends: bool) -> tuple[Made, Made]:
    """The features and the reward of an agent that has no others."""
    return (sender_features, sender_reward) if sends else (queue_features, queue_reward)


def makes(key: str, made: Made, places: int, dimensions: int) -> Made:
    """``made``, whose arrays have a row or number for each of so many environments.

    Raises:
        InputError: It is no function; when called, that its array has another shape.
    """
    if not callable(made):
        raise InputError("no function", key=key, value=made, allowed="a function of what is seen")

    def make(seen: Seen) -> NDArray[np.float64]:
        found = np.asarray(made(seen))
        if found.ndim != dimensions or len(found) != places:
            rows = "a row" if dimensions > 1 else "a number"
            raise InputError(
                f"an array of the shape {found.shape}",
                key=key,
                allowed=f"{rows} for each environment, of which there are {places}",
            )
        return found

    return make

"""Your own queue discipline: a class whose methods advise a queue.

```python
from bluewater.aqm import ADMIT, Aqm, number

class Coin(Aqm):
    \"\"\"Signals every packet with one probability.\"\"\"

    p = number(0.01, "Probability of a signal.", low=0, high=1)

    def on_arrival(self, now, packet, queue):
        return self.p
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from bluewater.own import (
    NEVER,
    Own,
    OwnError,
    choice,
    duration,
    flag,
    integer,
    number,
    random,
    rate,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ADMIT",
    "ARRIVING",
    "DROP",
    "HEAD",
    "NEVER",
    "SIGNAL",
    "SIGNAL_HEAD",
    "Aqm",
    "OwnError",
    "choice",
    "duration",
    "flag",
    "integer",
    "number",
    "random",
    "rate",
]

ADMIT = -1.0
"""Do nothing to this packet, and toss no coin; ``None`` means that too."""
DROP = -2.0
"""Drop it, even if it can be marked."""
SIGNAL = -3.0
"""Mark it if it is ECN-capable, else drop it."""
SIGNAL_HEAD = -4.0
"""Mark the packet at the head if it is ECN-capable, else drop it; only at an arrival."""
ARRIVING = -1.0
"""At an overflow: drop the arriving packet."""
HEAD = 0.0
"""At an overflow: drop the packet at the head."""


class Aqm(Own):
    """Base class of your own queue discipline, one object of which advises one queue.

    A parameter is a class attribute made by :func:`number`, :func:`integer`, :func:`duration`,
    :func:`rate`, :func:`flag` or :func:`choice`; in an object the attribute is its value. All state
    is attributes that :meth:`start` sets. A class defines only the methods that it needs. Times are
    whole nanoseconds since the run began; ``packet`` and ``queue`` are valid only during the call:

    - ``on_arrival(self, now, packet, queue)``: a packet arrives. Returns the probability of a
      signal, 0 to 1, for which one coin is tossed whatever its value; or :data:`ADMIT` (``None``),
      :data:`SIGNAL`, :data:`SIGNAL_HEAD`, :data:`DROP`.
    - ``on_departure(self, now, packet, queue)``: a packet is about to be sent. Returns a
      probability, or one of these constants except :data:`SIGNAL_HEAD`. After a drop the method is
      called for the next packet.
    - ``on_overflow(self, now, packet, queue)``: an arriving packet does not fit. Returns the packet
      to drop: :data:`ARRIVING` (``None``), :data:`HEAD` (the oldest), or the position of a queued
      packet. It is called until the arriving packet fits.
    - ``on_idle(self, now, queue)``: the link could send, but the queue is empty.
    - ``on_timer(self, now, queue)``: the time in ``self.timer`` has come. The method sets the next
      time, later than ``now``, or :data:`NEVER`.

    ``packet`` has ``len`` (bytes), ``flow``, ``ecn`` (0 not capable, 1 ECT(1), 2 ECT(0), 3 CE) and
    ``arrived`` (ns). ``queue`` has ``packets``, ``bytes``, ``fits``, ``limit_packets``,
    ``limit_bytes``, ``rate`` (bit/s) and ``mean_packet`` (bytes); it does not count the packet in
    question.

    Attributes:
        signals: Attributes to sample into the series, each with unit and meaning.
        timer: The time of the next ``on_timer``, in nanoseconds.
        compiled: Whether Numba compiles the methods (``pip install 'bluewater[numba]'``). Then all
            state is numbers, booleans and NumPy arrays of them, and keeps the types and shapes that
            ``start`` sets; integers have 64 bits.
    """

    role: ClassVar[str] = "aqm"
    methods: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "on_arrival": ("now", "packet", "queue"),
        "on_departure": ("now", "packet", "queue"),
        "on_overflow": ("now", "packet", "queue"),
        "on_idle": ("now", "queue"),
        "on_timer": ("now", "queue"),
    }
    shown: ClassVar[tuple[str, ...]] = ("Packet", "Queue")

    def start(self, now: int, queue: Any) -> None:
        """Sets the initial state; called when the queue is built."""

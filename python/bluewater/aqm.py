"""Algorithms of one's own: a class whose methods advise a queue.

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
"""Do nothing to this packet, and toss no coin. The same as ``None``."""
DROP = -2.0
"""Drop it, even if it can be marked."""
SIGNAL = -3.0
"""Mark it if it is ECN-capable, else drop it."""
SIGNAL_HEAD = -4.0
"""The same with the packet at the head; only at an arrival."""
ARRIVING = -1.0
"""At an overflow: the arriving packet goes."""
HEAD = 0.0
"""At an overflow: the packet at the head goes."""


class Aqm(Own):
    """What advises one queue; the base of a class of one's own.

    A parameter is a class attribute made by :func:`number`, :func:`integer`, :func:`duration`,
    :func:`rate`, :func:`flag` or :func:`choice`; an object has its value. All state is attributes
    that :meth:`start` sets. Of these methods a class has those that matter to it; times are whole
    nanoseconds since the run began, ``packet`` and ``queue`` hold during the call alone:

    - ``on_arrival(self, now, packet, queue)``: a packet arrives. Gives the probability with which
      it is signalled, 0 to 1, for which a coin is tossed in any case; or :data:`ADMIT` (``None``),
      :data:`SIGNAL`, :data:`SIGNAL_HEAD`, :data:`DROP`.
    - ``on_departure(self, now, packet, queue)``: a packet is about to be sent. Gives the same, but
      for :data:`SIGNAL_HEAD`; after a drop the next packet is asked about.
    - ``on_overflow(self, now, packet, queue)``: an arriving packet does not fit. Gives
      :data:`ARRIVING` (``None``) or the position of the queued packet that goes, :data:`HEAD` the
      oldest; asked until it fits.
    - ``on_idle(self, now, queue)``: the link wants a packet and there is none.
    - ``on_timer(self, now, queue)``: the time in ``self.timer`` has come. It sets the next one,
      later than ``now``, or :data:`NEVER`.

    ``packet`` has ``len`` (bytes), ``flow``, ``ecn`` (0 not capable, 1 ECT(1), 2 ECT(0), 3 CE) and
    ``arrived`` (ns). ``queue``, which does not hold the packet in question, has ``packets``,
    ``bytes``, ``fits``, ``limit_packets``, ``limit_bytes``, ``rate`` (bit/s) and ``mean_packet``
    (bytes).

    Attributes:
        signals: Attributes that are sampled into the series, each with unit and meaning.
        timer: When ``on_timer`` is wanted, in nanoseconds.
        compiled: Whether Numba compiles the methods (``pip install 'bluewater[numba]'``). All
            state is then numbers, truth values and NumPy arrays of them, of the kind and form that
            ``start`` gives them; a whole number has 64 bits.
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
        """Sets the state at rest, when the queue is built."""

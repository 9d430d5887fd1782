"""Congestion controllers of one's own: a class whose methods set a connection's window.

```python
from bluewater.control import Controller

class Half(Controller):
    \"\"\"Adds a packet per round trip, halves the window on congestion.\"\"\"

    def start(self, s):
        self.mtu, self.cwnd = s.mtu, float(s.initial_window)

    def on_ack(self, a):
        if a.window_limited and not a.in_recovery:
            self.cwnd += self.mtu * a.acked / self.cwnd

    def on_congestion(self, c):
        self.cwnd = max(self.cwnd / 2, 2 * self.mtu)
```
"""

from __future__ import annotations

from math import inf
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
    "ECN",
    "LOSS",
    "NEVER",
    "PERSISTENT",
    "TIMEOUT",
    "Controller",
    "OwnError",
    "choice",
    "duration",
    "flag",
    "inf",
    "integer",
    "number",
    "random",
    "rate",
]

LOSS = 0
"""A packet was lost."""
ECN = 1
"""A packet was marked."""
TIMEOUT = 2
"""The retransmission timer has run out."""
PERSISTENT = 3
"""It has run out again and nothing has arrived since: for three timeouts (RFC 9002 §7.6)."""


class Controller(Own):
    """What controls the congestion of one connection; the base of a class of one's own.

    Parameters are declared as for :class:`bluewater.aqm.Aqm`. All state is attributes that
    :meth:`start` sets. The sender measures round trips and delivery rates, finds losses by time
    (RFC 8985), says when a recovery begins and ends, and spaces packets. Of these methods a class
    has those that matter to it. Times are whole nanoseconds since the run began, volumes bytes
    (packets on the wire), rates bytes a second; what a method is given holds during the call alone:

    - ``on_send(self, p)``: a packet leaves. Gives a tag, a whole number from 0 to 2⁵³, which comes
      back with the packet; nothing is 0. ``p``: ``now number bytes in_flight`` (before it)
      ``app_limited retransmission``.
    - ``on_lost(self, l)``: a packet is found lost. ``l``: ``now number bytes sent_at tag
      tx_in_flight lost_since_sent app_limited new_range``.
    - ``on_congestion(self, c)``: the network is congested; once a recovery episode (RFC 9002
      §7.3.2), and at each timeout. ``c``: ``now``, ``kind`` (:data:`LOSS`, :data:`ECN`,
      :data:`TIMEOUT`, :data:`PERSISTENT`), ``in_flight``, ``lost`` (bytes found lost just now),
      ``ce`` (packets told just now to be marked), ``recovery_point``, ``new_episode`` (if it is
      not, the window gave way for this already: RFC 5681 §3.1 keeps the slow-start threshold).
    - ``on_recovered(self, now)``: all that had been sent when the episode began has arrived.
    - ``on_undo(self, u)``: the last episode was needless, nothing had been lost; it is over. ``u``:
      ``now``, ``kind`` (:data:`LOSS` or :data:`TIMEOUT`).
    - ``on_ack(self, a)``: an acknowledgement with news. ``a``: ``now acked ce_packets``; of the
      last sent packet that it is the first to acknowledge ``largest`` (its number) ``sent_at tag``;
      ``rtt`` (0: no sample) ``srtt rttvar min_rtt``; ``prior_in_flight in_flight delivered
      prior_delivered round_start``; the delivery-rate sample ``rate interval tx_in_flight lost
      app_limited``; ``window_limited`` (the window was used, and may grow: RFC 9002 §7.8) and
      ``in_recovery``.
    - ``on_restart(self, now)``: there is data again after a time in which nothing was under way.
    - ``on_timer(self, now)``: the time in ``self.timer`` has come. It sets the next one, later than
      ``now``, or :data:`NEVER`.

    Within an acknowledgement ``on_recovered`` comes first, then ``on_undo``, ``on_lost`` for each
    packet, ``on_congestion`` and last ``on_ack``.

    Attributes:
        cwnd: Bytes that may be under way. Held between the group's ``min_window`` and 2⁴⁰; before
            ``start`` it is the initial window.
        ssthresh: Below this window it is in slow start, bytes; ``inf`` until it is set. The sender
            spaces packets less there, and takes a window of which half is used for used.
        pacing: Bytes a second; 0: none of its own. With ``pacing = true`` in the scenario, packets
            are then spaced by the window and the round trip.
        burst: Bytes that a paced sender sends together; 0: a packet.
        timer: When ``on_timer`` is wanted, in nanoseconds.
        app_limited: What is sent now tells nothing of the bandwidth.
        compiled: Whether Numba compiles the methods (``pip install 'bluewater[numba]'``). All
            state is then numbers, truth values and NumPy arrays of them, of the kind and form that
            ``start`` gives them; a whole number has 64 bits.
    """

    role: ClassVar[str] = "transport"
    methods: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "on_send": ("p",),
        "on_lost": ("l",),
        "on_congestion": ("c",),
        "on_recovered": ("now",),
        "on_undo": ("u",),
        "on_ack": ("a",),
        "on_restart": ("now",),
        "on_timer": ("now",),
    }
    shown: ClassVar[tuple[str, ...]] = ("Start", "Sent", "Lost", "Congestion", "Undo", "Ack")
    outputs: ClassVar[tuple[str, ...]] = (
        *("cwnd", "ssthresh", "pacing", "burst", "timer", "app_limited"),
    )
    cwnd: float = 0.0
    ssthresh: float = inf
    pacing: float = 0.0
    burst: float = 0.0
    app_limited: bool = False

    def start(self, s: Any) -> None:
        """Sets the state at rest, as the connection sends its first packet.

        ``s`` has ``now mtu initial_window min_window``.
        """

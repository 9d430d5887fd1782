"""Your own congestion controller: a class whose methods set a connection's window.

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
"""The retransmission timer expired."""
PERSISTENT = 3
"""The timer expired repeatedly: no acknowledgement for three timeouts (RFC 9002 §7.6)."""


class Controller(Own):
    """Base class of your own congestion controller, one object of which controls one connection.

    Parameters are declared as for :class:`bluewater.aqm.Aqm`. All state is attributes that
    :meth:`start` sets. The sender measures round trips and delivery rates, detects losses by time
    (RFC 8985), decides when a recovery begins and ends, and paces packets. A class defines only the
    methods that it needs. Times are whole nanoseconds since the run began, volumes bytes (packets
    on the wire), rates bytes per second. Arguments are valid only during the call:

    - ``on_send(self, p)``: a packet leaves. Returns a tag, a whole number from 0 to 2⁵³, which
      comes back with the packet's acknowledgement or loss; ``None`` is 0. ``p``: ``now number bytes
      in_flight`` (before it) ``app_limited retransmission``.
    - ``on_lost(self, l)``: a packet is found lost. ``l``: ``now number bytes sent_at tag
      tx_in_flight lost_since_sent app_limited new_range``.
    - ``on_congestion(self, c)``: the network is congested; called once per recovery episode (RFC
      9002 §7.3.2), at each timeout, and where losses are found in an episode that a mark began.
      ``c``: ``now``, ``kind`` (:data:`LOSS`, :data:`ECN`, :data:`TIMEOUT`, :data:`PERSISTENT`),
      ``in_flight``, ``lost`` (bytes found lost just now), ``ce`` (as ``ce_packets`` below),
      ``recovery_point``, ``new_episode`` (if false, the window was already reduced for this: RFC
      5681 §3.1 keeps the slow-start threshold).
    - ``on_recovered(self, now)``: everything sent before the episode began has arrived.
    - ``on_undo(self, u)``: the last episode was spurious, since nothing was lost; it is over.
      ``u``: ``now``, ``kind`` (:data:`LOSS` or :data:`TIMEOUT`).
    - ``on_ack(self, a)``: an acknowledgement of new packets. ``a``: ``now acked ce_packets``;
      ``largest`` (number) ``sent_at tag`` of the last sent packet that it newly acknowledges;
      ``rtt`` (0: no sample) ``srtt rttvar min_rtt``; ``prior_in_flight in_flight delivered
      prior_delivered round_start``; the delivery-rate sample ``rate interval tx_in_flight lost
      app_limited``; ``window_limited`` (the window may grow: it was full, or pacing kept it from
      being full, RFC 9002 §7.8) and ``in_recovery`` (losses are being repaired, or a mark came
      less than a round trip ago). With ``accecn = true`` ``ce_packets`` counts the packets that
      were marked; otherwise it is 1 where an echo begins an episode.
    - ``on_restart(self, now)``: new data follows an idle period with nothing in flight.
    - ``on_timer(self, now)``: the time in ``self.timer`` has come. The method sets the next time,
      later than ``now``, or :data:`NEVER`.

    Within an acknowledgement ``on_recovered`` comes first, then ``on_undo``, ``on_lost`` for each
    packet, ``on_congestion`` and last ``on_ack``.

    Attributes:
        cwnd: The congestion window: bytes that may be in flight. The sender keeps it between the
            group's ``min_window`` and 2⁴⁰; before ``start`` it is the initial window.
        ssthresh: Slow-start threshold, bytes; ``inf`` until it is set. In slow start the sender
            paces faster, and a window counts as used if half of it is.
        pacing: Pacing rate, bytes per second; 0 for none. With 0 and ``pacing = true`` in the
            scenario, the sender paces by the window and the round trip.
        burst: Bytes that a paced sender sends together; 0 for one packet.
        timer: The time of the next ``on_timer``, in nanoseconds.
        app_limited: Whether packets sent now are too few to measure the bandwidth.
        signals: Attributes that are written down with ``control = true`` under ``[measure]``, in
            the table ``control_signals``: ``{"queued": ("packets", "Own packets in the queue.")}``.
        compiled: Whether Numba compiles the methods (``pip install 'bluewater[numba]'``). Then all
            state is numbers, booleans and NumPy arrays of them, and keeps the types and shapes that
            ``start`` sets; integers have 64 bits.
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
        """Sets the initial state; called when the connection sends its first packet.

        ``s`` has ``now mtu initial_window min_window``.
        """

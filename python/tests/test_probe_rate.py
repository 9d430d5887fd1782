"""The near end of ``bluewater probe``: the rate of a path, and its recording, without sockets."""

from __future__ import annotations

import numpy as np
import pytest

from bluewater.errors import InputError
from bluewater.study.identify import clocks, probe, sender
from bluewater.study.identify.probe import Packets
from bluewater.study.identify.sender import Fates


class Narrow:
    """A path of a rate whose token bucket lets a burst pass at once, with room for 0.1 s."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst = rate, burst

    def send(self, packets: Packets) -> Fates:
        free, arrived = -self.burst * 8 / self.rate, []
        for sent, size in zip(packets.sent.tolist(), packets.size.tolist(), strict=True):
            free = max(free, sent - self.burst * 8 / self.rate)
            if free - sent > 0.1:
                arrived.append(np.nan)
                continue
            free += size * 8 / self.rate
            arrived.append(max(sent, free) + 0.01)
        return Fates(packets.sent, np.array(arrived), packets.ecn, 0)


@pytest.mark.parametrize("burst", [0, 32_000])
@pytest.mark.parametrize("rate", [0.3e6, 3.3e6, 80e6])
def test_the_rate_is_found_behind_a_token_bucket(rate: float, burst: int) -> None:
    found = sender.find_rate(Narrow(rate, burst))  # type: ignore[arg-type]
    assert found == pytest.approx(rate, rel=0.05)


def test_a_pause_of_the_host_does_not_hide_the_rate() -> None:
    class Paused(Narrow):
        trains = 0

        def send(self, packets: Packets) -> Fates:
            fates = super().send(packets)
            self.trains += 1
            if self.trains == 1:
                fates.arrived[-len(packets.sent) // 4 :] += 0.2
            return fates

    found = sender.find_rate(Paused(5e6, 0))  # type: ignore[arg-type]
    assert found == pytest.approx(5e6, rel=0.05)


def test_skew_of_the_clocks_is_taken_out() -> None:
    packets = probe.with_end(probe.packets(2e6))
    fates = Narrow(2e6, 0).send(packets)
    fast = Fates(fates.sent, 5 + fates.arrived * (1 + 1e-4), fates.ecn, 0)
    plain, mended = sender.recording(packets, fates), sender.recording(packets, fast)
    assert np.nanmax(np.abs(plain.arrived - mended.arrived)) < 2e-4
    assert np.nanmin(mended.arrived - mended.sent) == 0.0


def test_a_queue_that_grows_is_no_skew() -> None:
    sent = np.arange(100.0)
    assert clocks.skew(sent, 3 + 2e-4 * sent + (sent % 7)) == pytest.approx(2e-4)
    assert clocks.skew(sent, 0.01 * sent) == 0.0
    assert clocks.skew(sent[:1], sent[:1]) == 0.0


def test_packets_that_could_not_be_sent_are_left_out() -> None:
    packets = probe.packets(2e6)
    fates = Narrow(2e6, 0).send(packets)
    sent, arrived = fates.sent.copy(), fates.arrived.copy()
    sent[1000:1010] = arrived[1000:1010] = np.nan
    made = sender.recording(packets, Fates(sent, arrived, fates.ecn, 0))
    assert len(made.sent) == len(packets.sent) - 10


class Lossy:
    """A path without a bottleneck that loses packets at random."""

    def __init__(self, share: float) -> None:
        self.share, self.fastest = share, 0.0
        self.random = np.random.default_rng(1)

    def send(self, packets: Packets) -> Fates:
        count = len(packets.sent)
        self.fastest = max(self.fastest, count * probe.FULL * 8 / float(packets.sent[-1]))
        lost = self.random.random(count) < self.share
        return Fates(packets.sent, np.where(lost, np.nan, packets.sent + 0.01), packets.ecn, 0)


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_losses_alone_are_no_bottleneck(share: float) -> None:
    path = Lossy(share)
    with pytest.raises(InputError, match="no bottleneck of a steady rate below 90 Mb/s"):
        sender.find_rate(path)  # type: ignore[arg-type]
    assert path.fastest < 112e6


@pytest.mark.parametrize("rate", [63e3, 150e3])
def test_a_slow_bottleneck_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match=f"rate is {rate / 1e6} Mb/s"):
        sender.find_rate(Narrow(rate, 0))  # type: ignore[arg-type]


def test_a_probe_of_too_few_packets_is_not_sent() -> None:
    class Unused:
        pass

    with pytest.raises(InputError, match="at this rate the probe has"):
        sender.probed(Unused(), 0.2e6, 10.0)  # type: ignore[arg-type]


def test_a_path_without_udp_is_told() -> None:
    with pytest.raises(InputError, match="no packets arrive"):
        sender.probed(Lossy(1.0), 5e6, None)  # type: ignore[arg-type]


def test_changed_ecn_fields_are_told() -> None:
    packets = probe.packets(2e6)
    fates = Narrow(2e6, 0).send(packets)
    changed = np.where(packets.ecn == 2, 1, packets.ecn)
    remarks = list(sender._remarks(packets, Fates(fates.sent, fates.arrived, changed, 0)))
    assert len(remarks) == 1
    assert "changes ect0 to ect1" in remarks[0]

from __future__ import annotations

import pytest

from bluewater.errors import InputError
from bluewater.units import bits_per_second, duration_text, seconds, size_bytes, times

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("20ms", 0.02),
        ("1.5s", 1.5),
        ("100us", 1e-4),
        ("7ns", 7e-9),
        ("2min", 120),
        ("1h", 3600),
        ("20sec", 20),
        ("20 msec", 0.02),
    ],
)
def test_times(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)
    assert seconds(duration_text(value)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10mbit", 1e7),
        ("1.5gbit", 1.5e9),
        ("64kbit", 64e3),
        ("5bit", 5),
        ("10Mbps", 1e7),
        ("1.25MB/s", 1e7),
    ],
)
def test_rates(text: str, value: float) -> None:
    assert bits_per_second(text) == value
    assert bits_per_second(times(text, 10)) == 10 * value


def test_a_rate_keeps_its_digits() -> None:
    assert times("12345678bit", 10) == "123456780bit"
    assert times("1.25MB/s", 10) == "100000000bit"


def test_sizes() -> None:
    assert size_bytes("1.5kB") == 1500
    for wrong in ("200kb", "100p", "", "1"):
        with pytest.raises(InputError, match="not a size"):
            size_bytes(wrong)


@pytest.mark.parametrize("text", ["", "10", "ms", "-1s", "1 year"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError) as raised:
        seconds(text, "--rtt")
    assert raised.value.key == "--rtt"
    assert raised.value.allowed is not None
    with pytest.raises(InputError):
        bits_per_second(text)

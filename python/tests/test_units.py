from __future__ import annotations

import pytest

from bluewater.errors import InputError
from bluewater.units import bits_per_second, duration_text, seconds, times


@pytest.mark.parametrize(
    ("text", "value"),
    [("20ms", 0.02), ("1.5s", 1.5), ("100us", 1e-4), ("7ns", 7e-9), ("2min", 120), ("1h", 3600)],
)
def test_times(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)
    assert seconds(duration_text(value)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "value"), [("10mbit", 1e7), ("1.5gbit", 1.5e9), ("64kbit", 64e3), ("5bit", 5)]
)
def test_rates(text: str, value: float) -> None:
    assert bits_per_second(text) == value
    assert bits_per_second(times(text, 10)) == 10 * value


def test_a_rate_keeps_its_digits() -> None:
    assert times("12345678bit", 10) == "123456780bit"
    assert times("1.25MB/s", 10) == "12.5MB/s"


@pytest.mark.parametrize("text", ["", "10", "ms", "-1s", "1 year"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError) as raised:
        seconds(text, "--rtt")
    assert raised.value.key == "--rtt"
    with pytest.raises(InputError):
        bits_per_second(text)

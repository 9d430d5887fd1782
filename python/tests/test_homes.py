"""What ``advise`` promises, beside real packets through the gateway by the line that it prints."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from bluewater import programs

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))
homes = pytest.importorskip("homes")


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and iproute2")
def test_a_home_gets_what_was_promised(tmp_path: Path) -> None:
    """The throughput within a tenth; a call's delay far from the second that a plain queue has."""
    link, advice, line = homes.advised(homes.HOMES["leased line"], tmp_path, reps=2)
    promised = advice.ways["up"][0].means
    (plain,) = (each.means for each in advice.ways["up"] if each.name == "droptail")
    gateway = programs.find("bluewater-gateway")
    found = homes.measure(line, "up", link, gateway, warmup=4, duration=5)
    assert found.throughput == pytest.approx(promised.throughput, rel=0.1)
    assert promised.delay < 0.02
    assert found.delay < 0.05 < plain.delay / 10
    assert found.loss <= 0.01

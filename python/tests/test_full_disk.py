"""A disk that fills up, as a bound on the length of files has it: a line, and the run is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bluewater

pytestmark = pytest.mark.core

_BOUND = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from bluewater.__main__ import main
main()
"""


def run(tiny: Path, out: Path, longest: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs a scenario where no file may have more than so many bytes."""
    line = ["run", str(tiny), "--out", str(out), *more]
    return subprocess.run(
        [sys.executable, "-c", _BOUND, str(longest), *line],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "pcapng"])
def test_a_run_whose_packets_do_not_fit_is_kept(tiny: Path, tmp_path: Path, ending: str) -> None:
    out, packets = tmp_path / "out", tmp_path / f"packets.{ending}"
    # The run's own tables take less, its packets more.
    found = run(tiny, out, 60_000, "--packets", str(packets))
    assert found.returncode == 2
    kept, error, *_ = found.stderr.splitlines()
    assert error.startswith(f"error: cannot write {packets}: ")
    assert kept == f"kept in {bluewater.newest(out)}"
    assert bluewater.load(bluewater.newest(out)).summary["arrivals"] > 0
    assert not list(tmp_path.glob("*packets*"))


@pytest.mark.slow
def test_what_a_disk_says_is_told(tiny: Path, tmp_path: Path) -> None:
    """Polars' errors have no number and no text of the system's."""
    out, csv = tmp_path / "out", tmp_path / "csv"
    assert run(tiny, out, 60_000).returncode == 0
    found = run(tiny, out, 1500, "--csv", str(csv))
    assert found.returncode == 2
    assert f"error: cannot write {csv}: " in found.stderr
    assert "None" not in found.stderr
    assert "kept run found: " in found.stderr

"""Facts about the machine that a run was made on; they never influence a result."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def facts() -> dict[str, str | int]:
    """Operating system, processor and Python of this machine."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
    }


def processor() -> str:
    """The processor's name, if the system has it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()

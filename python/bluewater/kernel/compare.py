"""Comparing a kernel's disciplines with ours, or with another kernel's, setting by setting."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.errors import InputError
from bluewater.kernel import ours, uml
from bluewater.kernel.cases import ALL
from bluewater.kernel.fates import Fate, first_difference, of_kernel, of_statistics
from bluewater.kernel.frames import packets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bluewater.kernel.build import Kernel
    from bluewater.kernel.settings import Setting

TIMEOUT_S = 20
"""Processor time that a kernel may take for a setting: ten times what it needs."""


@dataclass(frozen=True)
class Compared:
    """A setting compared.

    Attributes:
        setting: Its name.
        packets: How many packets came.
        dropped: How many of them the kernel dropped.
        marked: How many it marked.
        differ: How many have another fate or leave at another time.
        first: The first of these in time: number, arrival (ns), flow, bytes, and both fates.
        why: What ``bluewater why`` says about ours.
        statistics: The first difference of two kernels' statistics.
        failed: Why there is no result of a kernel.
        whose: Which kernel has none: ``TREE`` or ``TREE2``.
    """

    setting: str
    packets: int
    dropped: int = 0
    marked: int = 0
    differ: int = 0
    first: dict[str, Any] | None = None
    why: str = ""
    statistics: str = ""
    failed: str = ""
    whose: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether every packet has the same fate, and two kernels count the same."""
        return not (self.differ or self.statistics or self.failed)


class AbsentError(InputError):
    """The kernels have none of the disciplines that a pattern names."""


def check_only(only: str, two: bool) -> None:
    """Refuses a pattern that no setting of ours has, or of ``two`` kernels.

    Raises:
        InputError: There is none.
    """
    _matching(
        [each for each in ALL if two or each.aqm],
        only,
        InputError,
        "no setting has this in its name",
    )


def chosen(kernel: Kernel, against: Kernel | None, only: str) -> list[Setting]:
    """The settings whose names have the pattern, of disciplines that the kernels have.

    Raises:
        AbsentError: There are none.
    """
    both = kernel.modules & (against.modules if against else kernel.modules)
    there = [each for each in ALL if each.module in both and (against or each.aqm)]
    return _matching(there, only, AbsentError, "the kernel has no such discipline")


def _matching(
    there: Sequence[Setting], only: str, kind: type[InputError], problem: str
) -> list[Setting]:
    """Those whose names have the pattern."""
    found = [each for each in there if only in each.name]
    if not found:
        names = sorted({each.name.split(":")[0] for each in there})
        raise kind(problem, key="only", value=only, allowed=", ".join(names))
    return found


def compare(
    kernel: Kernel, settings: Sequence[Setting], folder: Path, against: Kernel | None = None,
    jobs: int | None = None,
) -> Iterator[Compared]:  # fmt: skip
    """Compares setting after setting with ours, or with another kernel.

    Args:
        kernel: The kernel.
        settings: What is compared.
        folder: Where our scenarios and their packets go, and what kernels did.
        against: The other kernel.
        jobs: How many kernels run side by side; by default one for each processor.
    """
    ours_at = {each.name: folder / "ours" / slug(each.name) for each in settings}

    def one(setting: Setting) -> Compared:
        whose = "TREE"
        try:
            found = recorded(kernel, setting, folder)
            whose = "TREE2"
            second = recorded(against, setting, folder) if against else None
        except uml.NoResultError as error:
            count = len(packets(setting))
            return Compared(setting.name, count, failed=str(error), whose=whose)
        theirs = of_kernel(setting, found)
        if second:
            counts = of_statistics(found, second, nested=setting.module.startswith("sch_cake"))
            return _compared(setting, theirs, of_kernel(setting, second), None, counts)
        at = ours_at[setting.name]
        return _compared(setting, theirs, ours.fates(setting, kernel, at), at)

    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        yield from pool.map(one, settings)


def recorded(kernel: Kernel, setting: Setting, folder: Path) -> Any:
    """What a kernel did with a setting's packets; the same program is not asked twice.

    Raises:
        NoResultError: It gave no result.
    """
    asked = json.dumps([asdict(setting), packets(setting)], sort_keys=True)
    files = (_INSIDE, _INSIDE.with_name("frames.py"), Path(uml.__file__))
    code = "".join(path.read_text() for path in files)
    name = hashlib.sha256((kernel.digest + asked + code).encode()).hexdigest()[:16]
    kept = folder / "rows" / f"{name}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    with tempfile.TemporaryDirectory() as place:
        told = {"of": asdict(setting), "seed": setting.seed}
        found = uml.run(told, place, _INSIDE, kernel.program, TIMEOUT_S)
    if len(found["packets"]) != len(packets(setting)):
        raise uml.NoResultError("what the kernel printed has gaps")
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.replace(kept)
    return found


_INSIDE = Path(__file__).with_name("inside.py")


def slug(name: str) -> str:
    """A setting's name as one of a folder."""
    return "-".join("".join(c if c.isalnum() or c == "_" else " " for c in name).split())


def _compared(
    setting: Setting, theirs: Sequence[Fate], other: Sequence[Fate], folder: Path | None,
    statistics: str = "",
) -> Compared:  # fmt: skip
    differ = sum(not a.is_as(b) for a, b in zip(theirs, other, strict=True))
    first, why = None, ""
    if (n := first_difference(theirs, other)) is not None:
        at, flow, length = packets(setting)[n]
        first = {
            "packet": n, "arrives_ns": at, "flow": flow, "bytes": length, "kernel": str(theirs[n]),
            "other": str(other[n]),
        }  # fmt: skip
        why = ours.explained(folder, n) if folder else ""
    return Compared(
        setting.name,
        len(theirs),
        sum(fate.left is None for fate in theirs),
        sum(fate.marked for fate in theirs),
        differ,
        first,
        why,
        statistics,
    )

"""The page's section on an experiment, kept beside its pictures.

The page covers every experiment of a folder, and drawing takes far longer than reading. A kept
section is used again while the experiment, the program and the runs that it was made from are the
same.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bluewater import _core
from bluewater.errors import InputError
from bluewater.files import PACKAGE, write_text
from bluewater.kinds import KINDS
from bluewater.study.experiments import experiment, paper
from bluewater.study.experiments.claims import Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from bluewater.results.store import Store
    from bluewater.study.experiments.experiment import Experiment
    from bluewater.study.experiments.reproduce import Outcome

Section: TypeAlias = dict[str, Any]

FILE = "section.json"
"""The file of a section in the folder of its experiment."""

_MADE_OF = "made_of"


@dataclass(frozen=True)
class LeftOut:
    """Why an experiment is not on the page, with the number of missing runs if that is why."""

    why: str
    gone: int = 0
    of: int = 0

    @classmethod
    def of_runs(cls, gone: int, of: int) -> LeftOut:
        """Left out because runs are missing: ``gone`` of ``of``."""
        return cls(f"{gone} of {of} runs {'is' if of == 1 else 'are'} missing", gone, of)

    @property
    def nothing(self) -> bool:
        """Whether every run is missing."""
        return 0 < self.of == self.gone


@dataclass
class Besides:
    """The experiments of a folder beside those of this command.

    Attributes:
        sections: Their kept sections, which go on the page.
        left_out: Why an experiment is not on the page, by its name.
    """

    sections: list[Section] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)


def keep(section: Section, outcome: Outcome, folder: Path) -> None:
    """Keeps a section, unless its sources could not be compared later."""
    digest = _digest(outcome.experiment, outcome.kinds)
    if digest is None:
        return
    found = section | {
        "id": outcome.experiment.id,
        "file": str(Path(outcome.experiment.file).absolute()),
        "size": outcome.size.name,
        "seeds": list(outcome.size.seeds),
        "kinds": sorted(outcome.kinds),
        "findings": [each | {"claim": each["claim"].id} for each in section["findings"]],
        _MADE_OF: digest,
    }
    del found["experiment"]
    write_text(folder / FILE, json.dumps(found, separators=(",", ":")))


def unchanged(outcome: Outcome, folder: Path, formats: Sequence[str]) -> Section | None:
    """The section of an experiment made of the same runs, with pictures in these formats."""
    own = folder / outcome.experiment.id.replace("/", "-")
    found = _read(own)
    if found is None or found[_MADE_OF] != _digest(outcome.experiment, outcome.kinds):
        return None
    same = (
        found["id"] == outcome.experiment.id
        and found["size"] == outcome.size.name
        and found["seeds"] == list(outcome.size.seeds)
        and found["keys"] == [entry.key for entry in outcome.tables.entries]
        and len(found["failures"]) == len(outcome.failures)
        and found["decision_hash"] == outcome.decision_hash
    )
    drawn = {Path(name).suffix[1:] for plot in found["plots"] for name in plot["files"]}
    if found["plots"] and not drawn.issuperset(formats):
        return None
    if not same or not all((folder / name).is_file() for name in _files(found)):
        return None
    return _filled(found, outcome.experiment)


def _files(found: Section) -> list[str]:
    own = f"{found['anchor']}/"
    there = [f"{own}claims.json", *([f"{own}runs.csv"] if found["keys"] else [])]
    return there + [name for each in (*found["plots"], *found["sheets"]) for name in each["files"]]


def besides(folder: Path, asked: Collection[str], sizes: Collection[str], store: Store) -> Besides:
    """The kept sections of a folder's other experiments.

    Args:
        folder: The folder of results.
        asked: The experiments of this command, which are left out.
        sizes: The sizes to look for.
        store: The runs.
    """
    made = Besides()
    for path in sorted(folder.glob(f"*/{FILE}")):
        found = _read(path.parent)
        if found is None or found["id"] in asked or found["anchor"] != path.parent.name:
            continue
        try:
            of = _experiment(found)
        except InputError:
            continue  # the experiment's file is gone
        if why := _stale(found, of, sizes, store):
            made.left_out[found["id"]] = why
        else:
            made.sections.append(_filled(found, of))
    return made


def _stale(found: Section, of: Experiment, sizes: Collection[str], store: Store) -> LeftOut | None:
    if found["size"] not in sizes:
        return LeftOut(f"was last reported at size {found['size']}")
    if found[_MADE_OF] != _digest(of, found["kinds"]):
        return LeftOut("was reported by another version")
    gone = sum(key not in store for key in found["keys"])
    return LeftOut.of_runs(gone, len(found["keys"])) if gone else None


def told(left_out: Mapping[str, LeftOut]) -> list[str]:
    """A line for each experiment that is not on the page; one for a paper without any run."""
    known = list(experiment.known())
    lines = []
    for name in dict.fromkeys(each.partition("/")[0] for each in left_out):
        own = {each: why for each, why in left_out.items() if each.startswith(f"{name}/")}
        every = {each for each in known if each.startswith(f"{name}/")}
        if len(own) > 1 and set(own) == every and all(each.nothing for each in own.values()):
            runs = sum(each.of for each in own.values())
            lines.append(f"{name}, {len(own)} experiments: none of {runs} runs is there")
        else:
            lines += [f"{each}: {left.why}" for each, left in own.items()]
    return lines


def _read(folder: Path) -> Section | None:
    """Reads a kept section; ``None`` if the file is no section."""
    try:
        found = json.loads((folder / FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and _MADE_OF in found else None


def _experiment(found: Section) -> Experiment:
    name, file = found["id"], found["file"]
    path = experiment.known().get(name)
    same = path is not None and str(path.absolute()) == file
    return experiment.load(name) if same else experiment.of_file(file)


def _filled(found: Section, of: Experiment) -> Section:
    """The section completed with the texts of its experiment's file."""
    claims = {claim.id: claim for claim in of.claims}
    findings = [
        each
        | {
            "claim": claims[each["claim"]],
            "verdict": Verdict(each["verdict"]),
            "readings": [
                one | {"verdict": Verdict(one["verdict"]), "numbers": _by_seed(one["numbers"])}
                for one in each["readings"]
            ],
        }
        for each in found["findings"]
    ]
    size = replace(of.size(found["size"]), seeds=tuple(found["seeds"]))
    return found | {"experiment": of, "size": size, "findings": findings}


def _by_seed(numbers: Mapping[str, float | None]) -> dict[int, float | None]:
    return {int(seed): value for seed, value in numbers.items()}


def _digest(of: Experiment, kinds: Collection[str]) -> str | None:
    """A digest of a section's sources beside its runs; ``None`` if they cannot be read."""
    file = Path(of.file)
    if not file.is_file():
        return None
    about = file.parent / paper.FILE
    parts = [
        file.read_bytes(),
        about.read_bytes() if about.is_file() else b"",
        _program().encode(),
        *(KINDS[kind].version().encode() for kind in sorted(kinds)),
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


@cache
def _program() -> str:
    """The version of the code that judges, draws and writes."""
    made = hashlib.sha256(f"{_core.version()} {version('matplotlib')}".encode())
    for path in sorted(PACKAGE.rglob("*")):
        apart = path.relative_to(PACKAGE).parts[0] in ("cli", "experiments")
        if path.suffix in (".py", ".j2", ".css") and not apart:
            made.update(path.read_bytes())
    return made.hexdigest()

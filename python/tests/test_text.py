"""Text that people read: papers are cited by names that are defined, links lead somewhere."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "fuzz/*.md",
        "crates/**/*.rs",
        "python/bluewater/**/*.py",
        "python/bluewater/**/*.toml",
    )
    for path in ROOT.glob(pattern)
)

# A number that papers had in a folder: `003 §4`, but not the end of 10 003, 1_003, 0.003 or p003.
NUMBER = re.compile(r"(?<![\w.,])(?<!\d[ \u00a0\u202f])00[0-4](?!\w)(?![.,]\d)")
# A name as papers have it, with a place in the paper behind it: `FJ93 §4`, `Feng02 Table II`.
CITED = re.compile(r"\b([A-Z][A-Za-z]+\d\d)(?=[,:]? (?:§|Fig\.|Table [IVX\d]|eq\.|App\.|Appendix))")

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the documentation is not here"
)


def _found(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [
        (match.group(match.lastindex or 0), f"{path.relative_to(ROOT)}: {line.strip()[:120]}")
        for path in TEXTS
        for line in path.read_text("utf-8").splitlines()
        for match in pattern.finditer(line)
    ]


def _defined() -> set[str]:
    lines = (ROOT / "docs" / "sources.md").read_text("utf-8").splitlines()
    return {line.split("|")[1].strip() for line in lines if line.startswith("| ")}


def test_the_patterns_tell_a_paper_from_a_number() -> None:
    for paper in ("(003 §3)", '"000 Fig. 3"', "`002`, §2", "004's class", "as in 003."):
        assert NUMBER.search(paper), paper
    for number in ("10 000 packets", "50_000.0", "0.003", "1,000", "p003", "000x", "000.5"):
        assert not NUMBER.search(number), number
    assert CITED.findall("FJ93 §4; Feng02 Table II, Lin01: Fig. 3") == ["FJ93", "Feng02", "Lin01"]


def test_no_paper_goes_by_a_number() -> None:
    assert TEXTS
    assert [where for _, where in _found(NUMBER)] == []


def test_every_cited_name_is_defined() -> None:
    defined, cited = _defined(), _found(CITED)
    assert {"Feng02", "Mahajan01", "FJ93"} <= {name for name, _ in cited} & defined
    assert [where for name, where in cited if name not in defined] == []


def test_papers_of_experiments_are_defined() -> None:
    papers = [
        tomllib.loads(path.read_text("utf-8"))
        for path in ROOT.glob("python/bluewater/experiments/*/paper.toml")
    ]
    cited = {paper["cite"] for paper in papers if not paper.get("own", False)}
    assert len(cited) >= 4
    assert cited <= _defined()


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), ROOT / "fuzz" / "README.md"], ids=str)
def test_links_outside_the_site_lead_somewhere(page: Path) -> None:
    """Those of the site's pages are checked when it is built."""
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("words")


def test_each_rule_of_words_finds_its_example(words: ModuleType) -> None:
    for pattern, _, example in words.RULES:
        assert len(list(words.wrong(f"Fine. {example}\n"))) == 1, pattern
    assert not list(words.wrong("Who has none? It is told apart, and no longer than one.\n"))


def test_words_reads_sentences_and_no_code(words: ModuleType) -> None:
    page = """# It is said

```sh
it is said
```

See [it](is-told.md), `is told`.

<!-- scenario -->

| it is said |

<!-- end -->

| fine | it is said |
"""
    assert [line for line, _ in words.wrong(page)] == [15]
    long = " ".join(["word"] * (words.LONGEST + 1))
    assert len(list(words.wrong(f"- First. {long}.\n"))) == 1
    assert not list(words.wrong(f"- {long[5:]}. {long[5:]}.\n"))


def test_words_names_page_and_line(
    words: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "LATER", ["docs/later.md", "docs/clean.md"])
    for name, text in (
        ("README.md", "Fine.\nIt is said.\n"),
        ("crates/aqm/README.md", "Fine.\n"),
        ("docs/later.md", "It is said.\n"),
        ("docs/clean.md", "Fine.\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    assert words.main([]) == 2
    assert capsys.readouterr().out.splitlines() == [
        'README.md:2: "is said": say who does what',
        "docs/clean.md:1: keeps the style: take it out of LATER in scripts/words.py",
    ]
    assert words.main([str(tmp_path / "docs/later.md")]) == 1


def test_words_of_programs(words: ModuleType) -> None:
    for suffix, text, line in (
        (".py", 'def f():\n    """It does so.\n\n    It is said twice.\n    """\n', 2),
        (".py", 'x = "see"\ny = f"{x}: it is told, too"\n', 2),
        (".rs", "mod a;\n//! A module.\n\n/// It does so.\n/// Who asks\n/// is told.\n", 4),
        (".toml", 'a = 1\n[[x]]\nwhy = "It is said."\n', 3),
        (".toml", f'a = 1\nwhy = "{"word " * 41}"\n', 2),
    ):
        assert {number for number, _ in words.wrong(text, suffix)} == {line}, text
    for suffix, text in (
        (".py", '# It is said.\nx = "is"  # no longer\ny = "It is no longer there."\n'),
        (".rs", 'let text = "it is said";\n/// `is told` calls it.\n'),
        (".toml", 'name = "who is raised"\nfinding = "It has settled."\n'),
        (".toml", f'measure = "SELECT {"word " * 41}"\n'),
    ):
        assert not list(words.wrong(text, suffix)), text

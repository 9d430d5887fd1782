#!/usr/bin/env python3
"""Holds pages and programs to the style of CONTRIBUTING.md: ``words.py [FILE...]``, all by default.

Of pages, code, generated tables and headings are left out. Of programs, strings of Python, comments
of Rust and texts of experiments are checked, by the rules that raise no false alarms there; only
the last have sentences that could be too long. A page of ``LATER`` may break the rules until
somebody rewrites it; one that keeps them has to leave that list.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 40  # words in a sentence

# What is looked for, what to write instead, and an example, which a test tries.
RULES = [
    (r"\b(is|are|was|were|be|being) (told|said)\b(?! apart)", "say who does what", "It is said."),
    (r"\b(is|are|was|were|be|being) asked for\b", "say who asks", "A key that is asked for."),
    (r"^Who(ever)? [^?:\]]*$", "give the clause a noun: *If you have …*", "Who has no Rust."),
    (
        r"^What (is|are|was|were) [^?:]*\b(is|are|was|were) [^?:]*$",
        "give the clause a noun",
        "What is typed is what was tried.",
    ),
    (r"\b(that|those|than) which\b", "name the thing", "That which always has data."),
    (r"^(?-i:T)he same, ", "name the thing again", "The same, as text."),
    (r"\bit were\b", "put the subject first", "It were 11 of 60."),
    (r"\bsettled\b", "say the verdict: reproduced, contradicted, open", "Nine are settled."),
    (r"\bfor (some hours|a time)\b", "no history: git has it", "For some hours it stood."),
    (r"\bmended\b", "no history: say what holds now", "This was mended."),
    (r"\bno longer\b(?! than)", "no history: say what holds now", "It no longer does."),
    (r"\bsince then\b", "no history: say what holds now", "Since then it does."),
    (
        r"\b(until|since|on) (the )?\d+([snrt][tdh]| \w+ember)\b",
        "no history: git has the dates",
        "Until the 24th it did.",
    ),
]
LATER: list[str] = []
# A program may say that something is no longer, or has settled.
IN_PROGRAMS = [rule for rule in RULES if not re.search("history|verdict", rule[1])]
PROGRAMS = [
    "python/bluewater/**/*.py",
    "python/bluewater/experiments/*/*.toml",
    "python/tests/*.py",
    "crates/*/src/**/*.rs",
]
EXAMPLES = "test_text.py"  # has sentences that break the rules

FENCE = re.compile(r"^ *(`{3,}|~{3,})")
GENERATED = re.compile(r"^<!-- (?!end)[a-z]+(?::[a-z0-9_-]+)? -->$")
QUIET = re.compile(r"`[^`]*`|<[^>]*>|(?<=\])\([^)]*\)")  # code, tags, where links lead
START = re.compile(r"^(\W|\d+\. )+")
END = re.compile(r"(?<=[.!?])[*)\"]*\s+")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page that people read as sentences, with their numbers; cells one by one."""
    fence, generated = "", False
    for number, line in enumerate(text.splitlines(), 1):
        if found := FENCE.match(line):
            fence = "" if fence and line.strip() == fence else fence or found[1]
        elif fence:
            continue
        elif GENERATED.match(line):
            generated = "<!-- end -->" in text.splitlines()[number:]
        elif line == "<!-- end -->":
            generated = False
        elif not generated and not line.startswith("#"):
            quiet = QUIET.sub("x", line)
            yield from ((number, part) for part in quiet.split(" | "))


def strings(value: object) -> Iterator[str]:
    """All strings of a TOML file but names and queries."""
    if isinstance(value, dict):
        yield from strings([part for key, part in value.items() if key != "name"])
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str) and "SELECT " not in value:
        yield value


def program(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """The paragraphs that people read in a program, with the line where their text begins."""
    if suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        found = [(n.lineno, n.value) for n in nodes if isinstance(n, ast.Constant)]
    elif suffix == ".rs":
        blocks = re.finditer(r"(?:^ *//.*\n)+", text, re.MULTILINE)
        found = [
            (text.count("\n", 0, b.start()) + 1, re.sub("(?m)^ *//[/!]?", "", b[0])) for b in blocks
        ]
    else:
        texts = strings(tomllib.loads(text))
        found = [(text.count("\n", 0, max(text.find(t[:40]), 0)) + 1, t) for t in texts]
    for number, value in found:
        for part in re.split(r"\n\s*\n|\n *[-*] ", value) if isinstance(value, str) else []:
            yield number, QUIET.sub("x", " ".join(part.split()))


def wrong(text: str, suffix: str = ".md") -> Iterator[tuple[int, str]]:
    """What breaks a rule, with its line."""
    is_page = suffix == ".md"
    for number, part in prose(text) if is_page else program(text, suffix):
        for sentence in END.split(part):
            plain = START.sub("", sentence)
            for pattern, instead, _ in RULES if is_page else IN_PROGRAMS:
                if found := re.search(pattern, plain, re.IGNORECASE):
                    yield number, f'"{found[0][:40].strip()}": {instead}'
            in_words = suffix in {".md", ".toml"}
            if in_words and (count := len(plain.split())) > LONGEST:
                yield number, f"a sentence of {count} words, above {LONGEST}: {plain[:40]}…"


def pages() -> list[Path]:
    """Every page that is not written by a program."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("fuzz/*.md")]
    found.append(ROOT / "crates" / "aqm" / "README.md")
    return sorted(page for page in found if page.parent.name != "measured")


def programs() -> list[Path]:
    """Every program that is checked."""
    found = sorted(path for pattern in PROGRAMS for path in ROOT.glob(pattern))
    return [path for path in found if path.name != EXAMPLES]


def main(named: list[str]) -> int:
    """Prints all that is wrong, and how much that is."""
    count = 0
    for page in [Path(name).resolve() for name in named] or [*pages(), *programs()]:
        name = page.relative_to(ROOT).as_posix()
        found = list(wrong(page.read_text("utf-8"), page.suffix))
        if not named and name in LATER:
            clean = (1, "keeps the style: take it out of LATER in scripts/words.py")
            found = [] if found else [clean]
        for number, what in found:
            print(f"{name}:{number}: {what}")
        count += len(found)
    return count


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)

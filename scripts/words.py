#!/usr/bin/env python3
"""Holds README and site to the style of CONTRIBUTING.md: ``words.py [FILE...]``, all by default.

Code, generated tables and headings are left out. A page of ``LATER`` may break the rules until
somebody rewrites it; one that keeps them has to leave that list.
"""

import re
import sys
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


def wrong(text: str) -> Iterator[tuple[int, str]]:
    """What breaks a rule, with its line."""
    for number, part in prose(text):
        for sentence in END.split(part):
            plain = START.sub("", sentence)
            for pattern, instead, _ in RULES:
                if found := re.search(pattern, plain, re.IGNORECASE):
                    yield number, f'"{found[0][:40].strip()}": {instead}'
            if (count := len(plain.split())) > LONGEST:
                yield number, f"a sentence of {count} words, above {LONGEST}: {plain[:40]}…"


def pages() -> list[Path]:
    """Every page that is not written by a program."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("fuzz/*.md")]
    found.append(ROOT / "crates" / "aqm" / "README.md")
    return sorted(page for page in found if page.parent.name != "measured")


def main(named: list[str]) -> int:
    """Prints all that is wrong, and how much that is."""
    count = 0
    for page in [Path(name).resolve() for name in named] or pages():
        name = page.relative_to(ROOT).as_posix()
        found = list(wrong(page.read_text("utf-8")))
        if not named and name in LATER:
            clean = (1, "keeps the style: take it out of LATER in scripts/words.py")
            found = [] if found else [clean]
        for number, what in found:
            print(f"{name}:{number}: {what}")
        count += len(found)
    return count


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)

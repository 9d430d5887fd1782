#!/usr/bin/env python3
"""Counts how many faults in a kernel's queue disciplines `bluewater kernel` finds.

    .venv/bin/python scripts/kernel_mutations.py TREE OUT [--count 58] [--seed 1] [--more]

Changes a line of TREE after another, builds each fault and compares it with the kernel before. TREE
is a scratch copy: the script writes to it and restores it. Each fault has a verdict:

ours        packets differ, or there is no result, in a setting with a discipline of ours
packets     the same, in a setting of kernels only
statistics  only the statistics of two kernels differ
same        the compiler makes the same program
equivalent  nothing differs, nor can it: EQUIVALENT says why
missed      nothing differs
Rules make the faults: a comparison, a constant, an operator, a condition, or a statement less.
"""

import argparse
import hashlib
import random
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from bluewater.kernel.build import NotBuiltError, build, compile_
from bluewater.kernel.cases import ALL
from bluewater.kernel.compare import compare

FILES = {
    "include/net/codel_impl.h": ("sch_codel", "sch_fq_codel"),
    "net/sched/sch_codel.c": ("sch_codel",),
    "net/sched/sch_fq_codel.c": ("sch_fq_codel",),
    "net/sched/sch_pie.c": ("sch_pie", "sch_fq_pie"),
    "net/sched/sch_fq_pie.c": ("sch_fq_pie",),
    "net/sched/sch_cake.c": ("sch_cake",),
    "net/sched/sch_sfb.c": ("sch_sfb",),
    "net/sched/sch_red.c": ("sch_red",),
    "include/net/red.h": ("sch_red", "sch_choke"),
    "net/sched/sch_choke.c": ("sch_choke",),
    "net/sched/sch_sfq.c": ("sch_sfq",),
    "net/sched/sch_dualpi2.c": ("sch_dualpi2",),
}
"""Files that are changed, and the disciplines that use them."""
MORE = {
    "net/sched/sch_fq.c": ("sch_fq",),
    "net/sched/sch_cake.c": ("sch_cake_mq",),
}
"""The same with ``--more``: a draw of its own, so that the other one stays what it is."""
ONLY = {
    "sch_cake_mq": re.compile(
        r"is_shared|sync_time|last_active|last_checked_active|num_tx_queues|num_active_qs|other_priv"
        r"|other_qlen|new_rate"
    )
}
"""Words of the lines that are a discipline's alone."""
IDLE = re.compile(
    r"init|dump|change|destroy|reset|stats|walk|leaf|graft|find|bind|unbind|class|tcf|config|policy"
    r"|check|alloc|free|offload|params|adaptative|swap|^fq_(rehash|resize|load)|crumb"
)
"""Functions that no packet passes, but for these."""
PASSED = ("fq_classify",)
RULES = (
    ("comparison", r"(?<=\w) (<|<=|>|>=) (?=[\w(])", {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
    ("comparison", r" (==|!=) ", {"==": "!=", "!=": "=="}),
    (
        "operator",
        r"(?<=[\w)]) (\+|-|\+=|-=) (?=[\w(])",
        {"+": "-", "-": "+", "+=": "-=", "-=": "+="},
    ),
    ("operator", r" (&&|\|\|) ", {"&&": "||", "||": "&&"}),
    ("constant", r"(?<=[ (])(\d+)(?=[;, )])", None),
)

EQUIVALENT = {
    "while (length > 0) { -> while (length >= 0) {": (
        "behind the last option, a byte that ends the search whatever it is: "
        "its length is less than two, or below zero after a NOP"
    ),
    "kfree_skb_reason(skb, SKB_DROP_REASON_QUEUE_PURGE); -> ;": (
        "memory of packets that are gone already is not freed"
    ),
    "qdisc_dequeue_drop(sch, skb, reason); -> ;": (
        "memory of packets that are gone already is not freed"
    ),
    "rb_insert_color(&skb->rbnode, &flow->t_root); -> ;": (
        "the tree of a flow's packets is not balanced, but sorted as before"
    ),
    "if (delta > 0) { -> if (delta >= 0) {": (
        "at zero the probability is what it was, and neither branch does anything"
    ),
}
"""Faults that change no packet and no statistic, and why."""


def bodies(lines):
    """The numbers of the lines in functions that packets pass."""
    name, inside = "", False
    for number, line in enumerate(lines):
        if line.startswith("{"):
            inside = bool(name) and (name in PASSED or not IDLE.search(name))
        elif line.startswith("}"):
            name, inside = "", False
        elif not inside and (
            head := re.match(r"(?:static|struct|bool|void|int|u\d+|\w+)\b.*?\b(\w+)\(", line)
        ):
            name = head[1]
        elif inside:
            yield number


def faults(text):
    """Every fault of a file: line number, rule, and the line with it."""
    lines = text.splitlines(keepends=True)
    for number in bodies(lines):
        line = lines[number]
        if re.match(
            r"\s*(/?\*|//|#|return -E|WARN|BUG|net_warn|.*(NL_SET|extack|stats\.|tcf_|qstats_))",
            line,
        ):
            continue
        for rule, pattern, other in RULES:
            for found in re.finditer(pattern, line):
                new = other[found[1]] if other else str(int(found[1]) + 1)
                yield number, rule, line[: found.start(1)] + new + line[found.end(1) :]
        if re.match(r"\t+(?:[\w>.\[\]-]+(?:\+\+|--| [-+|&*]?= .*)|[a-z]\w+\(.*\));$", line):
            yield number, "statement less", "\t;\n"
        if single := re.match(r"(\t+(?:} else )?if )(\(.*\))( \{)?$", line):
            yield number, "condition", f"{single[1]}(!{single[2]}){single[3] or ''}\n"


def of(text, modules):
    """The faults of a file that are in lines of these disciplines."""
    lines = text.splitlines()
    only = [ONLY[module] for module in modules if module in ONLY]
    return [each for each in faults(text) if all(words.search(lines[each[0]]) for words in only)]


def chosen(tree, files, count, seed):
    """So many faults, spread over the files by their number of lines that can be wrong."""
    draw = random.Random(seed)
    all_ = {}
    for file, modules in files.items():
        if (tree / file).exists() and (found := of((tree / file).read_text(), modules)):
            draw.shuffle(found)
            seen = set()
            all_[file] = [f for f in found if not (f[0] in seen or seen.add(f[0]))]
    weight = sum(len(found) ** 0.5 for found in all_.values())
    for file, found in all_.items():
        for each in found[: max(2, round(count * len(found) ** 0.5 / weight))]:
            yield file, *each


def main():
    """Prints a line for each fault, and the counts."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tree", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--count", type=int, default=58)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--skip", type=int, default=0, help="faults that are known")
    arguments.add_argument("--only", default="", help="faults in files with this in their path")
    arguments.add_argument(
        "--more", action="store_true", help="faults of FQ and cake_mq in place of the others"
    )
    options = arguments.parse_args()
    files = MORE if options.more else FILES
    base = build(options.tree, options.out)
    kept = options.out / "before/build"
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copy2(base.program, kept)
    before = replace(base, folder=kept.parent)
    counts = Counter()
    for file, number, rule, line in list(chosen(options.tree, files, options.count, options.seed))[
        options.skip :
    ]:
        if options.only not in file:
            continue
        path = options.tree / file
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        old, lines[number] = lines[number], line
        after = mutant(options, before, path, text, "".join(lines))
        verdict, by = judged(options, after, before, files[file]) if after else ("not built", "")
        change = f"{old.strip()} -> {line.strip()}"
        if verdict == "missed" and change in EQUIVALENT:
            verdict, by = "equivalent", EQUIVALENT[change]
        counts[verdict] += 1
        print(
            f"{verdict:12} {file}:{number + 1} {rule}: {change}  [{by}]",
            flush=True,
        )
    print(dict(counts))


def mutant(options, before, path, text, changed):
    """The kernel with another text of a file, built once; nothing if it does not compile."""
    name = hashlib.sha256(f"{path} {changed}".encode()).hexdigest()[:16]
    kept = options.out.resolve() / "mutants" / name / "build"
    if not (kept / "linux").exists():
        path.write_text(changed)
        try:
            compile_(options.tree.resolve(), options.out.resolve())
        except NotBuiltError:
            return None
        finally:
            path.write_text(text)
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy2(options.out / "build/linux", kept)
    return replace(before, folder=kept.parent)


def judged(options, after, before, modules):
    """Whether a setting tells the fault that a kernel has, and which."""
    if after.digest == before.digest:
        return "same", ""
    settings = sorted(
        (s for s in ALL if s.module in modules and s.module in before.modules),
        key=lambda s: not s.aqm,
    )
    counted = ""
    for at in range(0, len(settings), 2):
        some = settings[at : at + 2]
        for setting, each in zip(
            some, compare(after, some, options.out / "results", before), strict=True
        ):
            if each.differ or each.failed:
                return "ours" if setting.aqm else "packets", each.setting
            if each.statistics and not counted:
                counted = f"{each.setting}, {each.statistics}"
    return ("statistics" if counted else "missed"), counted


if __name__ == "__main__":
    sys.exit(main())

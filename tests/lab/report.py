#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the table of the faults that were run into docs/RELIABILITY.md.

usage: report.py RESULTS FILE COMMIT DATE SEED

RESULTS has a line "FAULT RUNS" for each fault that held; FILE a section
"## Faults, as run", whose content is replaced. What was run with, the first seed
of each fault among it, is said above the table.
"""
import os
import re
import sys

HEAD = "## Faults, as run"


def main():
    results, path, commit, date, seed = sys.argv[1:]
    runs = {}
    with open(results, encoding="utf-8") as lines:
        for line in lines:
            name, count = line.split()
            runs[name] = runs.get(name, 0) + int(count)
    table = [
        "",
        f"Written by `tests/lab/all.sh --write` of commit {commit} on {date}; the first seed of each was {seed}.",
        "",
        "Always: every call returns by its deadline; a replica is a",
        "beginning of what was drained, and not labelled inconsistent; one that is up to date, or that drains wait for and",
        "whose generation is the program's, has all that was acknowledged, and somebody has; when it is over the",
        "replicas are up to date by themselves, and after an orderly end equal to the local pool, also by `replctl verify`.",
        "",
        "| fault | what befalls | what holds beside | runs that showed it |",
        "|---|---|---|---|",
    ]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "faults.txt"), encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            name, what, beside = line.rstrip("\n").split("|")
            table.append(f"| {name} | {what} | {beside} | {runs.get(name, 'none')} |")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if HEAD not in text:
        text = text.rstrip("\n") + f"\n\n{HEAD}\n"
    start = text.index(HEAD) + len(HEAD) + 1
    rest = re.search(r"^## ", text[start:], re.M)
    end = start + rest.start() if rest else len(text)
    tail = "\n" + text[end:] if rest else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:start] + "\n".join(table) + "\n" + tail)


main()

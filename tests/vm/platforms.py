#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare a column of the table in docs/PLATFORMS.md with what a test has seen, or write it.

usage: platforms.py PROVIDER [PLATFORM | --write] < RESULTS

A line of RESULTS is KIND<tab>TEXT. KIND is a row, PROVIDER a column; a row or column that is not
there is added by --write, which changes no other column. With PLATFORM its rows are compared.
"""
import os
import sys

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/PLATFORMS.md")
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main():
    provider, write = sys.argv[1], sys.argv[2:] == ["--write"]
    platform = "" if write else "".join(sys.argv[2:])
    text = open(PATH).read()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    lines = table.splitlines()
    columns = cells(lines[0])
    rows = {cells(line)[0]: dict(zip(columns, cells(line))) for line in lines[2:]}
    seen = dict(line.rstrip("\n").split("\t") for line in sys.stdin)
    if not seen:
        sys.exit("platforms: nothing was seen")
    if not write:
        there = {kind: row[provider] for kind, row in rows.items()
                 if row.get(provider, "-") != "-" and kind.endswith(platform)}
        for kind in sorted(set(seen) | set(there)):
            if seen.get(kind) != there.get(kind):
                print(f"{kind}: docs/PLATFORMS.md says '{there.get(kind)}', "
                      f"seen was '{seen.get(kind)}'", file=sys.stderr)
        if seen != there:
            sys.exit("platforms: if what was seen is right, run the test by hand with --write")
        return
    if provider not in columns:
        columns.append(provider)
    for row in rows.values():
        row[provider] = "-"
    for kind, what in seen.items():
        rows.setdefault(kind, {columns[0]: kind})[provider] = what
    out = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows.values():
        out.append("| " + " | ".join(row.get(column, "-") for column in columns) + " |")
    open(PATH, "w").write(head + BEGIN + "\n".join(out) + "\n" + END + tail)


main()

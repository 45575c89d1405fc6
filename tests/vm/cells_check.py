#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare what repld has found of each kind of pool in a guest with what the file cells says.

usage: cells_check.py PROVIDER PLATFORM DIRECTORY

DIRECTORY has of each kind of pool KIND.json, what replctl probe said, and KIND.methods, the methods
that have run. Prints a line for platforms.py for each.
"""
import json
import os
import sys

CELLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cells")


def value(profile, name):
    """Of a field; with "?" where it is assumed."""
    return profile[name]["value"] + ("" if profile[name]["known"] else "?")


def chosen(profile, size):
    return next(m["method"] for m in profile["methods"]
                if m["operation"] == "ranges" and m["size"] == size)


def found(profile):
    """In the order of the file's columns."""
    names = "granularity", "durability-class", "persistence-domain", "rqwrb", "rma"
    correct = ",".join(m["method"] for m in profile["correct"] if m["correct"])
    return [profile["filesystem"], *(value(profile, name) for name in names),
            chosen(profile, 64), chosen(profile, 65536), correct]


def check_evidence(profile, provider):
    """What holds of every cell, and that facts say where they are known from."""
    source = {name: profile[name]["source"] for name in
              ("granularity", "durability-class", "persistence-domain", "rqwrb", "native-flush")}
    assert value(profile, "provider-class") == "software" and profile["provider"] == provider
    # No adapter but one in software: whether there is DDIO is not known and of no account.
    assert value(profile, "ddio") == "on?", profile["ddio"]
    # Nobody in Debian 12 flushes by himself, and why is told: of tcp it is not known, of verbs it is.
    assert value(profile, "native-flush") == ("no?" if provider == "tcp" else "no"), source
    assert ("FI_RMA_PMEM" if provider == "tcp" else "rxe0") in source["native-flush"], source
    assert all(source.values()), source
    assert ("?" in value(profile, "persistence-domain")
            or "/persistence_domain" in source["persistence-domain"]), source


def main():
    provider, platform, directory = sys.argv[1:]
    rows = [line.split() for line in open(CELLS) if not line.startswith("#")]
    rows = [row for row in rows if row[:2] == [provider, platform]]
    if not rows:
        sys.exit(f"cells: there is no cell of {provider} on {platform}")
    for _, _, kind, *due, run in rows:
        profile = json.load(open(os.path.join(directory, kind + ".json")))
        methods = open(os.path.join(directory, kind + ".methods")).read().strip()
        check_evidence(profile, provider)
        rma = profile["rma"]["source"]
        if found(profile) != due:
            sys.exit(f"{platform} {kind}: found {found(profile)}, not {due}; rma: {rma}")
        if (methods.replace(", ", ",") != due[-1]) if run == "+" else methods:
            sys.exit(f"{platform} {kind}: '{methods}' have run")
        text = f"{due[-3]} to {due[-2]}" + (f"; also {methods}" if methods else "")
        if value(profile, "rma") == "no":
            text = f"messages only: {rma}"
        print(f"{kind}, {platform}\t{text}")


main()

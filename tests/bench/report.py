#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The measurements of tests/bench as Markdown.

report.py RESULTS-DIR COMMAND          print the measured section
report.py --into FILE SECTION-FILE     put it between the marks in FILE
report.py --part NAME FILE             print the section of one answer
"""
import json
import os
import platform
import statistics
import subprocess
import sys

BEGIN = "<!-- measured: begin -->"
END = "<!-- measured: end -->"
GIB = 2**30


def machine():
    cpu = "unknown"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    fabric = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libfabric1"],
                            capture_output=True, text=True).stdout or "unknown"
    return f"{cpu}, {os.cpu_count()} cores, Linux {platform.release()}, libfabric {fabric}"


def table(heads, rows):
    out = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    out += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return out + [""]


def size(n):
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= factor:
            return f"{n // factor} {unit}"
    return f"{n} B"


def us(ns):
    return f"{ns / 1000:.1f}"


def bench(results, name):
    with open(os.path.join(results, name + ".json")) as f:
        b = json.load(f)
    out = [f"### Pool of class `{b['class']}` on {b['filesystem']}, provider {b['provider']}", "",
           f"Medians of {b['rounds']} rounds that take turns.", ""]
    rows = []
    for s in b["sizes"]:
        for m in sorted(s["persist"], key=lambda m: not m["chosen"]):
            rows.append([size(s["size"]), us(s["tcp"]["p50_ns"]), us(m["p50_ns"]),
                         f"{m['ratio']:.2f}", us(m["p99_ns"]), us(m["p999_ns"]),
                         f"**{m['method']}**" if m["chosen"] else m["method"]])
    out += ["Persist of one range; the method in bold is the one that is chosen for the size.", ""]
    out += table(["size", "TCP p50 us", "p50 us", "ratio", "p99 us", "p99.9 us", "method"], rows)
    out += table(["operation, 64 B each", "p50 us", "p99 us", "p99.9 us", "ratio", "to"],
                 [[o["operation"], us(o["p50_ns"]), us(o["p99_ns"]), us(o["p999_ns"]),
                   f"{o['ratio']:.2f}", o["to"]] for o in b["operations"]])
    out += table(["lanes, a thread each", "persists of 64 B/s", "to one lane"],
                 [[o["lanes"], o["persists_per_s"], f"{o['ratio']:.2f}"] for o in b["lanes"]])
    out += table([f"whole pool of {size(b['size'])}, one lane", "TCP GiB/s", "GiB/s", "ratio"],
                 [[o["direction"], f"{o['tcp_bytes_per_s'] / GIB:.2f}",
                   f"{o['bytes_per_s'] / GIB:.2f}", f"{o['ratio']:.2f}"] for o in b["streams"]])
    return out


def chooser(path):
    """Chosen against fastest: the median, over the rounds, of the ratio in each round."""
    with open(path) as f:
        c = json.load(f)
    rows, within, slower = [], 0, []
    for s in c["sizes"]:
        best = min(s["methods"], key=lambda m: m["ns"])
        worst = max(m["auto_to_it"] for m in s["methods"])
        within += worst <= 1.1
        if worst > 1.1:
            slower.append(size(s["size"]))
        rows.append([size(s["size"]), us(s["auto_ns"])] +
                    [us(m["ns"]) + (" *" if m is best else "") for m in s["methods"]] +
                    [f"{worst:.2f}"])
    names = [m["method"] for m in c["sizes"][0]["methods"]]
    out = [f"### The choice of a method, pool of class `{c['class']}`", "",
           "Medians in us; * the fastest; the ratio is that of the choice to what is fastest "
           "beside it, round by round.", ""]
    out += table(["size", "chosen"] + names + ["ratio"], rows)
    out += [f"Within 1.1 of the fastest: {within} of {len(rows)} sizes"
            + (f"; not {', '.join(slower)}." if slower else "."), ""]
    out += table(["bytes in all", "singleton us", "singleton as a message us", "compound us",
                  "to the singleton", "to the message"],
                 [[size(p["size"]), us(p["singleton_ns"]), us(p["message_ns"]),
                   us(p["compound_ns"]), f"{p['ratio']:.2f}", f"{p['message_ratio']:.2f}"]
                  for p in c["compounds"]])
    return out


def hotline(path):
    with open(path) as f:
        h = json.load(f)
    out = ["### A line that is flushed again and again", ""]
    if not h["clwb"]:
        return out + ["This processor has no CLWB: not measured.", ""]
    out += ["Store, CLWB, SFENCE in a local loop, in DRAM.", ""]
    return out + table(["8 bytes in", "ns", "ratio"],
                       [["one place", f"{h['one_ns']:.1f}", "1.00"],
                        ["ten blocks in turn, counter", f"{h['counter_ns']:.1f}",
                         f"{h['counter_to_one']:.2f}"],
                        ["ten blocks in turn, register", f"{h['register_ns']:.1f}",
                         f"{h['register_to_one']:.2f}"]])


def provider(path):
    """What no persist over it can be faster than."""
    with open(path) as f:
        p = json.load(f)
    return ["### The tcp provider by itself", "",
            "A round trip of two messages over libfabric, with nothing of ours, beside bare TCP "
            f"of the same size; medians of {p['rounds']} rounds.", ""] + table(
        ["size", "TCP us", "provider us", "ratio"],
        [[size(s["size"]), us(s["tcp_ns"]), us(s["provider_ns"]), f"{s['ratio']:.2f}"]
         for s in p["sizes"]])


def remotelog(path):
    with open(path) as f:
        r = json.load(f)
    out = [f"### REMOTELOG, pool of class `{r['class']}` on {r['filesystem']}, "
           f"provider {r['provider']}", "",
           f"{r['count']} records of {r['record_size']} bytes by each method; * the library's "
           "choice; the ratio is of the medians, to the raw ping-pong.", ""]

    def row(name, update, v, ratio):
        return [name, update] + [us(v[k]) for k in ("mean_ns", "p50_ns", "p99_ns")] + [
            f"{ratio:.2f}"]
    rows = [row("raw ping-pong", "-", r["raw"], 1)]
    for s in sorted(r["series"], key=lambda s: s["update"], reverse=True):
        rows.append(row(s["method"] + (" *" if s["chosen"] else ""), s["update"], s, s["ratio"]))
    out += table(["method", "update", "mean us", "p50 us", "p99 us", "ratio"], rows)
    if r["class"] == "memory":
        out += ["![Bars of the means, with the medians as marks](remotelog.svg)", ""]
    reasons = {}
    for s in r["not_run"]:
        reasons.setdefault((s["method"], s["reason"].split(";")[0]), []).append(s["update"])
    if reasons:
        out += ["Not to be run there:", ""]
        out += [f"- {m}, {' and '.join(u)}: {why}" for (m, why), u in reasons.items()] + [""]
    return out


def log(path):
    with open(path) as f:
        a = json.load(f)
    b, w = a["batches"], a["writers"]
    out = [f"### Appends to a log, pool of class `{a['class']}`", ""]
    rows = [[f"persist of {a['record']} B, no log", us(a["persist_ns"]), "1.00"]]
    rows += [[f"append of {a['record']} B, kind {k['kind']}", us(k["ns"]), f"{k['ratio']:.2f}"]
             for k in a["kinds"]]
    out += table(["one writer", "p50 us", "ratio"], rows)
    return out + table(
        ["records/s, kind checksum", "", "ratio"],
        [["single appends", f"{1e9 / b['single_ns']:.0f}", "1.00"],
         [f"batches of {b['records']}", f"{b['records'] * 1e9 / b['batch_ns']:.0f}",
          f"{b['records_ratio']:.2f}"],
         ["one writer, no core of its own", f"{w['one_per_s']:.0f}", "1.00"],
         ["four writers on four lanes", f"{w['four_per_s']:.0f}", f"{w['ratio']:.2f}"]])


def growth(path):
    with open(path) as f:
        a = json.load(f)
    o, g, s, kib = a["open"], a["grow"], a["grow_sparse"], a["kib"]
    return [f"### Large and growing pools, class `{a['class']}`", ""] + table(
        ["what", "measured"],
        [[f"open a sparse pool of {size(o['size'])}, from login on", f"{o['huge_ms']:.0f} ms"],
         ["the same with 4 MiB",
          f"{o['small_ms']:.0f} ms, {o['huge_ms'] / o['small_ms']:.2f} of that"],
         ["memory that the session has locked or pinned", f"{kib['VmLck'] + kib['VmPin']} KiB"],
         ["memory that it has at all", f"{kib['VmRSS'] / 1024:.1f} MiB"],
         *grown("it", s),
         *grown("a pool whose space is allocated", g)])


def grown(what, g):
    return [[f"let {what} grow by {size(g['bytes'])} while four lanes persist", f"{g['ms']:.1f} ms"],
            ["longest persist meanwhile", f"{g['growing_longest_us'] / 1000:.2f} ms"],
            ["longest in as long a time without growth", f"{g['quiet_longest_us'] / 1000:.2f} ms"]]


def dirty(path):
    with open(path) as f:
        d = json.load(f)
    return [f"### The dirty map, class `{d['class']}`", "",
            "Persists of 64 B all over a pool of 256 MiB in a file; the ratio is of persists with "
            "`after-crash = dirty-map` to those with `compare`.", ""] + table(
        ["persist", "compare us", "dirty-map us", "ratio"],
        [["with a replica", f"{d['compare_ns'] / 1000:.2f}", f"{d['map_ns'] / 1000:.2f}",
          f"{d['ratio']:.3f}"],
         ["marked only, the replica is lost", f"{d['lost_compare_ns'] / 1000:.2f}",
          f"{d['lost_map_ns'] / 1000:.2f}", f"{d['lost_ratio']:.3f}"]])


def pmdk(path):
    with open(path) as f:
        a = json.load(f)
    out = [f"### Programs of PMDK's, class `{a['class']}`", "",
           "A transaction of libpmemobj allocates an object of 128 B and frees one; by the API it "
           "is a pair of an object and a count.", ""]
    out += table(["transactions", "us", "a second", "ratio"],
                 [[t["name"], us(t["ns"]), f"{1e9 / t['ns']:.0f}", f"{t['ratio']:.2f}"]
                  for t in a["transactions"]])
    return out + table(["by `replctl run`", "us", "of", "us", "ratio"],
                       [[o["name"], f"{o['ns'] / 1000:.2f}", o["to"], f"{o['to_ns'] / 1000:.2f}",
                         f"{o['ratio']:.2f}"] for o in a["operations"]])


def resync(path):
    with open(path) as f:
        a = json.load(f)

    def m(key):
        return statistics.median(r[key] for r in a["rounds"])
    f = a["front"]
    tcp, file = a["tcp"], a["tcp_file"]

    def both(rate):
        return [f"{rate / GIB:.2f} GiB/s", f"{rate / tcp:.2f}", f"{rate / file:.2f}"]
    pages = ", huge pages" if path.endswith("-huge.json") else ""
    return [f"### Resync, class `{a['class']}`{pages}", "",
            f"A pool of {size(a['size'])}; medians of {len(a['rounds'])} rounds. The stream of a "
            "buffer goes between two that stay in the cache, that of a file from the pool's file "
            "into another one, and syncs it.", ""] + table(
        ["what", "measured", "ratio"],
        [["1 % scattered blocks of 4 KiB, bytes moved", f"{m('moved') / 2**20:.1f} MiB",
          f"{100 * m('moved') / a['size']:.2f} % of the pool"],
         ["the same, on the wire with all else", f"{m('wire') / 2**20:.1f} MiB",
          f"{100 * m('wire') / a['size']:.2f} % of the pool"],
         ["the same, time", f"{m('ns') / 1e6:.0f} ms", "-"],
         ["persist of 4 KiB to another pool there, alone", f"{us(f['alone_ns'])} us", "1.00"],
         ["the same beside a resync by the journal", f"{us(f['beside_ns'])} us",
          f"{f['beside_ns'] / f['alone_ns']:.2f}"]]) + table(
        ["rate", "measured", "to TCP, a buffer", "to TCP, a file"],
        [["bare TCP, a buffer"] + both(tcp),
         ["bare TCP, a file"] + both(file),
         ["all of it, by the journal"] + both(m("journal")),
         ["all of it, directly"] + both(m("direct")),
         ["all of it, by the journal beside those persists"] + both(f["bytes_per_s"])])


def queue(path):
    with open(path) as f:
        a = json.load(f)
    lines = [f"### Three replicas, class `{a[0]['class']}`", "",
             "Persists, with all of a set's targets and the program on the same cores; the ratio is "
             "to one replica. Bare TCP sends as much to as many servers at once and waits for 48 bytes "
             "from each, in the same way.", ""]
    for run in a:
        poll = run["busy_poll_us"]
        lines += [f"Waits poll for {poll} us before they sleep:" if poll else
                  "Waits sleep at once (`busy-poll = 0` on both sides):", ""]
        lines += table(
            ["persist of", "replicas, ack", "us", "ratio", "to bare TCP"],
            [[size(w["len"]), w["name"], us(w["ns"]), f"{w['ratio']:.2f}",
              f"{w['to_bare']:.2f}" if "to_bare" in w else "-"] for w in run["ways"]])
    return lines


PARTS = {"chooser": chooser, "dirty": dirty, "growth": growth, "hotline": hotline, "log": log,
         "pmdk": pmdk, "provider": provider, "queue": queue, "remotelog": remotelog, "resync": resync}


def values(results, name):
    all_values = {}
    with open(os.path.join(results, name)) as f:
        for line in f:
            key, value = line.split()
            all_values.setdefault(key, []).append(float(value))
    return all_values


TRANSFERS = {"transfer": "tmpfs, 4 KiB pages", "transfer-huge": "tmpfs, huge pages"}


def transfer(results, name):
    if not os.path.exists(os.path.join(results, name)):
        return []
    v = values(results, name)
    m = {k: statistics.median(x) for k, x in v.items()}
    # Others may use loopback as well: the least is nearest to the truth.
    wire = {k: min(x) for k, x in v.items() if k.endswith("-wire")}
    rows = []
    for what, base, file, text in (("sync", "tcp-out", "file-again", "sync, all differs"),
                                   ("restore", "tcp-in", "file-new", "restore to a new file"),
                                   ("sync-same", None, None, "sync, nothing differs")):
        rows.append([text, f"{m[what] / GIB:.2f}", f"{m[base] / GIB:.2f}" if base else "-",
                     f"{m[file] / GIB:.2f}" if file else "-",
                     f"{m[what] / m[base]:.2f}" if base else "-",
                     f"{m[what] / m[file]:.2f}" if file else "-",
                     f"{wire[what + '-wire'] / 2**20:.1f}"])
    return [f"### Whole pools, {TRANSFERS[name]}", "",
            f"Medians of {len(v['sync'])} rounds, both sides on one tmpfs. "
            "Buffers: a bare stream between two that stay in the cache. "
            "Files: a bare stream of the same file, for sync into one that is there and mapped, its pages "
            "touched before; for restore by write(2) into a new one. A command's time is all of it, "
            "with the durability at its end.", ""] + table(
        ["command", "GiB/s", "bare, buffers GiB/s", "bare, files GiB/s", "command to buffers",
         "command to files", "MiB on the wire"], rows)


def session(results):
    v = values(results, "session")
    m = {k: statistics.median(x) for k, x in v.items()}
    rows = [
        ["`ssh host true`", f"{m['ssh-true-ms']:.0f} ms"],
        ["`replctl list`, a session from login to bye",
         f"{m['replctl-list-ms']:.0f} ms, {m['replctl-list-ms'] / m['ssh-true-ms']:.2f} of that"],
        ["session process, anonymous memory", f"{m['session-anon-kib'] / 1024:.1f} MiB"],
        ["session process, files with the pool of 16 MiB",
         f"{m['session-file-kib'] / 1024:.1f} MiB"],
        ["idle with lanes open, CPU of the session", f"{m['idle-session-percent']:.0f} %"],
        ["idle with lanes open, CPU of the initiator", f"{m['idle-initiator-percent']:.0f} %"],
    ]
    return ["### A session, through OpenSSH's sshd", ""] + table(["what", "measured"], rows)


def report(results, command):
    out = [f"Machine: {machine()}; both sides on it, over loopback. Command: `{command}`.", ""]
    out += bench(results, "memory") + bench(results, "page")
    out += provider(os.path.join(results, "provider.json"))
    for name in TRANSFERS:
        out += transfer(results, name)
    out += session(results)
    # Measured with each side on a core of its own.
    for name in ("chooser-memory", "chooser-page", "log-memory", "log-page",
                 "dirty-memory", "dirty-page", "growth-memory", "growth-page", "remotelog-memory",
                 "remotelog-page", "hotline", "pmdk-memory", "pmdk-page", "resync-memory",
                 "resync-huge", "resync-page", "queue-memory", "queue-page"):
        path = os.path.join(results, name + ".json")
        # Not everybody may mount a file system with huge pages.
        if os.path.exists(path) or not name.endswith("-huge"):
            out += PARTS[name.split("-")[0]](path)
    print("\n".join(out).rstrip())


def into(path, section_path):
    with open(section_path) as f:
        section = f.read()
    with open(path) as f:
        text = f.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    with open(path, "w") as f:
        f.write(text[:begin] + "\n" + section + "\n" + text[end:])


if len(sys.argv) == 4 and sys.argv[1] == "--into":
    into(sys.argv[2], sys.argv[3])
elif len(sys.argv) == 4 and sys.argv[1] == "--part":
    print("\n".join(PARTS[sys.argv[2]](sys.argv[3])))
elif len(sys.argv) == 3:
    report(sys.argv[1], sys.argv[2])
else:
    sys.exit(__doc__)

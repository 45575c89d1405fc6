# SPDX-License-Identifier: BSD-3-Clause
# replctl bench remotelog accounts for every method and leaves no pool behind, also when interrupted.
[ -w /dev/shm ] && export TMPDIR=/dev/shm # where most methods are correct
. "$(dirname "$0")/lib.sh"
start_target

nothing_left() {
	set -- "$TMP"/serve/pools/*
	[ ! -e "$1" ] || fail "$1 is left"
}

# A method is measured, or it is told why it is not.
ctl_fails 2 "^replctl: --method 'x' is none of message, general-purpose, appliance" \
	bench remotelog --method x "$T"
methods=$(sed -n "s/^replctl: --method 'x' is none of //p" "$TMP/err" | tr -d ' ')
ctl --json bench remotelog --count 200 --plot "$TMP/bars.svg" "$T" >"$TMP/out" 2>"$TMP/err" ||
	fail "bench remotelog: $(cat "$TMP/err")"
python3 - "$TMP/out" "$methods" <<'PY' || fail "the answer: $(cat "$TMP/out")"
import json, sys
a = json.load(open(sys.argv[1]))
told = [(s["method"], s["update"]) for s in a["series"] + a["not_run"]]
due = [(m, u) for m in sys.argv[2].split(",") for u in ("singleton", "compound")
       if (m, u) not in (("log-counter", "singleton"), ("log-register", "singleton"))]
assert sorted(told) == sorted(due), told
for s in a["series"] + [a["raw"]]:
    assert s["count"] == 200 and 0 < s["p50_ns"] <= s["p99_ns"] and s["mean_ns"] > 0, s
assert all(s["ratio"] > 0 for s in a["series"])
assert all(s["reason"] for s in a["not_run"])
for u in ("singleton", "compound"):
    for m in ("message", "log"):
        assert (m, u) in [(s["method"], s["update"]) for s in a["series"]], m
    assert sum(s["chosen"] for s in a["series"] if s["update"] == u) == 1, u
assert not a["interrupted"]
PY
python3 - "$TMP/bars.svg" "$TMP/out" <<'PY' || fail "the plot: $(cat "$TMP/bars.svg")"
import json, sys, xml.etree.ElementTree as xml
svg = "{http://www.w3.org/2000/svg}"
root = xml.parse(sys.argv[1]).getroot()
assert root.tag == svg + "svg"
series = json.load(open(sys.argv[2]))["series"]
texts = [t.text for t in root.iter(svg + "text")]
assert {s["method"] for s in series} <= set(texts), texts
# The ground, a key for each kind of update, the bars.
assert len(list(root.iter(svg + "rect"))) == 1 + 2 + len(series)
assert texts.count("none") == 2  # the counter's and the register's singletons
PY
nothing_left

# What the configuration says of a program's own handle is none of its pools'.
cp "$TMP/out" "$TMP/plain"
{
	cat "$TMP/login.conf"
	printf 'async-target = %s\ntarget = %s\nack = any\n' "$T/none" "$T/other"
	printf 'status-socket = %s\nmetrics-file = %s\n' "$TMP/taken" "$TMP/metrics"
} >"$TMP/program.conf"
echo "of the program" | tee "$TMP/metrics" >"$TMP/taken"
REPL_CONFIG=$TMP/program.conf ctl --json bench remotelog --count 20 "$T" >"$TMP/out" 2>"$TMP/err" ||
	fail "with a program's configuration: $(cat "$TMP/err" "$TMP/out")"
for file in metrics taken; do
	[ "$(cat "$TMP/$file")" = "of the program" ] || fail "the program's $file is another"
done
python3 - "$TMP/plain" "$TMP/out" <<'PY' || fail "with a program's configuration: $(cat "$TMP/out")"
import json, sys
plain, own = (json.load(open(f)) for f in sys.argv[1:])
for part in ("series", "not_run"):
    told = [[(s["method"], s["update"], s.get("reason")) for s in a[part]] for a in (plain, own)]
    assert told[0] == told[1], told
PY
nothing_left

ctl bench remotelog --count 50 --size 200 --method general-purpose --tail compound "$T" \
	>"$TMP/out" 2>"$TMP/err" || fail "one series: $(cat "$TMP/err")"
grep -q "^raw ping-pong " "$TMP/out" || fail "no raw row: $(cat "$TMP/out")"
grep -Eq "^general-purpose .* compound +50 " "$TMP/out" || fail "no row: $(cat "$TMP/out")"
grep -q "singleton" "$TMP/out" && fail "a row that nobody wanted: $(cat "$TMP/out")"
nothing_left
# Long enough for its first half to be trimmed.
ctl --json bench remotelog --count 500 --size 4096 --method log "$T" >"$TMP/out" 2>"$TMP/err" ||
	fail "log: $(cat "$TMP/err")"
[ "$(member series.1.count <"$TMP/out")" = 500 ] || fail "not all appended: $(cat "$TMP/out")"
nothing_left
for words in "--tail x" "--count 0" "--size 8" "--size 5000" "--seconds 3"; do
	# shellcheck disable=SC2086
	ctl_fails 2 "" bench remotelog $words "$T"
done
# A plot goes to what is no file as well, and one that can't be written is told.
mkfifo "$TMP/fifo"
cat "$TMP/fifo" >"$TMP/piped.svg" &
reader=$!
PIDS="$PIDS $reader"
ctl bench remotelog --count 50 --method message --plot "$TMP/fifo" "$T" >"$TMP/out" 2>"$TMP/err" ||
	fail "a plot to a pipe: $(cat "$TMP/err")"
wait_for 10 gone "$reader" || fail "the pipe stays open"
grep -q "</svg>" "$TMP/piped.svg" || fail "no plot in the pipe"
ctl_fails 1 "writing the plot: No space left" bench remotelog --count 50 --method message --plot /dev/full "$T"
echo longer than any plot >"$TMP/old.svg"
head -c 1M /dev/zero >>"$TMP/old.svg"
ctl bench remotelog --count 50 --method message --plot "$TMP/old.svg" "$T" >"$TMP/out" 2>"$TMP/err" ||
	fail "a plot over another: $(cat "$TMP/err")"
tail -n 1 "$TMP/old.svg" | grep -q "</svg>$" || fail "the rest of an older plot is left"
ctl_fails 3 "no-such-dir" bench remotelog --plot "$TMP/no-such-dir/f.svg" "$T"
ctl_fails 7 "" bench remotelog --plot "$TMP/none.svg" 127.0.0.1:1
[ ! -e "$TMP/none.svg" ] || fail "a plot of nothing"
nothing_left

running() {
	set -- "$TMP"/serve/pools/bench-*-message
	[ -e "$1" ]
}

# What has been measured up to an interrupt is told.
ctl_start --json bench remotelog --method message "$T"
wait_for 20 running || fail "no pool"
sleep 1
kill -TERM "$CTL_PID"
wait "$CTL_PID" && fail "interrupted, and yet a success"
grep -q "interrupted after [1-9]" "$TMP/bg.err" || fail "not told: $(cat "$TMP/bg.err")"
[ "$(member interrupted <"$TMP/bg.out")" = True ] || fail "not in the JSON: $(cat "$TMP/bg.out")"
[ "$(member series.0.count <"$TMP/bg.out")" -gt 0 ] || fail "nothing measured"
nothing_left

ctl_start bench remotelog --method message "$T"
wait_for 20 running || fail "no pool"
sleep 0.5
kill -TERM "$CTL_PID"
wait "$CTL_PID" && fail "told to stop, and yet a success"
nothing_left

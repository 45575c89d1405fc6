# SPDX-License-Identifier: BSD-3-Clause
# replctl bench measures and leaves no pool behind: at its end, interrupted, its session killed, or itself.
. "$(dirname "$0")/lib.sh"

make_keys
start_serve
target=$SERVE_USER@127.0.0.1:$SERVE_PORT

bench() {
	"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" bench --size 4M \
		"$@" "$target"
}

nothing_left() {
	set -- "$TMP"/serve/pools/*
	[ ! -e "$1" ] || fail "$1 is left"
}

pool_is_there() {
	set -- "$TMP"/serve/pools/bench-*
	[ -e "$1" ]
}

bench --quick --seconds 1 --json >"$TMP/out" 2>"$TMP/bench.log" || fail "bench"
python3 - "$TMP/out" <<'PY' || fail "the answer: $(cat "$TMP/out")"
import json, sys
a = json.load(open(sys.argv[1]))
for s in a["sizes"]:
    assert s["tcp"]["p50_ns"] > 0
    assert sum(m["chosen"] for m in s["persist"]) == 1, s
    assert all(0 < m["p50_ns"] <= m["p99_ns"] for m in s["persist"]), s
assert {o["operation"] for o in a["operations"]} >= {"ordered pair", "atomic 8"}
assert all(l["persists_per_s"] > 0 for l in a["lanes"])
assert all(s["bytes_per_s"] > 0 and s["tcp_bytes_per_s"] > 0 for s in a["streams"])
PY
nothing_left

bench --seconds 50 >"$TMP/out" 2>"$TMP/bench.log" &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 pool_is_there || fail "no pool"
sleep 0.5
kill -TERM "$(pgrep -P "$pid" -x replctl)" || fail "no replctl"
wait "$pid" && fail "interrupted, and yet a success"
grep -q interrupted "$TMP/bench.log" || fail "not told: $(cat "$TMP/bench.log")"
nothing_left

bench --seconds 50 >"$TMP/out" 2>"$TMP/bench.log" &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 pool_is_there || fail "no pool"
sleep 0.5
kill -KILL "$(pgrep -P "$SERVE_PID")" || fail "no session"
wait "$pid" && fail "its session was killed, and yet a success"
nothing_left

# Nobody is there to remove it: the target does, when the session ends.
bench --seconds 50 >"$TMP/out" 2>"$TMP/bench.log" &
pid=$!
PIDS="$PIDS $pid"
wait_for 20 pool_is_there || fail "no pool"
sleep 0.5
kill -KILL "$(pgrep -P "$pid" -x replctl)" || fail "no replctl"
wait "$pid" && fail "it was killed, and yet a success"
no_pool() {
	! pool_is_there
}
wait_for 20 no_pool || nothing_left

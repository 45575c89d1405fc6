#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the constructor of a library persists, while a program loads that, does not wait for the library; it is on the replica
# with what is made durable next.
# Another thread may wait for the end of that, and does so where nothing may be durable without replicas. One that opens
# the pool meanwhile does not wait for who waits for it, with a replica that is away neither. Nor does one that persists for
# the constructor.
. "$(dirname "$0")/run_lib.sh"
ODD=$BUILD/tests/integration/pmem_odd
LOADED=$BUILD/tests/integration/libpmem_loaded.so
export LOADED
start_target
file=$TMP/loaded

# A program that makes nothing durable without replicas does not do so there; meanwhile the other one.
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=fail --set block-timeout=300 \
	--replica "$T/never" --pool "$TMP/never" -- \
	timeout -k 5 60 "$ODD" loaded "$TMP/never" >"$TMP/never.out" 2>&1 &
never=$!
(run "$TMP/meanwhile" meanwhile timeout -k 5 60 "$ODD" meanwhile "$TMP/meanwhile") >"$TMP/meanwhile.out" 2>&1 &
meanwhile=$!
(ON_LOSS=degrade run "$file" loaded timeout -k 5 60 "$ODD" loaded "$file") >"$TMP/out" 2>&1 &
pid=$!
PIDS="$PIDS $pid $never $meanwhile"
wait_for 40 grep -q "loaded: is replicated now" "$TMP/out" || fail "it is not replicated: $(cat "$TMP/out")"
touch "$file.enough"
wait "$pid" || fail "it ends with $?: $(cat "$TMP/out")"
grep -q "loaded: NOT REPLICATED: a library is being loaded" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
[ "$(wc -l <"$TMP/out")" -eq 2 ] || fail "more than two lines: $(cat "$TMP/out")"
wait_for 10 pool_idle loaded || fail "loaded is still open"
ctl verify "$file" "$T/loaded" >"$TMP/verify.log" 2>&1 || lost "loaded: $(cat "$TMP/verify.log" "$TMP/out")"

# crossed OPTION...: what it says is in $TMP/out
crossed() {
	rm -f "$TMP"/crossed.enough* "$TMP"/crossed*.slow
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run "$@" --replica "$T/crossed" --pool "$TMP/crossed" -- \
		timeout -k 5 10 env LD_PRELOAD="$BUILD/tests/integration/slow_open.so:$BUILD/librepl-preload.so" \
		SLOW_OPEN="$TMP/crossed.repl" SLOW_UNTIL="$TMP/crossed.enough.begun" "$ODD" crossed "$TMP/crossed" >"$TMP/out" 2>&1 ||
		fail "crossed ends with $?: $(cat "$TMP/out")"
	[ -f "$TMP/crossed.enough.begun" ] || fail "crossed loads nothing"
	wait_for 10 pool_idle crossed || fail "crossed is still open"
	ctl verify "$TMP/crossed" "$T/crossed" >"$TMP/verify.log" 2>&1 || lost "crossed: $(cat "$TMP/verify.log" "$TMP/out")"
}

# One of its two replicas is where nobody answers, the second time.
mkdir "$TMP/serve/away"
[ "$(id -u)" -ne 0 ] || chown "$SERVE_USER" "$TMP/serve/away"
sed "s|^pool-dir = .*|pool-dir = $TMP/serve/away|" "$TMP/repld.conf" >"$TMP/away.conf"
"$REPLD" serve --config "$TMP/away.conf" >"$TMP/away.log" 2>&1 &
away_pid=$!
PIDS="$PIDS $away_pid"
wait_for 20 grep -q "listening on" "$TMP/away.log" || fail "the second target does not start"
port=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' "$TMP/away.log")
trust "$port" "$TMP/serve_host_key.pub"
away=$SERVE_USER@127.0.0.1:$port/crossed

crossed --set on-loss=fail --replica "$away"
[ ! -s "$TMP/out" ] || fail "crossed says: $(cat "$TMP/out")"
stop "$away_pid"
crossed --set on-loss=degrade --replica "$away"
grep -q "REPLICA $away LOST" "$TMP/out" || fail "with a replica away it says: $(cat "$TMP/out")"

(run "$TMP/joins" joins timeout -k 5 10 "$ODD" joins "$TMP/joins") >"$TMP/out" 2>&1 || fail "joins ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle joins || fail "joins is still open"
ctl verify "$TMP/joins" "$T/joins" >"$TMP/verify.log" 2>&1 || lost "joins: $(cat "$TMP/verify.log" "$TMP/out")"

wait "$never"
status=$?
[ $status -eq 134 ] || fail "with on-loss = fail it ends with $status: $(cat "$TMP/never.out")"
grep -q "never: NOT REPLICATED: a library is being loaded" "$TMP/never.out" || fail "it says: $(cat "$TMP/never.out")"

wait_for 40 grep -q "meanwhile: NOT REPLICATED" "$TMP/meanwhile.out" || fail "nothing is told"
grep -q "meanwhile: NOT REPLICATED, waiting.*a library is being loaded" "$TMP/meanwhile.out" ||
	fail "it does not wait: $(cat "$TMP/meanwhile.out")"
touch "$TMP/meanwhile.enough"
wait "$meanwhile" || fail "meanwhile ends with $?: $(cat "$TMP/meanwhile.out")"
grep -q "meanwhile: is replicated now" "$TMP/meanwhile.out" || fail "it says: $(cat "$TMP/meanwhile.out")"
wait_for 10 pool_idle meanwhile || fail "meanwhile is still open"
ctl verify "$TMP/meanwhile" "$T/meanwhile" >"$TMP/verify.log" 2>&1 ||
	lost "meanwhile: $(cat "$TMP/verify.log" "$TMP/meanwhile.out")"

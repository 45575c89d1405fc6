#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# No update that was acknowledged to a writer is lost when it is killed and its pool is gone.
. "$(dirname "$0")/lib.sh"

REPLCTL=${REPLCTL:-$BUILD/replctl}
LEDGER=${LEDGER:-$BUILD/packaging/ledger}

acknowledged() {
	[ "$(wc -l <"$TMP/acknowledged")" -ge "$1" ]
}

make_keys
start_serve
target=$SERVE_USER@127.0.0.1:$SERVE_PORT/ledger.pool
pool=$TMP/ledger.pool
total=0

# Each time it goes on where the restored pool ends.
for more in 1 20 100; do
	: >"$TMP/acknowledged"
	"$LEDGER" write "$pool" "$target" identity="$TMP/key" known-hosts="$TMP/known_hosts" \
		>"$TMP/acknowledged" 2>"$TMP/ledger.log" &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 20 acknowledged "$more" || fail "$more updates were not acknowledged"
	kill -KILL "$pid" || fail "the writer ended by itself"
	wait "$pid" 2>/dev/null
	last=$(tail -n 1 "$TMP/acknowledged")
	[ "$last" -ge $((total + more)) ] || lost "update $last after $total and $more"
	rm "$pool" "$pool.repl"
	timeout 20 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" \
		restore "$target" "$pool" >"$TMP/restore.log" 2>&1 || lost "restore"
	"$LEDGER" check "$pool" "$last" >"$TMP/check.log" || lost "updates are lost"
	total=$last
done

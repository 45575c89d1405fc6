# SPDX-License-Identifier: BSD-3-Clause
# A child that has abandoned its parent's handle keeps nothing of its status socket, its lock and its queues: when the parent is gone nobody is taken for it.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
FILE=$TMP/pool

# forked NAME LINE...: $parent has the pool open, $child has abandoned it.
forked() {
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
		echo "lanes = 1"
		printf '%s\n' "${@:2}"
	} >"$TMP/repl.conf"
	rm -f "$FILE"* "$TMP/said" "$TMP/go"
	mkfifo "$TMP/go"
	REPL_CONFIG=$TMP/repl.conf "$BUILD/tests/integration/fork_child" "$FILE" <"$TMP/go" \
		>"$TMP/said" 2>"$TMP/load.log" &
	parent=$!
	exec 5>"$TMP/go"
	PIDS="$parent $PIDS"
	wait_for 20 grep -q . "$TMP/said" || fail "$1: $(cat "$TMP/load.log")"
	child=$(cat "$TMP/said")
	PIDS="$child $PIDS"
}

# ended: the parent, killed; the child goes on.
ended() {
	signalled KILL "$parent"
	wait "$parent" 2>/dev/null
	ctl_fails 3 "no program has the pool open" status "$FILE"
	wait_for 10 no_sessions || fail "the sessions stay"
	kill -0 "$child" || fail "the child is gone"
	exec 5>&-
	wait_for 10 gone "$child" || fail "the child stays"
}

eventfds() {
	readlink "/proc/$child"/fd/* | grep -c eventfd
}

forked all "target = $(pool all)"
ctl status "$FILE" >"$TMP/out" || fail "no status beside a child: $(cat "$TMP/out")"
before=$(eventfds)
ended
forked queued "target = $(pool queued)" "ack = quorum"
[ "$(eventfds)" -eq "$before" ] || fail "$(eventfds) eventfds stay of a queue, $before without"
ended
# The name is free for the next one.
forked again "target = $(pool again)"
ctl status "$FILE" >"$TMP/out" || fail "no status of the next: $(cat "$TMP/out")"
ended

# SPDX-License-Identifier: BSD-3-Clause
# A child that has abandoned its parent's handle keeps nothing of its status socket, its lock, its queues and of a replica that is being brought back: when the parent is gone nobody is taken for it.
. "$(dirname "$0")/api_lib.sh"
make_keys
# Else a session that is silent would soon end, too.
start_serve "heartbeat-timeout = 60000"
FILE=$TMP/pool

# begun LINE...: $parent opens the pool; HOW it forks, see fork_child.
begun() {
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
		echo "lanes = 1"
		printf '%s\n' "$@"
	} >"$TMP/repl.conf"
	rm -f "$FILE"* "$TMP/said" "$TMP/go"
	mkfifo "$TMP/go"
	REPL_CONFIG=$TMP/repl.conf "$BUILD/tests/integration/fork_child" "$FILE" ${HOW-} <"$TMP/go" \
		>"$TMP/said" 2>"$TMP/load.log" &
	parent=$!
	exec 5>"$TMP/go"
	PIDS="$parent $PIDS"
}

# forked NAME LINE...: $parent has the pool open, $child has abandoned it.
forked() {
	begun "${@:2}"
	has_forked "$1"
}

has_forked() {
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
HOW=resync begun "target = $(pool resync)" "resync-rate = 64K"
wait_for 20 ctl status "$FILE" || fail "it is not open: $(cat "$TMP/load.log")"
signalled KILL "$(session_of resync)"
has_forked resync
ended

# Where a handler forks its child may return to the call that it has interrupted.
# says WORD: it has, or has ended.
says() {
	grep -q "$1" "$TMP/said" || gone "$parent"
}

# returns_begin OP-TIMEOUT CALL LINE...: $parent, see fork_returns.
returns_begin() {
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
		echo "lanes = 8"
		echo "op-timeout = $1"
		echo "heartbeat-interval = 20000"
		echo "heartbeat-timeout = 60000"
		printf '%s\n' "${@:3}"
	} >"$TMP/repl.conf"
	rm -f "$FILE"* "$TMP/said" "$TMP/go"
	mkfifo "$TMP/go"
	REPL_CONFIG=$TMP/repl.conf "$BUILD/tests/integration/fork_returns" "$FILE" $2 <"$TMP/go" >"$TMP/said" 2>"$TMP/returns.log" &
	parent=$!
	exec 5>"$TMP/go"
	PIDS="$parent $PIDS"
	wait_for 20 says ready || fail "$(cat "$TMP/returns.log")"
}

# returns POOL... -- LINE...: of a program with these replicas, none of which answers meanwhile.
returns() {
	local pools=() pids=()

	while [ "$1" != -- ]; do
		pools+=("$1")
		shift
	done
	shift
	returns_begin 60000 "" "$@"
	for name in "${pools[@]}"; do
		pids+=("$(session_of "$name")") || fail "no session of $name: $(cat "$TMP/returns.log")"
	done
	signalled STOP "${pids[@]}"
	echo >&5
	wait_for 120 says forked || fail "$(cat "$TMP/returns.log")"
	grep -q forked "$TMP/said" || fail "$(cat "$TMP/returns.log")"
	kill -CONT "${pids[@]}"
	wait "$parent" || fail "ends with $?: $(cat "$TMP/returns.log")"
	exec 5>&-
	for name in "${pools[@]}"; do
		equal "$FILE" "$TMP/serve/pools/$name"
	done
}

returns returns -- "target = $(pool returns)"
# Of a queue as well that has no room, also where others are waited for first.
returns one two -- "target = $(pool one)" "target = $(pool two)" "ack = quorum" "async-lag-bytes = 64K" "async-lag-time = 600000"
returns three four -- "target = $(pool three)" "async-target = $(pool four)" "async-lag-bytes = 64K" "async-lag-time = 600000"

# Its record, which is synced when that is interrupted, is its parent's; nor has another file got its number.
# amid_record CALL: amid that. For drain the second replica is lost by it.
amid_record() {
	local pid

	returns_begin 2000 "$1" "target = $(pool "a$1")" "target = $(pool "b$1")"
	if [ "$1" = drain ]; then
		pid=$(session_of "b$1") || fail "no session: $(cat "$TMP/returns.log")"
		signalled STOP "$pid"
	fi
	echo >&5
	wait "$parent" || fail "$1 ends with $?: $(cat "$TMP/returns.log")"
	exec 5>&-
	[ "$1" != drain ] || kill -CONT "$pid"
	equal "$FILE" "$TMP/serve/pools/a$1"
}
for call in drain grow; do
	amid_record "$call"
done

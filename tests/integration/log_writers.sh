# SPDX-License-Identifier: BSD-3-Clause
# A log holds all that was acknowledged to its writers, and of each at most its last call beside it,
# when its target or the writers are killed, and after a restore.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
LOAD=$BUILD/tests/integration/log_load

# load ARG...: for ever, or to the end of its calls; it reads its standard input from $TMP/go.
load_start() {
	rm -f "$TMP/go" "$TMP/said"
	mkfifo "$TMP/go"
	timeout -k 1 30 "$LOAD" run "$@" "$target" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" lanes=4 ${METHOD:+method="$METHOD"} <"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	PIDS="$PIDS $load"
	exec 3>"$TMP/go"
	wait_for 15 grep -q ready "$TMP/said" || fail "the load does not start"
}

check() {
	timeout 20 "$LOAD" check "$TMP/local" "$TMP/journal" "$target" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" >"$TMP/verdict" 2>"$TMP/check.log" ||
		lost "kind $kind: $*: $(cat "$TMP/verdict")"
	echo "kind $kind, $*: $(cat "$TMP/verdict")"
}

restore() {
	rm "$TMP/local" "$TMP/local.repl"
	ctl restore "$target" "$TMP/local" >"$TMP/restore.log" 2>&1 || fail "restore"
}

session_pid() {
	sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1
}

journal_grown() {
	[ "$(stat -c %s "$TMP/journal")" -gt "$1" ]
}

start_target
for kind in ${KINDS:-1 2}; do
	target=$T/log$kind
	rm -f "$TMP"/local* "$TMP/journal"

	# In peace.
	load_start "$kind" "$TMP/local" "$TMP/journal" "$kind" $((kind % 4 + 1)) 250
	echo >&3
	exec 3>&-
	wait "$load" || fail "kind $kind: the load failed"
	check "in peace"
	ctl verify "$TMP/local" "$target" >"$TMP/verify.log" 2>&1 || lost "what was trimmed differs"

	# The target's session is killed: each writer fails and says so.
	load_start $((kind + 10)) "$TMP/local" "$TMP/journal" "$kind" 3 100000
	session_pid >&3
	exec 3>&-
	wait "$load" || fail "kind $kind: the session was not killed"
	[ "$(grep -c 'takes no more\|is lost' "$TMP/load.log")" -eq 3 ] || fail "no error"
	check "session killed"

	# The writers are killed, and their pool is gone.
	load_start $((kind + 20)) "$TMP/local" "$TMP/journal" "$kind" 4 100000
	echo >&3
	exec 3>&-
	wait_for 15 journal_grown $(($(stat -c %s "$TMP/journal") + 20000)) || fail "no appends"
	kill -KILL "$(pgrep -P "$load")"
	wait "$load" 2>/dev/null
	restore
	check "writers killed"
done

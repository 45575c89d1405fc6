# SPDX-License-Identifier: BSD-3-Clause
# What a program has locked by fcntl(2) stays locked, though the library looks at the pool's file; and that file's
# record is beside it, whatever it is called.
. "$(dirname "$0")/lib.sh"
start_target
cat >"$TMP/repl.conf" <<END
[repl]
target = $T/locked
identity = $TMP/key
known-hosts = $TMP/known_hosts
END
REPL_CONFIG=$TMP/repl.conf timeout -k 5 60 "$BUILD/tests/integration/api_lock" "$TMP/pool" >&2 ||
	fail "ended with $?"
ctl verify "$TMP/pool" "$T/locked" >/dev/null || lost "the replica differs"
ctl remove --force "$T/locked" >/dev/null || fail "remove"

# lost_while MODE: its replica is lost while it is open, and comes back.
lost_while() {
	REPL_CONFIG=$TMP/repl.conf timeout -k 5 60 "$BUILD/tests/integration/api_lock" "$TMP/$1" "$1" >"$TMP/said" 2>"$TMP/err" &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 20 grep -q open "$TMP/said" || fail "it does not open: $(cat "$TMP/err")"
	for child in $(children "$SERVE_PID"); do
		kill -KILL "$child"
	done
	wait "$pid" || fail "$1: ended with $?: $(cat "$TMP/err")"
	ctl verify "$TMP/$1" "$T/locked" >/dev/null || lost "the replica differs"
	ctl remove --force "$T/locked" >/dev/null || fail "remove"
}

# What it locks while the library is about to close a descriptor of the file stays locked, too.
echo "reconnect-max = 300" >>"$TMP/repl.conf"
lost_while amid
# So it does where main() has left, whose /proc/self/fd is empty from then on.
lost_while left

for name in 'of
two lines' 'of\012one'; do
	mkdir "$TMP/$name"
	REPL_CONFIG=$TMP/repl.conf timeout -k 5 60 "$BUILD/tests/integration/api_lock" "$TMP/$name/pool" >&2 ||
		fail "'$name' ended with $?"
	[ -f "$TMP/$name/pool.repl" ] || fail "no record in '$name'"
	ctl remove --force "$T/locked" >/dev/null || fail "remove"
done

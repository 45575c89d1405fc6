# SPDX-License-Identifier: BSD-3-Clause
# repld serve takes more sessions than it may have files open (RLIMIT_NOFILE) where sessions-max allows them: each has
# a process of its own. It takes the next one, sees who has ended, and ends when it is told to.
. "$(dirname "$0")/fault.sh"
LIMIT=20
limit_repld -n $LIMIT
start_target "sessions-max = 64"
mkfifo "$TMP/in"
# Without an end of file for any of them.
exec 3<>"$TMP/in"
begun() {
	[ "$(grep -c "session of .* begins" "$TMP/serve.log")" -ge "$1" ]
}
n=0
while [ $n -lt $((LIMIT + 4)) ]; do
	for _ in 1 2 3 4; do
		client cat "$target" <"$TMP/in" >"$TMP/out" 2>&1 3>&- &
		PIDS="$! $PIDS"
		n=$((n + 1))
	done
	wait_for 20 begun $n || fail "$n sessions don't begin"
done
ctl list "$target" >"$TMP/out" 2>&1 || fail "one more: $(cat "$TMP/out")"
ended() {
	grep -q "session of .* has ended" "$TMP/serve.log"
}
wait_for 20 ended || fail "its end is not seen"
kill "$SERVE_PID"
wait_for 20 gone "$SERVE_PID" || fail "it goes on after SIGTERM"

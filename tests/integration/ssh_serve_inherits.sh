#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What repld serve inherits of signals, ignored or blocked, keeps neither sessions from being seen to end nor it from being
# stopped.
. "$(dirname "$0")/lib.sh"
make_keys
printf '#!/bin/sh\nexec env "$INHERIT" %s "$@"\n' "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
hello='{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'

no_connections() {
	[ -z "$(children "$SERVE_PID")" ]
}

for INHERIT in --ignore-signal --block-signal; do
	export INHERIT
	start_serve "sessions-max = 2"
	for _ in 1 2 3 4; do
		echo "$hello" | client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" 2>"$TMP/err" ||
			fail "$INHERIT: $(cat "$TMP/err")"
		grep -q '"result"' "$TMP/out" || fail "$INHERIT: $(cat "$TMP/out")"
		wait_for 10 no_connections || fail "$INHERIT: a connection stays"
	done
	kill "$SERVE_PID"
	wait_for 10 gone "$SERVE_PID" || fail "$INHERIT: it does not end"
done

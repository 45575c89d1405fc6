# SPDX-License-Identifier: BSD-3-Clause
# A program that is started again while a target has too few descriptors or too little memory for its replica goes on without it, unless
# on-loss = fail; the replica comes back when there is. Of a pool that was never replicated that is an error.
. "$(dirname "$0")/api_lib.sh"
if sanitized; then
	echo "skipped: a sanitizer takes more memory than any limit allows"
	exit 77
fi
repld=$REPLD
make_keys
start_serve
: >"$TMP/limited"
chmod 755 "$TMP/limited"
start_api

again() {
	configure "$(pool p)"
	ok set reconnect-max 200
	ok set lanes 8
	ok set on-loss "${1:-degrade}"
	ok map "$TMP/local" $((512 * MIB))
}

# serve_again [LIMIT]: at the port that it had, below that ulimit.
serve_again() {
	local port=$SERVE_PORT

	stop "$SERVE_PID"
	printf '#!/bin/sh\n%s\nexec %s "$@"\n' "${1:+ulimit $1}" "$repld" >"$TMP/limited"
	REPLD=$TMP/limited SERVE_AT=$port start_serve
}

# without PATTERN: it goes on, is told why, and marks what the replica lacks.
without() {
	again fail
	refused "REPL_E_(LIMIT|NOMEM)" "$1" open
	again
	ok open
	ok put 0 4096 "$RANDOM"
	ok persist 0 0 4096
	ok stat 0
	is replication 2
	[[ $TEXT =~ $1 ]] || fail "no '$1' in: $TEXT"
}

back() {
	wait_for 20 established 0 || fail "not back: $TEXT"
	ok close
	equal "$TMP/local" "$TMP/serve/pools/p"
}

again
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok close

serve_again "-n 64"
configure "$(pool new)"
ok set lanes 8
ok map "$TMP/new" 65536
refused REPL_E_LIMIT "RLIMIT_NOFILE" open 1
without "RLIMIT_NOFILE"
serve_again
back

serve_again "-v 400000"
without "Cannot allocate memory"
serve_again
back
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# laggard_lib.sh - on top of api_lib.sh for tests of replicas of which one has less.
#
#   configure_lagging TARGET...  one of them is enough, the others may lag far
#   fill I               the pool, of $size, is open and all have it; the I-th replica follows
#   open_amid FILE POOL  the api opens FILE and POOL's session, $held, is stopped when the first byte that it lacks has come,
#                        for all replicas are asked before any is written to
#   leave_behind POOL    more is written while POOL's session hangs, then the program is killed
. "$(dirname "$0")/api_lib.sh"
size=$((40 * MIB))

configure_lagging() {
	configure "$@"
	ok set ack any
	ok set lanes 1
	ok set heartbeat-timeout 60000
	ok set async-lag-bytes 128M
	ok set async-lag-time 60000
}

follows() {
	api stat "$1"
	[ "$(field lag_bytes)" = 0 ]
}

fill() {
	ok open 1
	# There is a generation before.
	ok close
	ok open
	ok put 0 $size 1
	ok persist 0 0 $size
	wait_for 10 follows "$1" || fail "replica $1 does not follow"
}

open_amid() {
	local program lacks

	lacks=$(cmp "$1" "$TMP/serve/pools/$2" | sed 's/.* byte \([0-9]*\),.*/\1/')
	[ -n "$lacks" ] || fail "$2 lacks nothing of $1"
	program=$(api_child)
	printf 'open\n' >&"$API_IN"
	until held=$(session_of "$2"); do
		kill -0 "$program" || fail "the program is gone: $(cat "$TMP/api.log")"
	done
	until cmp -s -i $((lacks - 1)) -n 1 "$1" "$TMP/serve/pools/$2"; do
		kill -0 "$program" || fail "the program is gone: $(cat "$TMP/api.log")"
	done
	kill -STOP "$held"
}

leave_behind() {
	local late i

	late=$(session_of "$1") || fail "no session of $1"
	signalled STOP "$late"
	# More than what is on its way to it.
	for i in 1 2 3 4 5 6 7 8; do
		ok put $((i * 4 * MIB)) $((4 * MIB)) "$((i + 1))"
		ok persist 0 $((i * 4 * MIB)) $((4 * MIB))
	done
	signalled KILL "$(api_child)"
	kill -CONT "$late"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

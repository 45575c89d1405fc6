# SPDX-License-Identifier: BSD-3-Clause
# A pause that has not come about, since the loss of another replica is being recorded, is not told as one.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=80000
make_keys
start_serve
start_api

configure "$(pool a)" "$(pool b)" "$(pool c)"
ok set heartbeat-timeout 60000
FILE=$TMP/pool
ok map "$FILE" $MIB
ok open 1
ok persist 0 0 4096
# It is told of the loss of c, before anything else happens, and does not answer.
pid=$(session_of b) || fail "no session of b"
signalled STOP "$pid"
signalled KILL "$(session_of c)"
is_lost() {
	ok stat 2
	[ "$(field replication)" != 0 ]
}
wait_for 20 is_lost || fail "the loss of c is not noticed"
ctl_fails 9 "not paused" pause "$FILE" "$(pool a)"
ok stat 0
is replication 0
kill -CONT "$pid"
paused() {
	[ "$(ctl --json status "$FILE" | member replicas.0.reason)" = paused ]
}
wait_for 20 paused || fail "it is not paused later: $(ctl status "$FILE")"
ctl resume "$FILE" >/dev/null || fail "resume"
ctl wait "$FILE" --timeout 30 >/dev/null || fail "not back: $(ctl why "$FILE")"
ok close

# Whether drains can do without another one is judged without one whose pause is to come.
configure "$(pool a)" "$(pool b)" "$(pool c)" "$(pool d)" "$(pool e)"
ok set heartbeat-timeout 60000
ok set ack quorum
ok set on-loss fail
ok open 1
ok persist 0 0 4096
pid=$(session_of b) || fail "no session of b"
signalled STOP "$pid"
signalled KILL "$(session_of c)"
wait_for 20 is_lost || fail "the loss of c is not noticed"
ctl_fails 9 "not paused" pause "$FILE" "$(pool a)"
ctl_fails 4 "drains need it" pause "$FILE" "$(pool d)"
kill -CONT "$pid"
wait_for 20 paused || fail "it is not paused later: $(ctl status "$FILE")"
ok persist 0 0 4096
ok close
stop_api

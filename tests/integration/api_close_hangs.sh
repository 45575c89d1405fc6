# SPDX-License-Identifier: BSD-3-Clause
# repl_close() ends those that are well in order also behind a replica that has just stopped answering, which
# nobody has noticed yet.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool a)" "$(pool b)"
ok set close-timeout 1500
ok set heartbeat-timeout 20000
ok set lanes 1
ok map "$TMP/p" $MIB
ok put 0 $MIB 1
ok open 1
ok persist 0 0 $MIB
a=$(session_of a)
signalled STOP "$a"
ok close
within $((1500 + LATE))
[ "$MS" -ge 1000 ] || fail "it took $MS ms: did the first one hang?"
kill -CONT "$a"
wait_for 20 no_sessions || fail "sessions stay"
equal "$TMP/p" "$TMP/serve/pools/b"
ctl info "$(pool b)" >"$TMP/info" || fail "info"
grep -q "^state *up-to-date" "$TMP/info" || fail "$(cat "$TMP/info")"
stop_api

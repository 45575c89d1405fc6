# SPDX-License-Identifier: BSD-3-Clause
# repl_close() returns by close-timeout also while the loss of one replica is being told to another that
# does not answer, and those that are well end in order all the same.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool a)" "$(pool b)" "$(pool c)"
ok set op-timeout 40000
ok set close-timeout 2500
ok set heartbeat-interval 100
ok set heartbeat-timeout 3000
ok set lanes 1
stay_lost
ok map "$TMP/p" $MIB
ok put 0 $MIB 1
ok open 1
ok persist 0 0 $MIB
a=$(session_of a)
b=$(session_of b)
signalled STOP "$a"
# Stopped behind it, this one is still taken for well when it is to be told.
sleep 2
signalled STOP "$b"
wait_for 10 degraded 0 || fail "no loss is noticed"
ok close
within $((2500 + LATE))
kill -CONT "$a" "$b"
wait_for 20 no_sessions || fail "sessions stay"
equal "$TMP/p" "$TMP/serve/pools/c"
ctl info "$(pool c)" >"$TMP/info" || fail "info"
grep -q "^state *up-to-date" "$TMP/info" || fail "$(cat "$TMP/info")"
stop_api

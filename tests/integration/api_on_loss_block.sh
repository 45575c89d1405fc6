# SPDX-License-Identifier: BSD-3-Clause
# With on-loss = block a call waits until the lost replica is back and has what it made durable, at most
# block-timeout; and a handle is closed in its time while a replica is being tried.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500
make_keys
start_serve
start_api
configure "$(pool p)"
ok set lanes 2
ok set on-loss block
ok set reconnect-max 300
ok set block-timeout 20000
ok map "$TMP/p" $((4 * MIB))
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
hurt kill
ok put 0 4096 2
ok persist 0 0 4096
echo "waited $MS ms"
ok stat 0
is replication 0
is error 1
cmp -n 4096 "$TMP/p" "$TMP/serve/pools/p" >&2 || lost "it returned before the replica had it"
ok compare 0
same
ok close

# Nobody comes back: the call gives up, and what it wrote is there when somebody does.
port=$SERVE_PORT
ok set block-timeout 700
ok open 0
hurt serve
ok put 8192 4096 3
refused REPL_E_LOST "not back within 700 ms" persist 0 8192 4096
[ "$MS" -ge 600 ] || fail "it waited $MS ms only"
within $((700 + OP_TIMEOUT + LATE))
refused REPL_E_LOST "not back" commit 0
ok tail 64 4096
refused REPL_E_LOST "not back" persist 0 64 8
refused REPL_E_LOST "not back" append 0 64 $MIB 8 1
ok flush 1 0 64
heal_at "$port"
wait_for 20 established 0 || fail "the replica does not come back: $TEXT"
ok drain 1
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

# Closing cuts short what is being tried: waiting, and connecting to a machine that does not answer.
ok set on-loss degrade
ok set reconnect-min 1
ok set connect-timeout 20000
ok open 0
hurt kill
# It may be back before anybody looks.
noticed() {
	api stat 0
	[ "$(field error)" -gt 0 ]
}
wait_for 20 noticed || fail "the loss is not noticed: $TEXT"
ok close
within 1000
# What was cut short ends at the target a moment later.
wait_for 10 no_sessions || fail "sessions stay"
ok open 0
hurt_pids=$(sessions)
signalled STOP "$SERVE_PID"
signalled KILL $hurt_pids
wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
sleep 1
ok close
within 1000
kill -CONT "$SERVE_PID"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A target that is away at open: the set opens degraded without it, fails with on-loss = fail, or when none
# is left of a pool that was never replicated.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
nobody_there=$SERVE_USER@127.0.0.1:$(free_port)/p
start_api
configure "$(pool p)" "$nobody_there"
ok set lanes 1
ok set connect-timeout 3000
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
within $((OP_TIMEOUT / 2))
ok stat 0
is replication 0
ok stat 1
is connection 1
is replication 2
is data 2
[[ $TEXT == *reason=*refused* ]] || fail "no reason: $TEXT"
refused REPL_E_LOST "not been reachable" profile 1
refused REPL_E_LOST "replica 1 is lost" read 0 1 0 8
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

ok set on-loss fail
refused REPL_E_UNREACHABLE "127.0.0.1" open 1
ok set on-loss degrade
configure "$nobody_there"
ok open 1
ok persist 0 0 64
ok stat 0
is replication 2
ok close
within $((2000 + LATE))
ok map "$TMP/new" $MIB
refused REPL_E_UNREACHABLE "no replica is reachable" open 1
ok map "$TMP/p" $MIB

# Whatever is wrong but absence is an error, not a degraded set.
configure "$(pool p)" "$(pool absent)"
refused REPL_E_NOT_FOUND "absent" open 0
ok set identity "$TMP/other_key"
refused REPL_E_AUTH "$SERVE_USER" open 1

# An SSH server that is stopped: by the connect timeout.
configure "$(pool p)"
ok set on-loss fail
ok set connect-timeout 1000
signalled STOP "$SERVE_PID"
refused REPL_E_TIMEOUT "127.0.0.1" open 1
within $((1000 + LATE))
kill -CONT "$SERVE_PID"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A target that is away when a pool is opened, and one of two that is lost, come back by themselves; the other
# one is never disturbed.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_sshd "Subsystem repl $REPLD session --config $TMP/sshd-repld.conf"
mkdir "$TMP/elsewhere"
{
	echo "[repld]"
	echo "pool-dir = $TMP/elsewhere"
} >"$TMP/sshd-repld.conf"
far=$USER_NAME@127.0.0.1:$SSHD_PORT/p
late_port=$SERVE_PORT
near=$(pool p)
start_api
configure "$near" "$far"
ok set lanes 2
ok set reconnect-max 500
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1

# Not there yet, and its pool neither.
signalled KILL $(pgrep -P "$SERVE_PID") "$SERVE_PID"
wait "$SERVE_PID" 2>/dev/null
ok open 1
ok stat 0
is replication 2
ok put 0 $MIB 2
ok persist 0 0 $MIB
refused REPL_E_LOST "not been reachable" profile 0
hurt_pids=
heal_at "$late_port"
wait_for 20 established 0 || fail "the late one does not come: $TEXT"
ok put $MIB 4096 3
ok persist 1 $MIB 4096
for i in 0 1; do
	ok compare $i
	same
done
ok profile 0
ok stat 1
is error 0
is missed 0

# One of two.
hurt kill
wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
ok put $((2 * MIB)) 4096 4
ok persist 1 $((2 * MIB)) 4096
wait_for 20 established 0 || fail "it does not come back: $TEXT"
for i in 0 1; do
	ok compare $i
	same
done
ok stat 1
is error 0
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
equal "$TMP/p" "$TMP/elsewhere/p"

# Away again when the program is started again: also with its own chain of generations it is known.
signalled KILL $(pgrep -P "$SERVE_PID") "$SERVE_PID"
wait "$SERVE_PID" 2>/dev/null
ok open 0
ok put 0 4096 5
ok persist 0 0 4096
heal_at "$late_port"
wait_for 20 established 0 || fail "the late one does not come: $TEXT"
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
equal "$TMP/p" "$TMP/elsewhere/p"

# What went on elsewhere meanwhile is never overwritten: it stands alone, with the next step told.
cp "$TMP/p" "$TMP/other"
configure "$near"
ok set lanes 2
ok map "$TMP/other" $((4 * MIB))
ok open 0
ok put 0 64 6
ok persist 0 0 64
ok close
standalone() {
	api stat 0
	[ "$(field connection)" = 2 ]
}
port=$SERVE_PORT
signalled KILL $(pgrep -P "$SERVE_PID") "$SERVE_PID"
wait "$SERVE_PID" 2>/dev/null
configure "$near" "$far"
ok set lanes 2
ok set reconnect-max 500
ok map "$TMP/p" $((4 * MIB))
ok open 0
heal_at "$port"
wait_for 20 standalone || fail "not standalone: $TEXT"
[[ $TEXT == *reason=*"nothing was changed"*ext:*replctl* ]] || fail "no next step: $TEXT"
# One next step, not that of the message beside it.
[[ $(ctl status --json "$TMP/p" | member replicas.1.message) != *ext:* ]] ||
	fail "two next steps: $(ctl status "$TMP/p")"
ok close
equal "$TMP/other" "$TMP/serve/pools/p"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# When one of two replicas is lost the other has a newer generation: no later mistake takes the lost one for good.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=1500
make_keys
start_serve
start_sshd "Subsystem repl $REPLD session --config $TMP/sshd-repld.conf"
mkdir "$TMP/elsewhere"
{
	echo "[repld]"
	echo "pool-dir = $TMP/elsewhere"
} >"$TMP/sshd-repld.conf"
far=$USER_NAME@127.0.0.1:$SSHD_PORT/p

# generation TARGET: from replctl info.
generation() {
	"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json info "$1" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["generation"])'
}

history() {
	"$BUILD/replctl" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json info "$1" |
		python3 -c 'import json, sys; print(*json.load(sys.stdin)["history"])'
}

start_api
configure "$(pool p)" "$far"
ok set lanes 1
stay_lost
ok map "$TMP/p" $MIB
ok put 0 $MIB 1
ok open 1
ok persist 0 0 64
hurt kill
ok put 0 64 2
ok persist 0 0 64
within $((OP_TIMEOUT + LATE))
ok stat 0
is replication 2
ok stat 1
is replication 0
ok put 0 64 3
ok persist 0 0 64
within $PROMPT
ok compare 1
same
heal

# The survivor knows of the lost one, not the other way round; also while the set is open.
lost=$(generation "$(pool p)")
newer=$(generation "$far")
[ -n "$lost" ] && [ "$lost" != "$newer" ] || lost "both have generation '$lost'"
[[ " $(history "$far") " == *" $lost "* ]] || lost "the survivor does not descend from the lost"
[[ " $(history "$(pool p)") " != *" $newer "* ]] || lost "the lost replica has the newer one"
ok close
equal "$TMP/p" "$TMP/elsewhere/p"

# What is proven behind the file catches up.
configure "$(pool p)" "$far"
ok set lanes 1
stay_lost
ok open 0
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
[ "$(generation "$(pool p)")" = "$(generation "$far")" ] || fail "not one set again"

# Lost again; then the writer's machine is lost too and somebody goes on with the lost replica.
ok open 0
hurt kill
ok put 0 64 4
ok persist 0 0 64
ok close
heal
cp "$TMP/serve/pools/p" "$TMP/old"
configure "$(pool p)"
ok set lanes 1
stay_lost
ok map "$TMP/old" $MIB
ok open 0
ok put 0 64 5
ok persist 0 0 64
ok close
configure "$far"
refused REPL_E_DIVERGED "nothing was changed" open 0
equal "$TMP/p" "$TMP/elsewhere/p"
configure "$(pool p)"
ok map "$TMP/p" $MIB
refused REPL_E_DIVERGED "nothing was changed" open 0
equal "$TMP/old" "$TMP/serve/pools/p"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# What is stored after a pause is recorded does not come into the replica, also by a drain that was amid reading it then: what
# was durable before is not there either.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
cat >"$TMP/repl.conf" <<EOC
[repl]
identity = $TMP/key
known-hosts = $TMP/known_hosts
target = $(pool p)
lanes = 2
on-loss = degrade
op-timeout = $OP_TIMEOUT
EOC

said() {
	grep -q . "$TMP/load.out" && { grep -q "$1" "$TMP/load.out" || ! kill -0 "$load" 2>/dev/null; }
}

# byte OFFSET: of the replica.
byte() {
	od -An -tu1 -j "$1" -N 1 "$TMP/serve/pools/p" | tr -d ' '
}

REPL_CONFIG=$TMP/repl.conf "$BUILD/tests/integration/pause_amid" "$TMP/p" >"$TMP/load.out" 2>"$TMP/load.log" &
load=$!
PIDS="$load $PIDS"
wait_for 40 said amid || fail "not amid a drain"
ctl pause "$TMP/p" "$(pool p)" || fail "pause"
wait_for 40 said "done" || fail "the program hangs"
grep -q "done" "$TMP/load.out" || fail "$(cat "$TMP/load.out")"
wait_for 20 no_sessions || fail "the session stays"
[ "$(byte 0)" = 0 ] || fail "the first was not stored after the pause"
[ "$(byte $((MIB / 2 + 4096)))" = 0 ] || lost "what came after it is there, without what was durable before"

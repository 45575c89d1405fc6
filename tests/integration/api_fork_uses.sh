# SPDX-License-Identifier: BSD-3-Clause
# A child that goes on with its parent's handle, or only ends by exit(3), is refused and ends; its parent's replica stays as it is.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
{
	echo "[repl]"
	echo "identity = $TMP/key"
	echo "known-hosts = $TMP/known_hosts"
	echo "heartbeat-interval = 50"
	echo "op-timeout = $OP_TIMEOUT"
	echo "target = $(pool used)"
} >"$TMP/repl.conf"
# A child has not the threads whose memory would be looked through.
ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 REPL_CONFIG=$TMP/repl.conf timeout -k 5 150 "$BUILD/tests/integration/fork_uses" "$TMP/used" >"$TMP/out" 2>&1 ||
	fail "ends with $?: $(cat "$TMP/out")"
wait_for 10 no_sessions || fail "the session stays"
! grep -q "not known to be complete" "$TMP/serve.log" || fail "it was not closed in order"
equal "$TMP/used" "$TMP/serve/pools/used"

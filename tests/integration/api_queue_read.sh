# SPDX-License-Identifier: BSD-3-Clause
# Threads that read from a queued replica without end keep nothing from it: no drain waits longer for it than a read takes, and none is lost.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
{
	echo "[repl]"
	echo "identity = $TMP/key"
	echo "known-hosts = $TMP/known_hosts"
	echo "op-timeout = $OP_TIMEOUT"
	echo "target = $(pool read-a)"
	echo "async-target = $(pool read-b)"
	echo "async-lag-bytes = 1M"
} >"$TMP/repl.conf"
REPL_CONFIG=$TMP/repl.conf timeout -k 5 150 "$BUILD/tests/integration/queue_read" "$TMP/read" \
	>"$TMP/out" 2>&1 || fail "ends with $?: $(cat "$TMP/out")"
equal "$TMP/read" "$TMP/serve/pools/read-a"
equal "$TMP/read" "$TMP/serve/pools/read-b"

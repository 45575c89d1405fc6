# SPDX-License-Identifier: BSD-3-Clause
# A target that bears silence for less than a second hears from replctl bench as often as it asks for.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve "heartbeat = 100" "heartbeat-timeout = 950"
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" bench --size 4M --quick --seconds 3 \
	"$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" 2>&1 || fail "bench: $(cat "$TMP/out")"

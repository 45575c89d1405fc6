# SPDX-License-Identifier: BSD-3-Clause
# A target that bears silence for less than a second hears from whoever opens a pool as often as it asks for, while another
# target takes its time.
. "$(dirname "$0")/api_lib.sh"

printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
cat >"$TMP/slow.py" <<'PYTHON'
import json, sys, time
for line in sys.stdin:
    if json.loads(line)["method"] in ("pool.hash", "journal.begin"):
        time.sleep(1.5)
    print(line, end="", flush=True)
PYTHON
printf '#!/bin/sh\npython3 "%s" | "%s" session --config "%s" | cat\n' \
	"$TMP/slow.py" "$REPLD" "$TMP/session.conf" >"$TMP/slow"
chmod 755 "$TMP/slow"

make_keys
start_serve_with "$TMP/slow"
SLOW=$(pool slow)
start_serve "heartbeat = 100" "heartbeat-timeout = 950"

# opens FLAG: with both, and neither was away.
opens() {
	ok open "$1"
	for replica in 0 1; do
		ok stat "$replica"
		is replication 0
		is error 0
		is reconnect 0
	done
	ok persist 0 0 100
}

start_api
configure "$SLOW" "$(pool p)"
ok set on-loss fail
ok set connect-timeout 20000
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1
opens 1
ok close
ok put $MIB 10000 2
opens 0
equal "$TMP/p" "$TMP/serve/pools/p"
equal "$TMP/p" "$TMP/serve/pools/slow"
stop_api

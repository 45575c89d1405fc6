# SPDX-License-Identifier: BSD-3-Clause
# A target that takes longer than op-timeout for its requests, and less than connect-timeout, is opened, filled, caught up and grown.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=300

# In repld's place: answers to what is asked of an open pool are late.
printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
cat >"$TMP/slow.py" <<'PYTHON'
import json, sys, time
SLOW = "pool.grow", "pool.mark", "pool.hash", "journal.begin", "journal.commit"
for line in sys.stdin:
    if json.loads(line)["method"] in SLOW:
        time.sleep(0.5)
    print(line, end="", flush=True)
PYTHON
# What is in between leaves the connection's descriptors as they are.
printf '#!/bin/sh\npython3 "%s" | "%s" session --config "%s" | cat\n' \
	"$TMP/slow.py" "$REPLD" "$TMP/session.conf" >"$TMP/slow"
chmod 755 "$TMP/slow"

# open_slowly [FLAG]: the replica is there at once, not later by its keeper.
open_slowly() {
	ok open "$@"
	ok stat 0
	is error 0
	is data 0
}

make_keys
start_serve_with "$TMP/slow"
start_api
configure "$(pool p)"
ok set lanes 1
ok set connect-timeout 20000
ok map "$TMP/p" $((4 * MIB))
ok put 0 $((4 * MIB)) 1
open_slowly 1
ok close
ok put $MIB 10000 2
open_slowly 0
equal "$TMP/p" "$TMP/serve/pools/p"
ok close
ok map "$TMP/p" $((8 * MIB))
ok put $((6 * MIB)) 10000 3
open_slowly 0
equal "$TMP/p" "$TMP/serve/pools/p"
api close
stop_api

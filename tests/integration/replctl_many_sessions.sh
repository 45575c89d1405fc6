# SPDX-License-Identifier: BSD-3-Clause
# Of more sessions than one answer has room for `replctl status` tells each, once.
. "$(dirname "$0")/lib.sh"
start_target "sessions-max = 1000"
ctl list "$T" >/dev/null || fail "list"

# Entries as sessions make them, and the locks that say that they live.
COUNT=500
python3 -c '
import fcntl, json, os, struct, sys, time
registry, count, first = sys.argv[1], int(sys.argv[2]), 10
axes = {"connection": "connected", "replication": "established", "data": "up-to-date"}
numbers = ["lag_bytes", "lag_ms", "dirty_bytes", "resync_total", "resync_done", "resync_rate"]
slots = os.open(registry + "/sessions", os.O_RDWR)
lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 8 * first, 8 * count, 0)
fcntl.fcntl(slots, 37, lock)  # F_OFD_SETLK
for i in range(first, first + count):
    entry = {"session": "%d-0000abcd" % i, "pid": 1, "peer": "user@a.host.example pid %d" % i,
             "since": 1, "pool": "a/pool/%d" % i, "mode": "write", "overrides": [], "lanes": 4,
             "report": {**axes, "reason": "none", "paused": False, **{n: 0 for n in numbers}},
             "commits": 1, "commit_bytes": 64, "write_bytes": 0, "last_commit": 1,
             "method": "message, large ranges general-purpose", "provider": "tcp"}
    with open("%s/%d.json" % (registry, i), "w") as f:
        json.dump(entry, f)
print("ready", flush=True)
time.sleep(100)
' "$TMP/serve/pools/.repld" "$COUNT" >"$TMP/ready" &
PIDS="$PIDS $!"
wait_for 10 test -s "$TMP/ready" || fail "no sessions"
ctl status --json "$T" >"$TMP/out" 2>"$TMP/err" || fail "status: $(cat "$TMP/err")"
python3 -c '
import json, sys
pools = [s["pool"] for s in json.load(open(sys.argv[1]))["sessions"]]
sys.exit("%d sessions, %d pools" % (len(pools), len(set(pools)))
         if len(pools) != int(sys.argv[2]) or len(set(pools)) != len(pools) else 0)
' "$TMP/out" "$COUNT" || fail "not all sessions"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# With on-loss = block an unmodified program makes nothing durable without replicas from its beginning on, and what can't be
# one is refused before it.
. "$(dirname "$0")/run_lib.sh"
start_target

# Without a target it waits with on-loss = block, and makes nothing durable before that is there, if ever.
port=$(free_port)
with never "--replica nobody@127.0.0.1:$port/n --set on-loss=block --set block-timeout=300" pmem
wait "$PID"
status=$?
[ $status -eq 134 ] || fail "without replicas, on-loss = block: $status: $(cat "$TMP/never.out")"
told never 2 "NOT REPLICATED.*127.0.0.1:$port"
printf '[repl]\non-loss = block\n' >"$TMP/block.conf"
with late "--config $TMP/block.conf --replica $SERVE_USER@127.0.0.1:$port/late" pmem
wait_for 5 grep -q "NOT REPLICATED, waiting" "$TMP/late.out" || fail "not told: $(cat "$TMP/late.out")"
gone "$PID" && fail "it goes on without a replica"
late=$PID
# Its configuration is that of its start: what another program has in the file now is no replica of this pool.
echo "target = $SERVE_USER@127.0.0.1:$port/others" >>"$TMP/block.conf"
trust "$port" "$TMP/serve_host_key.pub"
SERVE_AT=$port start_serve
wait "$late" || fail "late ends with $?: $(cat "$TMP/late.out")"
told late 1 "is replicated now"
ctl verify "$TMP/late" "$T/late" >/dev/null || lost "its replica is not equal"
ctl_fails 3 "not found" info "$T/others"

# What can't be a replica is refused before the program runs.
for set in target async-target; do
	ctl_fails 2 "'$T/s' is there already" run --set "$set=$T/s" --replica "$T/s" --pool "$TMP/s" -- true
done
# shellcheck disable=SC2046
ctl_fails 2 "17 replicas, 16 are allowed" run $(printf -- "--replica $T/%s " $(seq 17)) --pool "$TMP/s" -- true

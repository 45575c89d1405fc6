#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whoever runs an unmodified program is told of each loss of a replica, however it is named: at the end at the latest, and
# once more when it had come back.
. "$(dirname "$0")/run_lib.sh"
start_target

established() {
	ctl status "$1" | grep -A 1 "$2\$" | grep -q "^state.* established"
}

# Those that --set names, while it runs; one that comes back and is lost once more, twice.
with set "--replica $T/set --set async-target=$T/async --set target=$T/more --set reconnect-max=200" until
set=$PID
# Lost a moment before the end, under a name that a shell takes for more.
with end "--replica $T/it's" until
end=$PID
wait_for 20 grep -q '^2$' "$TMP/set.out" || fail "does not begin: $(cat "$TMP/set.out")"
ctl pause "$TMP/set" "$T/async" >/dev/null || fail "pause"
ctl pause "$TMP/set" "$T/more" >/dev/null || fail "pause"
wait_for 5 grep -q "REPLICA $T/more LOST" "$TMP/set.out" || fail "not told: $(cat "$TMP/set.out")"
ctl resume "$TMP/set" "$T/async" >/dev/null || fail "resume"
wait_for 5 established "$TMP/set" "$T/async" || fail "it does not come back: $(ctl status "$TMP/set")"
sleep 0.6
ctl pause "$TMP/set" "$T/async" >/dev/null || fail "pause"
ctl pause "$TMP/end" >/dev/null || fail "pause"
touch "$TMP/end.enough" "$TMP/set.enough"
wait "$end" || fail "it ends with $?"
told end 1 "REPLICA $T/it's LOST: paused"
(eval "$(sed -n 's/.*next: replctl why /ctl why /p' "$TMP/end.out")") >"$TMP/why.log" 2>&1 ||
	fail "the next step: $(cat "$TMP/end.out" "$TMP/why.log")"
grep -q "^what .*$T/it's$" "$TMP/why.log" || fail "why of another: $(cat "$TMP/why.log")"
wait "$set" || fail "it ends with $?"
told set 2 "REPLICA $T/async LOST: paused.*; next: replctl why $T/async$"
told set 1 "REPLICA $T/more LOST: paused.*; next: replctl why $T/more$"

# SPDX-License-Identifier: BSD-3-Clause
# A replica whose journal is committed and not brought in yet has more than its generation tells: newest does not judge it
# by that, and says why.
. "$(dirname "$0")/fault.sh"
start_target
T=$target
cd "$TMP" || exit 1
mkfifo hold
timeout 60 "$BUILD/tests/fault/stage_load" -i "$TMP/key" -k "$TMP/known_hosts" hold "$T/p" 1048576 1 1 5 \
	<hold >load.out 2>load.err &
load=$!
PIDS="$PIDS $load"
exec 3>hold
committed() {
	grep -qx "committed 5" load.out
}
wait_for 20 committed || fail "nothing is committed: $(cat load.err)"
ctl info --json "$T/p" | member journal | grep -qx committed || fail "info: $(ctl info --json "$T/p")"
ctl_fails 4 "journal of a resync is being brought in" newest "$T/p"
exec 3>&-
wait "$load" || fail "the load failed: $(cat load.err)"
ctl newest "$T/p" >out 2>&1
grep -q "journal" out && fail "it is brought in: $(cat out)"
grep -q "00000000-0000-0000-0000\|outdated" out || fail "$(cat out)"

# SPDX-License-Identifier: BSD-3-Clause
# Who uses a file that is restored where there was none, before restore has written its record, keeps the record that is his.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"
cp pool first
cp pool.repl late
head -c 8 /dev/urandom | dd of=pool bs=1 seek=5000 conv=notrunc status=none
ctl sync pool "$T/p" >/dev/null || fail "sync of a change"
cp late saved
rm pool pool.repl

REPLCTL=$BUILD/tests/integration/replctl_late
export LATE="$TMP/late"
ctl_fails 4 "pool is restored, and a program has used it since" restore "$T/p" pool
cmp -s pool.repl saved || lost "the record of another was written over"
cmp -s pool serve/pools/p || lost "not restored"

# Where nobody comes in between it is the replica's.
unset LATE
ctl restore --force "$T/p" pool >/dev/null || fail "restore"
[ "$(ctl sync --json pool "$T/p" | member moved)" = 0 ] || fail "sync after restore"

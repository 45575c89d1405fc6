# SPDX-License-Identifier: BSD-3-Clause
# A libpmemobj pool that was synced, lost and restored is one that pmempool finds whole.
. "$(dirname "$0")/lib.sh"
command -v pmempool >/dev/null || exit 77
start_target
cd "$TMP" || exit 1
pmempool create obj --layout test --size 16M pool >/dev/null || fail "pmempool create"
ctl sync pool "$T/p" >/dev/null || fail "sync"
cp pool saved
rm pool pool.repl
ctl restore "$T/p" pool >/dev/null || fail "restore"
cmp -s pool saved || lost "restored data differ"
pmempool check pool >out 2>&1 || lost "pmempool check: $(cat out)"

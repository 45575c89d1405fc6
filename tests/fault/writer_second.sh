# SPDX-License-Identifier: BSD-3-Clause
# A second writer is refused at once and told who holds the pool; the first does not notice.
. "$(dirname "$0")/fault.sh"
start_target
start_victim
cp "$TMP/serve/pools/victim.pool" "$TMP/second.pool"
if timeout 10 "$LEDGER" write "$TMP/second.pool" "$target/victim.pool" identity="$TMP/key" \
	known-hosts="$TMP/known_hosts" >"$TMP/out" 2>"$TMP/err"; then
	fail "two writers"
fi
grep -Eq "open for writing by .*pid $VICTIM_PID|pid $VICTIM_PID" "$TMP/err" ||
	fail "the holder is not named: $(cat "$TMP/err")"
[ -s "$TMP/out" ] && fail "the second writer wrote"
check_victim

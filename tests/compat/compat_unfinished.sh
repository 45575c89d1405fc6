# SPDX-License-Identifier: BSD-3-Clause
# A replica into which a copy was begun and not finished gives nothing to pmempool sync; the next writer finishes it.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "16M rem.part"
local_set rem.set
make_pool
filled=$(fill 50) || exit 1

# As a writer leaves it that was killed over the copy before its first write.
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"rem.set","mode":"write"}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"inconsistent"}}'
	echo '{"jsonrpc":"2.0","id":4,"method":"pool.close"}'
	echo '{"jsonrpc":"2.0","id":5,"method":"bye"}'
} | client cat "$T" >"$TMP/out" 2>&1
ctl info "$T/rem.set" | grep -q "^state *inconsistent" || fail "$(cat "$TMP/out")"

mv "$TMP/part0" "$TMP/saved"
pmdk_fails "was begun and not finished" pmempool sync "$TMP/local.set"
mv "$TMP/saved" "$TMP/part0"
found=$(walk) || exit 1
[ "$found" = "$filled" ] || lost "'$found' in place of '$filled'"
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "$(ctl info "$T/rem.set")"
lose_and_sync "$filled"

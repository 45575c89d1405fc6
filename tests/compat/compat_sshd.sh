# SPDX-License-Identifier: BSD-3-Clause
# Two replicas behind OpenSSH, each started by its own command of RPMEM_CMD, are kept and both can give the pool back.
. "$(dirname "$0")/compat_lib.sh"
two_targets

make_pool
filled=$(fill 50) || exit 1
for i in 1 2; do
	[ "$(stat -c %s "$TMP/pools$i/part")" = 16777216 ] || fail "no part $i"
done

# Without the first replica, of which sync says so, the second one has all.
printf x | dd of="$TMP/pools1/part" bs=1 seek=30 conv=notrunc 2>/dev/null
lose_and_sync "$filled"
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
[ ! -e "$TMP/pools1/part" ] && [ ! -e "$TMP/pools2/part" ] || fail "parts are left"

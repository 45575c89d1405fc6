# SPDX-License-Identifier: BSD-3-Clause
# Two replicas behind OpenSSH, each started by its own command of RPMEM_CMD, are kept and both can give the pool back.
. "$(dirname "$0")/compat_lib.sh"
make_keys
start_sshd
for i in 1 2; do
	mkdir -m 700 "$TMP/pools$i"
	printf '[repld]\npool-dir = %s\n' "$TMP/pools$i" >"$TMP/repld$i.conf"
	printf 'PMEMPOOLSET\n16M part\n' >"$TMP/pools$i/set$i"
done
printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$TMP/key" "$TMP/known_hosts" >"$TMP/repl.conf"
at=$USER_NAME@127.0.0.1:$SSHD_PORT
printf 'PMEMPOOLSET\n16M %s\nREPLICA %s set1\nREPLICA %s set2\n' "$TMP/part0" "$at" "$at" \
	>"$TMP/local.set"
RPMEM_CMD="$REPLD session --config $TMP/repld1.conf|$REPLD session --config $TMP/repld2.conf"
export RPMEM_CMD

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

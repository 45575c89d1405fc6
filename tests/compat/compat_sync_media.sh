# SPDX-License-Identifier: BSD-3-Clause
# What pmempool sync has brought back from a replica is on media when it returns, and what the local part has is when a
# program has made the replica equal to it: after a power cut the part is not behind what its replica is called.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
KEEPS=$BUILD/tests/integration/keeps_synced.so
[ -e "$KEEPS" ] || fail "no $KEEPS"
start_compat
target_set rem.set "16M rem.part"

# kept PART COMMAND...: what is durable of it after the command is in PART.media
kept() {
	rm -f "$1.media"
	SYNCED=$1 LD_PRELOAD=$KEEPS pmdk "${@:2}" >"$TMP/out" 2>&1 || fail "${*:2}: $(cat "$TMP/out" "$TMP/rpmem.log")"
}

on_media() {
	tail -c +4097 "$1" | cmp - <(tail -c +4097 "$1.media") >"$TMP/out" 2>&1 || lost "$2: $(cat "$TMP/out")"
}

local_set rem.set
make_pool
filled=$(fill 50) || exit 1
rm "$TMP/part0"
kept "$TMP/part0" pmempool sync "$TMP/local.set"
on_media "$TMP/part0" "what sync has brought back"
[ "$(walk)" = "$filled" ] || lost "not what was filled"

# Somebody has written it, and not synced it.
head -c 65536 /dev/urandom | dd of="$TMP/part0" bs=1M seek=12 conv=notrunc 2>/dev/null
kept "$TMP/part0" "$FILL" check "$TMP/local.set" test
cmp -i $((12 << 20)) -n 65536 "$TMP/part0" "$TMP/part0.media" >"$TMP/out" 2>&1 ||
	lost "what the replica is said to have is not durable here: $(cat "$TMP/out")"

# So where a replica is made, and filled from it.
ctl remove --force "$T/rem.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
head -c 65536 /dev/urandom | dd of="$TMP/part0" bs=1M seek=13 conv=notrunc 2>/dev/null
kept "$TMP/part0" pmempool sync "$TMP/local.set"
cmp -i $((13 << 20)) -n 65536 "$TMP/part0" "$POOLS/rem.part" >"$TMP/out" 2>&1 || lost "it is not filled: $(cat "$TMP/out")"
on_media "$TMP/part0" "what the replica was filled from"

# Of two parts.
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>&1 || fail "rm: $(cat "$TMP/out")"
printf 'PMEMPOOLSET\n8M %s\n8M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$TMP/part1" "$T" >"$TMP/local.set"
make_pool
filled=$(fill 6000) || exit 1
for i in 0 1; do
	rm "$TMP"/part[01]
	kept "$TMP/part$i" pmempool sync "$TMP/local.set"
	on_media "$TMP/part$i" "what sync has brought back of part $i"
done
[ "$(walk)" = "$filled" ] || lost "not what was filled"

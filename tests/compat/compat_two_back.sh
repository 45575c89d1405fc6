# SPDX-License-Identifier: BSD-3-Clause
# Of two replicas each is lost in turn while the program runs, and back: then it has what the other one has, and
# when that one is lost for good, all that was acknowledged.
. "$(dirname "$0")/compat_lib.sh"
two_targets
make_pool

is_told() {
	[ "$(grep -c "set$1: $2" "$TMP/err")" -ge "$3" ]
}

lose() {
	target_sessions_kill "$1"
	wait_for 20 is_told "$1" "REPLICA LOST" "$2" || fail "no word of the loss: $(cat "$TMP/err")"
}

paced_start
for i in 1 2; do
	lose $i 1
	wait_for 30 is_told $i "the replica is back" 1 || fail "it is not back: $(cat "$TMP/err")"
done
mv "$TMP/repld1.conf" "$TMP/repld1.away"
lose 1 2
paced_kill
mv "$TMP/repld1.away" "$TMP/repld1.conf"
wait_for 15 target_idle 2 || fail "its session does not end"

rm "$TMP/part0"
pmdk_fails "set1 .*behind.*set2.*replctl remove --force" pmempool sync "$TMP/local.set"
target_ctl 1 remove --force "$(target_pool 1)" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
has_told "$told"

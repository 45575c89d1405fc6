#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Whatever a program does to its file and its mappings, the replica has what was persisted.
. "$(dirname "$0")/run_lib.sh"
start_target

for mode in grow outgrow longer part protect fixed nodrain moves over renamed page beyond linked aliased hidden adrift drifts stays paged locked steps unnamed; do
	odd "$mode"
done
ON_LOSS=degrade odd unknown '^[^:]*: [^ ]*/unknown: bytes 1048576 to 1052672 .*: NOT REPLICATED; next: let that path name the file, [^:]*$'
ON_LOSS=degrade odd unknown_odd '^[^:]*: [^ ]*/unknown_odd: bytes 1048776 to 1048876 .*: NOT REPLICATED; next: let that path name the file, [^:]*$'
odd last clean
odd crowded '^[^:]*: [^ ]*/crowded: opening it: Too many open files: .* it is looked at again .*/crowded: .* is followed now$'
odd lastc11
EARLY_POOL=$TMP/early odd early
mkdir "$TMP/directory.d"
odd directory '' "$TMP/directory.d/pool"
odd recreate 'recreate is another file'
odd replaced 'replaced is another file'
odd reopened
odd anew
for mode in cutaway emptied; do
	odd $mode "^[^:]*: [^ ]*/$mode: it was made shorter [^:]*\$"
done
for mode in regrown punched; do
	# Not each file system takes bytes out of the middle.
	odd $mode "^$|^[^:]*: [^ ]*/$mode: it was made shorter [^:]*$"
done
(run "$TMP/resized" resized timeout -k 5 40 env SIZE_FAILS=786432 \
	LD_PRELOAD="$BUILD/tests/integration/size_fails.so:$BUILD/librepl-preload.so" \
	"$BUILD/tests/integration/pmem_odd" resized "$TMP/resized") >"$TMP/out" 2>&1 ||
	fail "resized ends with $?: $(cat "$TMP/out")"
wait_for 10 pool_idle resized || fail "resized is still open"
ctl verify "$TMP/resized" "$T/resized" >"$TMP/verify.log" 2>&1 || lost "resized: $(cat "$TMP/verify.log" "$TMP/out")"
# Said once, whatever is called how often; of another file nothing.
odd fsync '^[^:]*: [^ ]*/fsync: fsync\(2\) .*msync\(2\)[^:]*$'

# No replica follows a file that gets shorter, but of what is left it has all, and the program lives.
for mode in shrink:524288 cut:262144; do
	size=${mode#*:}
	mode=${mode%:*}
	(run "$TMP/$mode" $mode timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" $mode "$TMP/$mode") \
		>"$TMP/out" 2>&1 || fail "$mode ends with $?: $(cat "$TMP/out")"
	[ "$(stat -c %s "$TMP/$mode")" = "$size" ] || fail "$mode does not"
	wait_for 10 pool_idle $mode || fail "$mode is still open"
	cmp -n "$size" "$TMP/$mode" "$TMP/serve/pools/$mode" >&2 || lost "what is left differs"
done
grep -q 'made shorter' "$TMP/out" || fail "it says: $(cat "$TMP/out")"

# Nor does it by another program, between flush and drain, be that the last one: the program lives, and it is told that the
# replica can't be made equal to what is left.
for mode in cutby cutlast; do
	(ON_LOSS=degrade run "$TMP/$mode" $mode timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" $mode "$TMP/$mode") \
		>"$TMP/out" 2>&1 || fail "$mode ends with $?: $(cat "$TMP/out")"
	[ "$(stat -c %s "$TMP/$mode")" = 262144 ] || fail "$mode: it is not cut"
	grep -q "/$mode: byte 524387 of it can't be read: its replicas are compared with it" "$TMP/out" &&
		grep -q "/$mode: .*NOT REPLICATED: .* of a pool of 1048576 bytes, the pool has 262144" "$TMP/out" ||
		lost "$mode says: $(cat "$TMP/out")"
done

# Whose file it is nobody can say then, which is said once.
mkdir "$TMP/denied"
(ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 run "$TMP/denied/pool" denied timeout -k 5 40 \
	"$BUILD/tests/integration/pmem_odd" denied "$TMP/denied/pool") >"$TMP/out" 2>&1 || fail "denied ends with $?: $(cat "$TMP/out")"
chmod 700 "$TMP/denied"
[[ $(cat "$TMP/out") =~ ^[^:]*:\ [^:]*/denied/pool:\ Permission\ denied:\ [^:]*NOT\ REPLICATED[^:]*:\ [^:]*$ ]] ||
	fail "denied says: $(cat "$TMP/out")"

# A pool's name stays its own where that was a link. What it is given to has no record of the replica's, which is told.
mkdir "$TMP/far"
truncate -s 1M "$TMP/far/file"
ln -s far/file "$TMP/realiased"
(ON_LOSS=degrade run "$TMP/realiased" realiased timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" realiased "$TMP/realiased") \
	>"$TMP/out" 2>&1 || fail "realiased ends with $?: $(cat "$TMP/out")"
grep -q '/realiased is another file now: ' "$TMP/out" && grep -q '/realiased: NOT REPLICATED: ' "$TMP/out" ||
	lost "of another file by its name, which has no replica, it says: $(cat "$TMP/out")"

# Two names of one file are one pool's, with the replicas of both.
truncate -s 1M "$TMP/far/two"
ln -s far/two "$TMP/two"
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --set on-loss=fail --replica "$T/two.a" \
	--pool "$TMP/far/two" --replica "$T/two.b" --pool "$TMP/two" -- \
	timeout -k 5 40 "$BUILD/tests/integration/pmem_odd" part "$TMP/two" >"$TMP/out" 2>&1 || fail "two ends with $?: $(cat "$TMP/out")"
for name in two.a two.b; do
	wait_for 10 pool_idle $name || fail "$name is still open"
	ctl verify "$TMP/two" "$T/$name" >"$TMP/verify.log" 2>&1 || lost "$name: $(cat "$TMP/verify.log" "$TMP/out")"
done

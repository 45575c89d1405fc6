#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Pools of any size, from one byte on: what comes back has every byte and none more, where it is restored and where it is promoted.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1

size_of() {
	stat -c %s "$1"
}

# equal_size FILE SIZE
equal_size() {
	[ "$(size_of "$1")" -eq "$2" ] || lost "$1 has $(size_of "$1") bytes of $2"
}

for size in 1 4097 5000 10000001; do
	head -c $size /dev/urandom >"f$size"
	ctl sync "f$size" "$T/p$size" >out 2>&1 || fail "sync of $size bytes: $(cat out)"
	equal_size "serve/pools/p$size" $size
	equal "f$size" "serve/pools/p$size"
	ctl verify "f$size" "$T/p$size" >out 2>&1 || lost "verify of $size bytes: $(cat out)"
	ctl restore "$T/p$size" "back$size" >out 2>&1 || fail "restore of $size bytes: $(cat out)"
	equal_size "back$size" $size
	equal "f$size" "back$size"
	ctl info --json "$T/p$size" >out || fail "info of $size bytes"
	grep -q "\"size\": *$size\b" out || fail "info says: $(cat out)"
done

# The last byte is compared and brought.
printf '\377' | dd of=f5000 bs=1 seek=4999 conv=notrunc status=none
cp f5000 want
dd if=back5000 of=was bs=1 skip=4999 status=none
[ "$(od -An -tx1 was)" != " ff" ] || printf '\376' | dd of=f5000 bs=1 seek=4999 conv=notrunc status=none
ctl verify f5000 "$T/p5000" >out 2>&1 && fail "the last byte is not compared"
ctl sync f5000 "$T/p5000" >out 2>&1 || fail "sync of the last byte: $(cat out)"
equal f5000 serve/pools/p5000

# As long as it was, too, by a restore that goes on with what is longer, or over a shorter file.
head -c 9000 /dev/urandom >longer.restoring
ctl restore "$T/p5000" longer >out 2>&1 || fail "restore that goes on with a longer one: $(cat out)"
equal f5000 longer
head -c 9000 /dev/urandom >longer
cp longer was
ctl restore --force "$T/p5000" longer >out 2>&1 && fail "restore over a longer one"
equal longer was
printf x >shorter
ctl restore --force "$T/p5000" shorter >out 2>&1 || fail "restore over a shorter one: $(cat out)"
equal f5000 shorter

# A file that grows, within its last page, to its end, and beyond.
size=5000
for next in 5001 8192 8193 20000; do
	head -c $((next - size)) /dev/urandom >>f5000
	ctl grow "$T/p5000" --size $next >out 2>&1 || fail "from $size to $next bytes: $(cat out)"
	ctl sync f5000 "$T/p5000" >out 2>&1 || fail "sync of $size bytes that are $next: $(cat out)"
	equal_size serve/pools/p5000 $next
	equal f5000 serve/pools/p5000
	size=$next
done
ctl grow "$T/p1" --size 4098 >out 2>&1 || fail "grow: $(cat out)"
equal_size serve/pools/p1 4098

# Sparse, and made empty.
ctl create --sparse --size 1000003 "$T/sparse" >out 2>&1 || fail "create: $(cat out)"
equal_size serve/pools/sparse 1000003
truncate -s 1000003 sparse
printf 'the end' | dd of=sparse bs=1 seek=999996 conv=notrunc status=none
ctl sync sparse "$T/sparse" >out 2>&1 || fail "sync of a sparse one: $(cat out)"
equal sparse serve/pools/sparse

# Promoted it has its own size, and demoted it is brought up to date again.
ctl promote --force "$T/p4097" >out 2>&1 || fail "promote: $(cat out)"
equal_size serve/pools/p4097 4097
equal f4097 serve/pools/p4097
ctl demote "$T/p4097" >out 2>&1 || fail "demote: $(cat out)"

# A set has whole pages.
mkdir -p serve/pools/parts
printf 'PMEMPOOLSET\n2M part0\n' >serve/pools/set
chmod 644 serve/pools/set
ctl_fails 2 "10000001.*multiple of 4096.*set" sync f10000001 "$T/set"

# SPDX-License-Identifier: BSD-3-Clause
# Each function of the old ABI does what its manual said, also of what is wrong, and prints nothing.
OWN_PROGRAM=1
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set abi.set "4M $POOLS/abi.part"
target_set raw.set "OPTION NOHDRS" "4M raw.part"
RPMEM_SSH=/bin/false RPMEM_ENABLE_VERBS=1 pmdk "$BUILD/tests/compat/rpmem_abi" "$T" >"$TMP/out" 2>&1 ||
	fail "rpmem_abi: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "printed: $(cat "$TMP/out")"
grep -q "warning: .*abi.set (not used here: RPMEM_SSH, RPMEM_ENABLE_VERBS)" "$TMP/rpmem.log" ||
	fail "no warning: $(cat "$TMP/rpmem.log")"
[ "$(ls -A "$POOLS")" = ".repld" ] || fail "left: $(ls -A "$POOLS")"

# No connection has the number of a standard descriptor that the program has closed and writes to all the same.
target_set abi.set "4M abi.part"
pmdk "$BUILD/tests/compat/rpmem_abi" "$T" closed || fail "closed: $(cat "$TMP/rpmem.log")"

# A handle on less than all of a replica can't compare it: one that was not closed in order is lost to it, and that is told.
less() {
	pmdk "$BUILD/tests/compat/rpmem_abi" "$T" "$1" >"$TMP/out" 2>&1 || fail "$1: $(cat "$TMP/out" "$TMP/rpmem.log")"
}
target_set many.set "OPTION NOHDRS" "32M many.part"
less many
less less
[ "$(head -c 1 "$POOLS/many.part")" = l ] || lost "what was written to a part of one that was whole is not there"
mark_pool many.set outdated
: >"$TMP/rpmem.log"
dd if=/dev/zero of="$POOLS/many.part" bs=4096 count=1 conv=notrunc 2>/dev/null
less less
[ "$(head -c 1 "$POOLS/many.part" | tr -d '\0')" = "" ] || lost "what is not compared is written to"
grep -q "many.set: REPLICA LOST: .* 33554432 bytes, .* 4194304 .*pmempool sync" "$TMP/rpmem.log" ||
	lost "no word of it: $(cat "$TMP/rpmem.log")"
grep -q "the next program that opens the pool leaves it as it is" "$TMP/rpmem.log" ||
	lost "it is not said to stay so: $(cat "$TMP/rpmem.log")"
ctl info "$T/many.set" | grep -q "^state *outdated" || lost "it is called $(ctl info "$T/many.set")"
rm "$POOLS"/many.set*

# A small one has all of it again.
target_set small.set "OPTION NOHDRS" "2M small.part"
less small
[ "$(head -c 65536 "$POOLS/small.part" | tr -d s | wc -c)" = 0 ] || lost "what was written is not there"
mark_pool small.set outdated
less small
[ "$(head -c 65536 "$POOLS/small.part" | tr -d t | wc -c)" = 0 ] || lost "it is not brought up to date"
ctl info "$T/small.set" | grep -q "^state *up-to-date" || lost "it is called $(ctl info "$T/small.set")"
rm "$POOLS"/small.set* "$POOLS/small.part"

# Fewer lanes by the environment; nonsense there is an error.
target_set abi.set "4M abi.part"
target_set raw.set "OPTION NOHDRS" "4M raw.part"
: >"$TMP/rpmem.log"
RPMEM_MAX_NLANES=3 pmdk "$BUILD/tests/compat/rpmem_abi" "$T" >"$TMP/out" 2>&1 ||
	fail "rpmem_abi: $(cat "$TMP/out")"
grep -q "abi.set: created with 3 lanes" "$TMP/rpmem.log" || fail "$(cat "$TMP/rpmem.log")"
RPMEM_MAX_NLANES=x
export RPMEM_MAX_NLANES
pmdk_fails "RPMEM_MAX_NLANES='x' is no number" "$BUILD/tests/compat/rpmem_abi" "$T"

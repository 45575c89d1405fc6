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

# SPDX-License-Identifier: BSD-3-Clause
# Why a replica is not made, and what of the environment is not used, stands on standard error, unless the log is turned off or elsewhere.
. "$(dirname "$0")/compat_lib.sh"
start_compat
local_set rem.set
unset RPMEM_LOG_FILE RPMEM_LOG_LEVEL

create() {
	rm -f "$TMP/part0"
	pmdk env RPMEM_SSH=/x RPMEM_ENABLE_VERBS=1 "$@" pmempool create obj --layout=test "$TMP/local.set" >"$TMP/out" 2>"$TMP/err"
}

# words COUNT: so many lines of ours.
words() {
	[ "$(grep -c "^librpmem: " "$TMP/err")" -eq "$1" ] || fail "not $1 lines: $(cat "$TMP/err")"
}

! create A=b || fail "it is made without a set file on the target"
words 1
grep -q "^librpmem: create (not used here: RPMEM_SSH, RPMEM_ENABLE_VERBS): .*'rem.set': not found" "$TMP/err" || fail "it says: $(cat "$TMP/err")"
! create RPMEM_LOG_LEVEL=0 || fail "it is made without a set file on the target"
words 0
! create RPMEM_LOG_FILE="$TMP/words.log" || fail "it is made without a set file on the target"
words 0
grep -q "error: create .*'rem.set': not found" "$TMP/words.log" || fail "no word in the file: $(cat "$TMP/words.log")"
! create RPMEM_LOG_FILE="$TMP/no/words.log" || fail "it is made without a set file on the target"
words 1

target_set rem.set "16M rem.part"
create RPMEM_LOG_LEVEL=1 || fail "create: $(cat "$TMP/err")"
words 0
pmdk pmempool rm "$TMP/local.set" >"$TMP/out" 2>"$TMP/err" || fail "rm: $(cat "$TMP/err")"
create A=b || fail "create: $(cat "$TMP/err")"
words 1
grep -q "^librpmem: .*rem.set (not used here: RPMEM_SSH, RPMEM_ENABLE_VERBS)$" "$TMP/err" || fail "it says: $(cat "$TMP/err")"

# Nobody reads it, it is closed, or is the program's own data.
RPMEM_SSH=/x
export RPMEM_SSH
pmdk "$FILL" check "$TMP/local.set" test 2>&- >"$TMP/out" || fail "with standard error closed: $?"
: >"$TMP/data"
pmdk "$FILL" check "$TMP/local.set" test 2<>"$TMP/data" >"$TMP/out" || fail "with a file as standard error: $?"
[ ! -s "$TMP/data" ] || lost "words are in the program's own file: $(cat "$TMP/data")"

# SPDX-License-Identifier: BSD-3-Clause
# A lock that can't be had is told as what it is, and not as another program's, for which people would look in vain.
. "$(dirname "$0")/fails_lib.sh"

# fails_at NUMBER FILE ARG...: the lock that is taken as that one, on FILE.
fails_at() {
	export CALL_FAILS="flock $1"
	file=$2
	shift 2
	ctl_fails 1 "locking $file: No locks available" "$@"
	unset CALL_FAILS
}

start_target
head -c 1M /dev/urandom >"$TMP/file"
fails_at 1 "$TMP/file" sync "$TMP/file" "$T/p"
fails_at 2 "$TMP/file.repl" sync "$TMP/file" "$T/p"
ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
fails_at 1 "$TMP/new.restoring" restore "$T/p" "$TMP/new"
echo old >"$TMP/other"
fails_at 1 "$TMP/other" restore --force "$T/p" "$TMP/other"
[ "$(cat "$TMP/other")" = old ] || fail "the file was replaced"

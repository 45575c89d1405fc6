# SPDX-License-Identifier: BSD-3-Clause
# A replctl that finds no memory for a part of what it asks for or shows says so, and shows none that lacks it.
. "$(dirname "$0")/fails_lib.sh"

# short "KIND..." WORD...: each object or array that is made fails once, till there are no more.
short() {
	kinds=$1
	shift
	for what in $kinds; do
		nth=1
		while :; do
			export CALL_FAILS="$what $nth"
			ctl "$@" >"$TMP/out" 2>"$TMP/err"
			status=$?
			unset CALL_FAILS
			[ $status -ne 0 ] || break
			[ $status -eq 1 ] || fail "$what $nth, $*: exit $status: $(cat "$TMP/err")"
			grep -q "memory" "$TMP/err" || fail "$what $nth, $*: $(cat "$TMP/err")"
			[ $nth -lt 20 ] || fail "$what: all of them fail"
			nth=$((nth + 1))
		done
		[ $nth -gt 1 ] || fail "$what, $*: none of them fails"
		cmp "$TMP/all" "$TMP/out" || lost "$what $nth, $*: it shows less"
	done
}

start_target
head -c 64K /dev/urandom >"$TMP/file"
ctl sync "$TMP/file" "$T/p" 2>"$TMP/err" || fail "sync: $(cat "$TMP/err")"
ctl --json list "$T" >"$TMP/all" || fail "list"
short array --json list "$T"
ctl status "$T" >"$TMP/all" || fail "status"
short "object array" status "$T"

# SPDX-License-Identifier: BSD-3-Clause
# A sync that can't read FILE, or can't keep the record beside it, has a next step that looks at this machine's disk.
. "$(dirname "$0")/fails_lib.sh"

start_target
head -c 4M /dev/urandom >"$TMP/file"
# sync CALL PATTERN
sync() {
	change "$TMP/file" 5000
	export CALL_FAILS="$1"
	ctl_fails 1 "$2: Input/output error" sync "$TMP/file" "$T/p"
	unset CALL_FAILS
	grep -q "^next: look at this machine's kernel log, then replctl .* sync $TMP/file $T/p " "$TMP/err" ||
		fail "$1: $(cat "$TMP/err")"
	ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 || fail "again: $(cat "$TMP/out")"
	cmp "$TMP/file" "$TMP/serve/pools/p" || lost "$1: it differs"
}
sync "fsync 2" "file.repl: syncing the directory of .*"
sync "pread 9" "reading the local file"

# SPDX-License-Identifier: BSD-3-Clause
# A sync that can't read FILE, or can't keep the record beside it, has a next step that looks at this machine's disk; behind one
# whose sync of FILE itself has failed `why FILE` tells of that, and starts no program on it.
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

# Where FILE itself can't be synced, it may have lost what its replicas have: it is not its program that goes on next.
change "$TMP/file" 5000
export CALL_FAILS="fsync 1"
ctl_fails 1 "syncing $TMP/file: Input/output error" sync "$TMP/file" "$T/p"
unset CALL_FAILS
in_doubt() {
	ctl why "$TMP/file" >"$TMP/out" 2>&1 || fail "why: $(cat "$TMP/out")"
	tr -s ' \n' ' ' <"$TMP/out" >"$TMP/words"
	grep -q "the file may lack what its replicas have evidence.* or a sync of the file has failed" "$TMP/words" || fail "not told: $(cat "$TMP/out")"
	grep -q "next replctl [^;]*newest TARGET/POOL" "$TMP/words" || fail "no next step: $(cat "$TMP/out")"
	grep -q "start the program\|program that replicates it has ended" "$TMP/out" && lost "it is started: $(cat "$TMP/out")"
}
in_doubt
ctl_fails 4 "a sync of the file has failed" sync "$TMP/file" "$T/p"
in_doubt
# Nor is it otherwise when the machine was started anew.
ctl_rebooted why "$TMP/file" >"$TMP/other" 2>&1 || fail "why: $(cat "$TMP/other")"
cmp "$TMP/other" "$TMP/out" || lost "of another run of the machine: $(cat "$TMP/other")"

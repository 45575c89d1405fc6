# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of a file durable while that is being synced says so by a mark, and the sync does not call the
# replica up to date; a mark of before is of no account.
. "$(dirname "$0")/lib.sh"
REPLCTL=$BUILD/replctl
start_target
missed=$TMP/file.repl-missed

# began: the sync has the file.
began() { [ ! -e "$missed" ]; }
# sync_with MARK: it is made when the sync has the file; $rc.
sync_with() {
	: >"$missed"
	kill -STOP "$SERVE_PID"
	ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 &
	wait_for 20 began || fail "the old mark stays"
	[ -z "$1" ] || : >"$1"
	kill -CONT "$SERVE_PID"
	wait $!
	rc=$?
}
head -c 4M /dev/urandom >"$TMP/file"
sync_with ""
[ $rc = 0 ] || fail "an old mark: $(cat "$TMP/out")"
head -c 4M /dev/urandom >"$TMP/file"
sync_with "$missed"
[ $rc = 1 ] && grep -q "a program has made bytes of $TMP/file durable while" "$TMP/out" ||
	fail "with a mark: $rc, $(cat "$TMP/out")"
grep -q "^next: .*replctl sync $TMP/file $T/p" "$TMP/out" || fail "next: $(cat "$TMP/out")"
ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 || fail "the next sync: $(cat "$TMP/out")"
cmp "$TMP/file" "$TMP/serve/pools/p" >&2 || lost "it differs"
began || fail "the mark stays"

# Nor is a file called what the replica is that equals it, but has no record.
rm "$TMP/file.repl"
sync_with "$missed"
[ $rc = 1 ] && grep -q "a program has made bytes of $TMP/file durable while" "$TMP/out" ||
	fail "equal, with a mark: $rc, $(cat "$TMP/out")"
grep -q "^next: .*replctl sync $TMP/file $T/p" "$TMP/out" || fail "next: $(cat "$TMP/out")"
[ ! -e "$TMP/file.repl" ] || fail "it has a record"
ctl sync "$TMP/file" "$T/p" >"$TMP/out" 2>&1 || fail "the next sync: $(cat "$TMP/out")"
grep -q "equals $TMP/file already" "$TMP/out" || fail "not by comparison: $(cat "$TMP/out")"

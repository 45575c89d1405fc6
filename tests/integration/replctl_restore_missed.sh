# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of a file durable while a restore is about to replace it says so by a mark, and the file stays;
# a mark of before goes with the data that it speaks of, where these were looked at and discarded.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
gate=$TMP/gate
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s SLOW_SYNC_OF=.restoring exec "%s" "$@"\n' "$BUILD/tests/integration/slow_space.so" "$gate" \
	"$REPLCTL" >"$TMP/replctl"
chmod 755 "$TMP/replctl"
REPLCTL=$TMP/replctl
start_target
cd "$TMP" || exit 1

# missed ARG...: replctl is about to replace file when a program that has it mapped makes bytes durable there; $status.
missed() {
	: >"$gate"
	ctl_start "$@"
	wait_for 20 test -e "$gate.met" || fail "no data are synced: $(cat bg.err)"
	change file 9000
	: >file.repl-missed
	cp file saved
	cp file.repl record
	rm -f "$gate" "$gate.met"
	wait "$CTL_PID"
	status=$?
	cmp -s saved file || lost "$*: the file is replaced"
	cmp -s record file.repl || lost "$*: the record is not what it was"
	[ -e file.repl-missed ] || lost "$*: the mark is gone"
	[ "$status" = 4 ] && grep -q "a program has made bytes of .*file durable while" bg.err ||
		fail "$*: $status, $(cat bg.out bg.err)"
}

head -c 1048576 /dev/urandom >file
ctl sync file "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
change file 5000
missed restore --force "$T/p" file
next=$(sed -n 's/^next: .*to keep it: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' bg.err)
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s file.old saved && [ -e file.old.repl-missed ] && [ ! -e file.repl-missed ] || lost "file and mark are not kept"
cmp -s file serve/pools/p || lost "not the replica's data"

# Both have gone on.
ctl restore "$T/p" other >/dev/null 2>err || fail "restore: $(cat err)"
change other 5000
ctl sync other "$T/p" >/dev/null 2>err || fail "the other one goes on: $(cat err)"
change file 7000
ctl sync file "$T/q" >/dev/null 2>err || fail "the file goes on: $(cat err)"
missed resolve --force --discard local file "$T/p"
grep -q "^next: replctl resolve --discard local $TMP/file $T/p" bg.err || fail "next: $(cat bg.err)"
ctl resolve --force --discard local file "$T/p" >/dev/null 2>err || fail "with a mark of before: $(cat err)"
cmp -s file serve/pools/p || lost "not the replica's data"
[ ! -e file.repl-missed ] && [ ! -e file.repl-taken ] || fail "the mark of what is gone stays"
ctl restore --force "$T/p" file >/dev/null 2>err || fail "once more: $(cat err)"

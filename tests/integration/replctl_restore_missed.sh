# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of a file durable while a restore is about to replace it says so by a mark, and the file stays;
# a mark of before goes with the data that it speaks of, where these were looked at and discarded.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
gate=$TMP/gate
printf '#!/bin/sh\nLD_PRELOAD="%s" SLOW_SYNC=%s SLOW_SYNC_OF=.restoring exec "%s" "$@"\n' \
	"$BUILD/tests/integration/slow_space.so $BUILD/tests/integration/call_fails.so" "$gate" \
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

# The file was moved out of the way by hand and the mark was not: it is not the restored one's.
force=
for mark in repl-missed repl-taken repl-missed-taken; do
	rm -f file file.repl
	: >file.$mark
	# shellcheck disable=SC2086
	ctl restore $force "$T/p" file >out 2>err
	status=$?
	[ ! -e file ] || lost "a file that was just restored is marked by file.$mark"
	[ "$status" -eq 4 ] && grep -q "file is gone, and a mark" err || fail "exit $status: $(cat out err)"
	next=$(sed -n 's/^next: .*: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' err)
	eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
	compgen -G "file.old*.$mark" >/dev/null && [ ! -e file.$mark ] || lost "the mark is gone"
	cmp -s file serve/pools/p || lost "not the replica's data"
	rm file.old*."$mark"
	force=--force
done
ctl restore --force "$T/p" file >/dev/null 2>err || fail "once more: $(cat err)"

# One that comes before the restored file has its record, which fails: what that has by then is kept.
rm file file.repl file.old*
: >"$gate"
export CALL_FAILS="fsync 3"
ctl_start restore "$T/p" file
unset CALL_FAILS
wait_for 20 test -e "$gate.met" || fail "no data are synced: $(cat bg.err)"
: >file.repl-missed
rm -f "$gate" "$gate.met"
wait "$CTL_PID" && fail "it does not fail"
grep -q "without its record" bg.err || fail "$(cat bg.out bg.err)"
change file 3000
cp file saved
next=$(sed -n 's/^next: mend that, then \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' bg.err)
[ -n "$next" ] && eval "$next" >/dev/null 2>err || fail "$next: $(cat bg.err err)"
[ -e file.old.repl-missed ] && cmp -s file.old saved || lost "what was marked is not kept"
cmp -s file serve/pools/p || lost "not the replica's data"

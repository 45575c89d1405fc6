# SPDX-License-Identifier: BSD-3-Clause
# What a promoted pool has lost with its machine's power, its program having replicated it from where it lies, its replica may have:
# neither a demotion nor a restore makes of it what is called newer than that replica, and overwrites it.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
# The target's machine runs on, as if it had been started anew once the file is there.
OTHER=$TMP/serve/boot
GATE=$TMP/serve/gate
printf '#!/bin/sh\nOTHER_BOOT=%s SLOW_SYNC=%s LD_PRELOAD="%s %s" exec "%s" "$@"\n' "$OTHER" "$GATE" \
	"$BUILD/tests/integration/other_boot.so" "$BUILD/tests/integration/slow_space.so" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target
cd "$TMP" || exit 1
P=serve/pools

gone_writer() {
	[ "$(ctl info --json "$T/b" | member writer_open)" = False ]
}

# killed VALUE: a's program, which replicates it to b, is when two pages have been acknowledged.
killed() {
	ctl promote "$T/a" >/dev/null 2>err || fail "promote: $(cat err)"
	start_api
	configure "$(pool b)"
	ok map "$TMP/$P/a" $MIB
	ok open 1
	ok put 0 4096 "$1"
	ok put 8192 4096 "$1"
	ok persist 0 0 12288
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 gone_writer || fail "b is still open"
	equal $P/b $P/a
}

# power VALUE: whether a has had it since its program opened it.
power() {
	[ "$(ctl info --json "$T/a" | member power)" = "$1" ] || fail "power is not $1: $(ctl info --json "$T/a")"
}

# unharmed FILE: a program that goes on from it is refused by b.
unharmed() {
	start_api
	configure "$(pool b)"
	ok map "$TMP/$1" $MIB
	refused REPL_E_DIVERGED "diverged" open 1
	stop_api
	equal $P/b acknowledged
}

head -c $MIB /dev/urandom >f
ctl sync f "$T/a" >/dev/null 2>err || fail "sync: $(cat err)"

# Of a process that is killed the kernel has all.
killed 7
power kept
ctl restore "$T/a" kept >/dev/null 2>err || fail "restore: $(cat err)"
ctl demote "$T/a" >out 2>err || fail "demote: $(cat err)"
[ ! -s err ] || fail "demote: $(cat err)"
ctl newest "$T/a" "$T/b" >out 2>err || fail "newest: $(cat out err)"
grep -q "^newest *$T/a$" out || fail "newest: $(cat out)"

cp $P/a before
killed 8
cp $P/b acknowledged
dd if=before of=$P/a bs=4096 count=1 conv=notrunc status=none
echo 01234567-89ab-cdef-0123-456789abcdef >"$OTHER"
chmod 644 "$OTHER"
power cut
for dry in --dry-run ""; do
	# shellcheck disable=SC2086
	ctl_fails 4 "was started anew since" restore $dry "$T/a" cut
	grep -q "^next: replctl newest $T/a, .*replctl restore --force $T/a cut" "$TMP/err" || fail "no next step: $(cat "$TMP/err")"
	[ ! -e cut ] && [ ! -e cut.restoring ] || fail "restored"
done
# Who gives up FILE for it hears of that before he has to decide.
cp f f.before
ctl resolve --dry-run --discard local f "$T/a" >out 2>err || fail "resolve, dry: $(cat err)"
grep -q " ranges\{0,1\} differ" out || fail "resolve, dry: $(cat out err)"
grep -q "was started anew since.*it may lack what its replicas have.*replctl newest $T/a" err || fail "not told: $(cat out err)"
ctl_fails 4 "was started anew since" resolve --discard local f "$T/a"
grep -q "^next: replctl newest $T/a, .*replctl resolve --force --discard local f $T/a" "$TMP/err" || fail "no next step: $(cat "$TMP/err")"
equal f f.before
ctl restore --force "$T/a" cut >out 2>err || fail "restore by force: $(cat err)"
grep -q "was started anew since.* restored all the same" err || fail "not told: $(cat err)"
unharmed cut

cp $P/a.repl cut.record
ctl demote "$T/a" >out 2>err || fail "demote: $(cat err)"
[ "$(grep -c "was started anew since" err)" -eq 1 ] || fail "not told once: $(cat err)"
ctl newest "$T/a" "$T/b" >out2 2>err2 && lost "one of them is newer: $(cat out2)"
grep -q "neither names the other's generation" err2 || fail "newest: $(cat err2)"
grep -q "was started anew since.*it may lack what its replicas have.*replctl newest $T/a" err || fail "not told: $(cat err)"
ctl restore "$T/a" demoted >/dev/null 2>err || fail "restore: $(cat err)"
unharmed demoted

# Nor does it go untold where the demotion has no answer: afterwards nothing tells of it any more.
cat cut.record >$P/a.repl
power cut
is_replica() {
	ctl info --json "$T/a" >info && ! grep -q '"primary": *true' info
}
: >"$GATE"
ctl_start demote "$T/a"
wait_for 20 test -e "$GATE.met" || fail "no sync: $(cat bg.err)"
kill -TERM "$CTL_PID"
wait "$CTL_PID"
status=$?
[ "$status" -eq 7 ] || fail "interrupted: exit $status: $(cat bg.out bg.err)"
rm "$GATE"
wait_for 20 is_replica || fail "it did not go on: $(ctl info --json "$T/a")"
grep -q "was started anew since.*it may lack what its replicas have.*replctl newest $T/a" bg.err || lost "not told: $(cat bg.err)"

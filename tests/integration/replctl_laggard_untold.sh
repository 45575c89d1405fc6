# SPDX-License-Identifier: BSD-3-Clause
# Of a queued replica whose target could keep no position nobody knows how much it has. What is restored from it, or it
# itself when it is promoted or opened where it lies, does not overwrite one that may have more; one that is equal is its
# replica as ever.
. "$(dirname "$0")/full_lib.sh"
start_on_disk tmpfs 64m
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
size=$((4 * MIB))

set_up() {
	configure "$(pool a)" "$(pool b)"
	ok set lanes 1
	ok set ack any
	ok set heartbeat-timeout 60000
	ok set async-lag-time 60000
	ok map "$1" $size
}

follows() {
	api stat "$1"
	[ "$(field lag_bytes)" = 0 ]
}

has_a() {
	equal "$TMP/p" "$TMP/serve/pools/a"
}

# Sessions first: one that sees its program's end tells its position.
killed() {
	# shellcheck disable=SC2046
	signalled KILL $(sessions) "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

# There is a generation before; then the disk is full, so that no record can be made.
set_up "$TMP/p"
ok open 1
ok close
leave 0
ok open
ok put 0 $size 1
ok persist 0 0 $size
wait_for 10 follows 1 || fail "b does not follow"
signalled STOP "$(session_of b)"
ok put 0 4096 2
ok persist 0 0 4096
wait_for 10 follows 0 || fail "a does not follow"
killed
has_a
cmp -s "$TMP/p" "$pools/b" && fail "b has all"
grep -q "no position record" "$TMP/serve.log" || fail "there is room for a position record"
rm "$pools/.filler"

ctl why "$T/b" >"$TMP/out" || fail "why: $(cat "$TMP/out")"
grep -q "may lack later ones that were acknowledged" "$TMP/out" && grep -q "no position is told" "$TMP/out" ||
	fail "why: $(cat "$TMP/out")"

# Nor is a program believed that says that it equals the file, which has all.
for part in "" .repl; do
	cp -p "$TMP/p$part" "$TMP/said$part"
	cp -p "$pools/b$part" "$pools/said$part"
done
start_api
configure "$(pool said)"
ok map "$TMP/said" $size
ok open 2
ok close
stop_api
equal "$TMP/p" "$TMP/said"
equal "$TMP/said" "$pools/said"

# Opened where it lies without a promotion, as its session has left it.
for part in "" .repl; do
	cp -p "$pools/b$part" "$pools/d$part"
done
start_api
set_up "$pools/d"
refused REPL_E_DIVERGED "/a: .*diverged" open
has_a
stop_api

ctl restore "$T/b" "$TMP/untold" >"$TMP/out" 2>&1 || fail "restore of b: $(cat "$TMP/out")"
start_api
set_up "$TMP/untold"
refused REPL_E_DIVERGED "/a: .*diverged" open
has_a
ctl_fails 6 "diverged" sync "$TMP/untold" "$T/a"

for part in "" .repl; do
	cp -p "$pools/b$part" "$pools/c$part"
done
ctl promote "$T/c" >"$TMP/out" 2>&1 || fail "promote of c: $(cat "$TMP/out")"
ctl newest "$T/a" "$T/c" >"$TMP/out" 2>&1
[ $? = 4 ] || fail "newest tells one: $(cat "$TMP/out")"
set_up "$pools/c"
refused REPL_E_DIVERGED "/a: .*diverged" open
has_a

# The one that has all is restored, and the other one given up.
ctl restore "$T/a" "$TMP/all" >"$TMP/out" 2>&1 || fail "restore of a: $(cat "$TMP/out")"
equal "$TMP/p" "$TMP/all"
set_up "$TMP/all"
refused REPL_E_DIVERGED "/b: .*diverged" open
ctl resolve --force --discard replica "$TMP/all" "$T/b" >"$TMP/out" 2>&1 || fail "resolve: $(cat "$TMP/out")"
ok open
ok close
equal "$TMP/p" "$pools/b"
has_a

# SPDX-License-Identifier: BSD-3-Clause
# Replicas that were all lost at once, and lack more than their targets' journals take, are not all made inconsistent at
# once: one is whole until another one is up to date, and has what was acknowledged if the program's machine is lost then.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
SLOW=$TMP/serve/slow
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s exec "%s" "$@"\n' "$BUILD/tests/integration/slow_sync.so" "$SLOW" \
	"$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target "journal-max = 1M"
FILE=$TMP/p
size=$((8 * MIB))
set_up() {
	start_api
	configure "$T/a" "$T/b" "$T/c"
	ok set ack quorum
	ok set resync-rate "$2"
	ok map "$1" $size
}
set_up "$FILE" 1M
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
cp "$FILE" "$TMP/acknowledged"
ctl pause "$FILE" >/dev/null || fail "pause"
ok put 0 $((4 * MIB)) 2
ok persist 0 0 $((4 * MIB))
ctl resume "$FILE" >/dev/null || fail "resume"
inconsistent() {
	ctl status "$FILE" | grep -c '^state.*inconsistent'
}
# broken: those that are said to be inconsistent on their targets, one a line.
broken() {
	for i in a b c; do
		! ctl info "$T/$i" 2>/dev/null | grep -q '^state *inconsistent' || echo $i
	done
}
one_begins() {
	[ "$(inconsistent)" -ge 1 ]
}
wait_for 20 one_begins || fail "none is copied directly"
# Four seconds at that rate; on a slow machine it may have ended at the second look.
sleep 0.3
[ "$(inconsistent)" -le 1 ] || fail "more than one: $(ctl status "$FILE")"
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
ctl newest "$T/a" "$T/b" "$T/c" >"$TMP/out" 2>&1 || fail "none is left: $(cat "$TMP/out")"
take=$(sed -n "s|^newest *$T/||p" "$TMP/out")
# On a slow machine the copy has ended by then: that one has all.
cmp -s "$FILE" "$TMP/serve/pools/$take" || equal "$TMP/acknowledged" "$TMP/serve/pools/$take"
# Those that are whole are not given up at once when the program is started again, nor beside one that is not, and all of
# them come to it.
set_up "$FILE" 3M
ok set heartbeat-timeout 30000
# As long as a record takes it can be looked at.
echo 1000 >"$SLOW"
printf 'open\n' >&"$API_IN"
while ! IFS=' ' read -r -t 0.1 -u "$API_OUT" STATUS MS TEXT; do
	first=$(broken)
	[ "$(echo "$first" | wc -l)" -gt 1 ] || continue
	# The one may have become whole before the next one was looked at.
	[ "$(broken)" != "$first" ] || fail "not one after the other: $first"
done
rm -f "$SLOW"
[ "$STATUS" = REPL_OK ] || fail "open: $STATUS $TEXT"
for i in 0 1 2; do
	wait_for 20 established $i || fail "replica $i does not come back: $TEXT"
	ok compare $i
	same
done
# Beside one that is live nobody waits.
ctl pause "$FILE" "$T/a" >/dev/null && ctl pause "$FILE" "$T/b" >/dev/null || fail "pause"
ok put 0 $((4 * MIB)) 3
ok persist 0 0 $((4 * MIB))
ctl resume "$FILE" >/dev/null || fail "resume"
two() {
	[ "$(inconsistent)" -eq 2 ]
}
wait_for 20 two || fail "one waits for the other: $(ctl status "$FILE")"
ctl wait "$FILE" --timeout 20 >/dev/null || fail "wait: $(ctl status "$FILE")"
ok close
for i in a b c; do
	equal "$FILE" "$TMP/serve/pools/$i"
done
stop_api

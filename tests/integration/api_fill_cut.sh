# SPDX-License-Identifier: BSD-3-Clause
# A replica whose target is lost amid its first copy, at the opening, is told as inconsistent by the program that goes on without
# it, before the target is there again; one that is not reached is not.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far_beside
A=$(pool a)
X=$FAR_TARGET/x
prepare() {
	configure "$@"
	ok set on-loss degrade
	stay_lost
}
start_api
prepare "$A"
ok map "$TMP/p" $((8 * MIB))
ok open 1
ok put 0 $((8 * MIB)) 1
ok persist 0 0 $((8 * MIB))
ok close
prepare "$A" "$X"
# Of the eight it takes as many seconds.
link both rate 8400
printf 'open 1\n' >&"$API_IN"
begun() {
	cmp -s -n 4096 "$TMP/p" "$TMP/far/pools/x"
}
wait_for 20 begun || fail "x is not filled"
# shellcheck disable=SC2046
signalled KILL "$FAR_PID" $(descendants "$FAR_PID")
IFS=' ' read -r -t 60 -u "$API_OUT" STATUS MS TEXT || fail "the opening does not end"
[ "$STATUS" = REPL_OK ] || fail "open: $STATUS $TEXT"
cmp -s "$TMP/p" "$TMP/far/pools/x" && fail "x was filled by then"
ok stat 0
is replication 0
ok stat 1
is replication 2
is data 1
ctl status "$TMP/p" >"$TMP/out"
grep -A1 "^replica .*/x$" "$TMP/out" | grep -q "^state .*inconsistent" || fail "$(cat "$TMP/out")"
# Nobody has told its target, which is not there, anything since.
for part in "" .repl; do
	cp -p "$TMP/far/pools/x$part" "$TMP/serve/pools/x$part"
done
[ "$(ctl info --json "$(pool x)" | member state)" = inconsistent ] || fail "x: $(ctl info "$(pool x)")"
ok close
# One that is not there from the beginning is told as one that misses updates.
ok open
ok stat 1
is replication 2
is data 2
ok close
stop_api

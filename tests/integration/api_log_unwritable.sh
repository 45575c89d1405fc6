# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map, when FILE.repl can't be written any more, no replica passes for up to date without what was
# acknowledged after that: one that is lost later is newer than the record, and while one is away that is not nothing is acknowledged.
. "$(dirname "$0")/cut_lib.sh"

OP_TIMEOUT=2000
MINE=$TMP/memory

# at_work POOL [FLAG]: what is stored is well, its record is on a disk that fails for good.
at_work() {
	configure "$(pool "$1")"
	ok set lanes 1
	ok set pool-file "$pools/$1"
	ok set after-crash dirty-map
	ok set reconnect-max 300
	ok map "$MINE.$1" $((64 * MIB))
	api open "${2-0}"
}

# drained MIB SEED: each in an extent of its own.
drained() {
	ok put $(($1 * MIB)) 65536 "$2"
	api persist 0 $(($1 * MIB)) 65536
}

own_disk 96M
start_api
at_work p 1
drained 0 1
[ "$STATUS" = REPL_OK ] || fail "$STATUS $TEXT"
shut_down
drained 16 2
[ "$STATUS" = REPL_OK ] || fail "refused though the replica is there: $STATUS $TEXT"
hurt serve
drained 32 3
[ "$STATUS" = REPL_OK ] || fail "refused though the replica is newer than the record: $STATUS $TEXT"
power_cut
heal_at "$SERVE_PORT"
start_api
at_work p
if [ "$STATUS" = REPL_OK ]; then
	ok compare 0
	same
fi
[ "$STATUS" = REPL_E_DIVERGED ] || fail "not told that the replica is newer: $STATUS $TEXT"

at_work q 1
[ "$STATUS" = REPL_OK ] || fail "$STATUS $TEXT"
drained 0 1
hurt serve
drained 0 2
[ "$STATUS" = REPL_OK ] || fail "no degraded drain: $STATUS $TEXT"
shut_down
drained 16 3
[ "$STATUS" != REPL_OK ] || lost "what is in no log was acknowledged without the replica"
[ "$STATUS" = REPL_E_IO ] || fail "$STATUS $TEXT"
[[ $TEXT == *"a replica is away"* ]] || fail "$TEXT"
heal_at "$SERVE_PORT"
wait_for 30 established 0 || fail "not back: $TEXT"
drained 32 4
[ "$STATUS" = REPL_OK ] || fail "refused though the replica is back: $STATUS $TEXT"
ok compare 0
same
api close
stop_api

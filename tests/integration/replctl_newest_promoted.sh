# SPDX-License-Identifier: BSD-3-Clause
# A program is started with a promoted replica that had lagged, and is lost when one replica is equal to that and another one is
# not: what is called newest, or is restored, does not overwrite the one that had got further.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
pools=$TMP/serve/pools

# set_up FILE TARGET...
set_up() {
	file=$1
	shift
	start_api
	configure_lagging "$@"
	ok map "$file" $size
}

# lose_program [SESSION]: which hangs.
lose_program() {
	signalled KILL "$(api_child)"
	[ $# = 0 ] || kill -CONT "$1"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

# c and e are of an earlier generation, b has a part of the last one.
set_up "$TMP/p" "$(pool d)" "$(pool b)" "$(pool c)" "$(pool e)"
ok open 1
ok close
stop_api
set_up "$TMP/p" "$(pool d)" "$(pool b)"
fill 1
leave_behind b
cmp -s "$TMP/p" "$pools/b" && fail "b has all"
equal "$TMP/p" "$pools/d"
ctl promote "$T/b" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
ctl info --json "$T/b" >"$TMP/info"
[ "$(member position <"$TMP/info")" -gt 0 ] || fail "b does not say how much it has: $(cat "$TMP/info")"
before=$(ctl info --json "$T/c" | member generation)

labelled() {
	ctl info --json "$T/c" >"$TMP/info" && [ "$(member generation <"$TMP/info")" != "$before" ]
}

set_up "$pools/b" "$(pool c)" "$(pool e)"
# e is at it when c is through.
open_amid "$pools/b" e
wait_for 8 labelled || fail "c is not labelled: $(cat "$TMP/info")"
equal "$pools/b" "$pools/c"
lose_program "$held"

# Of the machine that it ran on nothing is left, but the one is back that had all.
ctl newest "$T/c" "$T/d" >"$TMP/out" 2>&1
! grep -q "^newest *$T/c$" "$TMP/out" || lost "c, which has less than d: $(cat "$TMP/out")"
ctl restore "$T/c" "$TMP/again" >"$TMP/out" 2>&1 || fail "restore of c: $(cat "$TMP/out")"
equal "$pools/c" "$TMP/again"
set_up "$TMP/again" "$(pool d)"
api open
equal "$TMP/p" "$pools/d"
[ "$STATUS" = REPL_E_DIVERGED ] || fail "open: $STATUS $TEXT"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A program is started with what was restored from the replica that has most, and is lost when one replica is equal to that and
# another one is not: newest names none that has less.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

set_up() {
	start_api
	configure_lagging "$(pool a)" "$(pool b)"
}

# Of what the program has on its disk nothing is left, nor of c.
set_up
ok set target "$(pool c)"
ok map "$TMP/p" $size
fill 0
follows 1 || wait_for 10 follows 1 || fail "b does not follow"
late="$(session_of a) $(session_of b)"
# shellcheck disable=SC2086
signalled STOP $late
for i in 1 2 3 4 5 6 7 8; do
	ok put $((i * 4 * MIB)) $((4 * MIB)) "$((i + 1))"
	ok persist 0 $((i * 4 * MIB)) $((4 * MIB))
done
signalled KILL "$(api_child)"
# shellcheck disable=SC2086
kill -CONT $late
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
ctl restore "$T/c" "$TMP/again" >"$TMP/out" 2>&1 || fail "restore of c: $(cat "$TMP/out")"
position=$(ctl info --json "$T/c" | member position)
equal "$TMP/p" "$TMP/again"
cmp -s "$TMP/p" "$TMP/serve/pools/b" && fail "b has all"

labelled() {
	ctl info --json "$T/a" >"$TMP/info" && cmp -s "$TMP/again" "$TMP/serve/pools/a" || return
	[ "$(member state <"$TMP/info")" = outdated ] || [ "$(member position <"$TMP/info")" = "$position" ]
}

cut_off() {
	signalled KILL "$(api_child)"
	kill -CONT "$held"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

held_amid() {
	set_up
	ok map "$TMP/again" $size
	open_amid "$TMP/again" b
	! cmp -s "$TMP/again" "$TMP/serve/pools/b"
}

# On a fast machine b may be through before it is held: once more with all files as they were.
kept=$TMP/kept
mkdir "$kept"
(cd "$TMP" && cp again again.repl serve/pools/* "$kept")
times=1
until held_amid; do
	cut_off
	[ $((times += 1)) -le 20 ] || fail "b is through each time"
	(cd "$kept" && cp again* "$TMP" && cp [!a]* a a.repl "$TMP/serve/pools")
done
wait_for 8 labelled || fail "a is not labelled: $(cat "$TMP/info")"
cut_off
ctl newest "$T/b" "$T/a" >"$TMP/out" 2>"$TMP/err" || fail "it is not told: $(cat "$TMP/out" "$TMP/err")"
! grep -q "^newest *$T/b$" "$TMP/out" || equal "$TMP/again" "$TMP/serve/pools/b"
take=$(sed -n "s|^newest *$T/||p" "$TMP/out")
equal "$TMP/again" "$TMP/serve/pools/$take"

# The program takes it up where it was.
set_up
ok map "$TMP/again" $size
ok open
for i in 0 1; do
	ok compare $i
	same
done
ok close
stop_api

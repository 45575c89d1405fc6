# SPDX-License-Identifier: BSD-3-Clause
# A replica that lagged when its writer and its session were killed, and is opened where it lies without a promotion, does not
# overwrite the one that had got further. One that was closed in order has all: who was away then follows.
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

set_up "$TMP/p" "$(pool a)" "$(pool b)"
fill 1
late=$(session_of b) || fail "no session of b"
signalled STOP "$late"
for i in 1 2 3 4 5 6 7 8; do
	ok put $((i * 4 * MIB)) $((4 * MIB)) "$((i + 1))"
	ok persist 0 $((i * 4 * MIB)) $((4 * MIB))
done
wait_for 10 follows 0 || fail "a does not follow"
# Sessions first: one that sees its program's end tells its position.
# shellcheck disable=SC2046
signalled KILL $(sessions) "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
cmp -s "$TMP/p" "$pools/b" && fail "b has all"
equal "$TMP/p" "$pools/a"
[ "$(stat -c %s "$pools/b.repl")" -gt 8192 ] || fail "b has no position record"

# in_place POOL OTHER: a program of that file.
in_place() {
	set_up "$pools/$1" "$(pool "$2")"
}

in_place b a
refused REPL_E_DIVERGED "/a: .*diverged" open
equal "$TMP/p" "$pools/a"
stop_api
ctl_fails 6 "diverged" sync "$pools/b" "$T/a"
equal "$TMP/p" "$pools/a"

# A person decides, either way.
for discarded in replica local; do
	mkdir "$TMP/kept"
	cp "$pools/a" "$pools/b" "$pools/a.repl" "$pools/b.repl" "$TMP/kept"
	ctl resolve --force --discard $discarded "$pools/b" "$T/a" >"$TMP/out" 2>&1 ||
		fail "resolve --discard $discarded: $(cat "$TMP/out")"
	equal "$pools/a" "$pools/b"
	wait_for 20 no_sessions || fail "sessions stay"
	rm "$pools"/[ab]*
	cp "$TMP"/kept/* "$pools"
	chown "$SERVE_USER" "$pools"/[ab]*
	rm -r "$TMP/kept"
done

# By its position, when its target has looked.
ctl probe "$T/b" >"$TMP/out" 2>&1 || fail "probe: $(cat "$TMP/out")"
in_place b a
refused REPL_E_DIVERGED "/a: the replica is newer" open
equal "$TMP/p" "$pools/a"
stop_api

# The other one goes on where it lies, also when that program was killed.
ctl probe "$T/a" >"$TMP/out" 2>&1 || fail "probe: $(cat "$TMP/out")"
in_place a b
ok open
ok put 0 $MIB 11
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
cmp -s "$pools/a" "$pools/b" && fail "b is equal before"
in_place a b
ok open
ok close
stop_api
equal "$pools/a" "$pools/b"

# Closed in order: b has a last position, and all.
in_place a b
ok open
ok put 0 $MIB 12
ok persist 0 0 $MIB
wait_for 10 follows 0 || fail "b does not follow"
ok close
stop_api
wait_for 20 no_sessions || fail "sessions stay"
[ "$(ctl info --json "$T/b" | member state)" = up-to-date ] && [ "$(ctl info --json "$T/b" | member position)" -gt 0 ] ||
	fail "b is not as it was closed: $(ctl info "$T/b")"
sed "s/^listen = .*/listen = 127.0.0.1:$SERVE_PORT/" "$TMP/repld.conf" >"$TMP/again.conf"
stop "$SERVE_PID"
start_api
configure_lagging "$(pool a)"
ok set on-loss degrade
ok set reconnect-max 200
ok map "$pools/b" $size
ok open
ok put $MIB $MIB 13
ok persist 0 $MIB $MIB
"$REPLD" serve --config "$TMP/again.conf" >"$TMP/again.log" 2>&1 &
SERVE_PID=$!
PIDS="$PIDS $SERVE_PID"
ctl wait "$pools/b" --for up-to-date --timeout 20 >"$TMP/out" 2>&1 || fail "a does not follow: $(ctl why "$pools/b")"
ok close
stop_api
equal "$pools/b" "$pools/a"

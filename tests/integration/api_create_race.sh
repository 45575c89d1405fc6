# SPDX-License-Identifier: BSD-3-Clause
# Of two processes that make one pool on several targets at a time, whatever the order in which they name them, one gets it; who is refused, or killed, leaves nothing that only it names.
. "$(dirname "$0")/api_lib.sh"
start_target
size=$((1 * MIB))

# For the races sessions that begin when all of both are there.
mkdir "$TMP/far"
printf '[repld]\npool-dir = %s\n' "$TMP/far" >"$TMP/far.conf"
cat >"$TMP/meet.sh" <<END
#!/bin/sh
: >"$TMP/met/\$\$"
i=0
while set -- "$TMP"/met/* && [ \$# -lt 6 ] && [ \$i -lt 300 ]; do
	i=\$((i + 1))
	sleep 0.1
done
exec "$REPLD" session --config "$TMP/far.conf"
END
chmod 755 "$TMP/meet.sh"
start_sshd

# racer N POOL...: makes the pools and holds them until the other one was answered.
racer() {
	local n=$1 name

	shift
	{
		printf 'config\nset identity %s\nset known-hosts %s\nset op-timeout 10000\nset connect-timeout 30000\nset command %s\n' \
			"$TMP/key" "$TMP/known_hosts" "$TMP/meet.sh"
		for name in "$@"; do
			printf 'set target %s\n' "$USER_NAME@127.0.0.1:$SSHD_PORT/$name"
		done
		rm -f "$TMP/local.$n"*
		printf 'map %s %s\nput 0 %s %s\nopen 1\npersist 0 0 %s\n' "$TMP/local.$n" $size $size "$n" $size
		wait_for 60 [ -e "$TMP/go" ] || exit 1
		printf 'compare 0\ncompare 1\nclose\n'
	} | timeout -k 1 100 "$API_SHELL" >"$TMP/racer.$n" 2>>"$TMP/api.log"
}

answered() {
	[ "$(wc -l <"$TMP/racer.1")" -ge 13 ] && [ "$(wc -l <"$TMP/racer.2")" -ge 13 ]
}

# got N LINE PATTERN: that line of its answers; the 12th is that to open.
got() {
	sed -n "$2p" "$TMP/racer.$1" | grep -q "^$3"
}

pools() {
	(cd "$POOLS" && ls | grep -v '^\.' | tr '\n' ' ')
}

holds() {
	[ "$(pools)" = "$1" ]
}

no_far_sessions() {
	! pgrep -f "session --config $TMP/far.conf" >/dev/null
}

POOLS=$TMP/far
race() {
	rm -rf "$TMP"/racer.* "$TMP/go" "$TMP/met"
	mkdir "$TMP/met"
	: >"$TMP/racer.1"
	: >"$TMP/racer.2"
	racer 1 $1 &
	one=$!
	racer 2 $2 &
	two=$!
	wait_for 60 answered || fail "$(cat "$TMP"/racer.*)"
	: >"$TMP/go"
	wait $one $two
	wait_for 10 no_far_sessions || fail "sessions stay"
	winner=1 loser=2
	got 1 12 REPL_OK || winner=2 loser=1
}

for round in $(seq "${ROUNDS:-6}"); do
	race "m1 m2 z1" "z2 m2 m1"
	got $winner 12 REPL_OK || fail "round $round: neither: $(cat "$TMP"/racer.*)"
	got $loser 12 REPL_E_BUSY || fail "round $round: the other: $(sed -n 12p "$TMP/racer.$loser")"
	for line in '13 REPL_OK' '14 REPL_OK.*same' '15 REPL_OK.*same'; do
		got $winner $line || fail "round $round: no $line: $(cat "$TMP/racer.$winner")"
	done
	holds "m1 m1.repl m2 m2.repl z$winner z$winner.repl " ||
		lost "round $round: racer $winner got it, and there is: $(pools)"
	equal "$TMP/local.$winner" "$TMP/far/m2"
	rm "$TMP"/far/*
done

# Where each has made something before they meet both may be told. Then nothing stays of what only one
# of them names; of the others what one had made and the other one held, which is as it was made.
for round in 1 2; do
	race "a1 m1 m2" "a2 m1 m2"
	if got 1 12 REPL_OK || got 2 12 REPL_OK; then
		due="a$winner a$winner.repl m1 m1.repl m2 m2.repl "
		holds "$due" || lost "round $round: there is: $(pools), and not: $due"
	else
		for name in $(pools); do
			case $name in
			m1 | m2) cmp -n $size "$TMP/far/$name" /dev/zero || lost "round $round: $name was written" ;;
			m1.repl | m2.repl) ;;
			*) fail "round $round: $name stays" ;;
			esac
		done
	fi
	rm -f "$TMP"/far/*
done

# One of three is somebody else's: of the others nothing stays, whichever was made first.
POOLS=$TMP/serve/pools
start_api
ctl create "$T/m" --size $size >/dev/null || fail "create"
hold m write
OP_TIMEOUT=2000
configure "$(pool z)" "$(pool m)" "$(pool a)"
ok map "$TMP/p" $size
refused REPL_E_BUSY "in use|open for writing" open 1
wait_for 10 holds "m m.repl " || fail "there is: $(pools)"
# One that was there before stays, written or not.
ctl create "$T/a" --size $size >/dev/null || fail "create"
refused REPL_E_BUSY "in use|open for writing" open 1
wait_for 10 holds "a a.repl m m.repl " || fail "there is: $(pools)"
stop_api
stop "$HOLD_PID"
wait_for 10 no_sessions || fail "sessions stay"
ctl remove --force "$T/a" >/dev/null && ctl remove --force "$T/m" >/dev/null || fail "remove"

# killed_after SECONDS: it opens two new pools and is killed so long after it began to.
killed_after() {
	OP_TIMEOUT=10000
	start_api
	configure "$(pool k1)" "$(pool k2)"
	ok map "$TMP/k" $size
	printf 'open 1\n' >&"$API_IN"
	sleep "$1"
	kill -KILL "$(api_child)"
	wait "$api_pid"
	wait_for 10 no_sessions || fail "sessions stay"
}

# Killed before anything is recorded it leaves none, but for one that was made when it had gone, which is told; what is
# recorded stays, and is opened again.
for delay in 0.05 0.1 0.14 0.18 0.25; do
	killed_after $delay
	for name in $(pools); do
		[ "$name" = "${name%.repl}" ] || continue
		[ "$(ctl info --json "$T/$name" | member generation)" != 00000000-0000-0000-0000-000000000000 ] ||
			[ "$(ctl info --json "$T/$name" | member state)" != up-to-date ] ||
			grep -q "pool '$name' was made when its initiator had gone" "$TMP/serve.log" ||
			fail "killed after $delay s it left an empty pool: $(ctl info "$T/$name")"
	done
done
start_api
configure "$(pool k1)" "$(pool k2)"
ok map "$TMP/k" $size
ok open 1
ok persist 0 0 $size
ok compare 1
same
ok close
stop_api

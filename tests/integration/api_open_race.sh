# SPDX-License-Identifier: BSD-3-Clause
# Of two processes that open one pool with its replica at a time one gets it; the other is refused and changes nothing.
. "$(dirname "$0")/api_lib.sh"
start_target
start_api
size=$((4 * MIB))
OP_TIMEOUT=10000
configure "$(pool p)"
ok map "$TMP/p" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok close
stop_api

# racer N: opens the pool and holds it until the other one was answered.
racer() {
	{
		printf 'config\nset identity %s\nset known-hosts %s\nset op-timeout 10000\nset close-timeout 2000\n' \
			"$TMP/key" "$TMP/known_hosts"
		printf 'set target %s\nmap %s %s\nopen\npersist 0 0 4096\n' "$(pool p)" "$TMP/p" $size
		wait_for 60 [ -e "$TMP/go" ] || exit 1
		printf 'compare 0\nclose\n'
	} | timeout -k 1 100 "$API_SHELL" >"$TMP/racer.$1" 2>>"$TMP/api.log"
}

# The line of its answer to open, the 8th command.
answered() {
	[ "$(wc -l <"$TMP/racer.1")" -ge 9 ] && [ "$(wc -l <"$TMP/racer.2")" -ge 9 ]
}

for round in 1 2 3 4 5 6; do
	rm -f "$TMP"/racer.* "$TMP/go"
	: >"$TMP/racer.1"
	: >"$TMP/racer.2"
	racer 1 &
	one=$!
	racer 2 &
	two=$!
	wait_for 60 answered || fail "round $round: $(cat "$TMP"/racer.*)"
	: >"$TMP/go"
	wait $one $two
	opened=$(for r in 1 2; do sed -n 8p "$TMP/racer.$r"; done)
	[ "$(grep -c '^REPL_OK' <<<"$opened")" -eq 1 ] || fail "round $round: not one of them: $opened"
	[ "$(grep -c '^REPL_E_BUSY' <<<"$opened")" -eq 1 ] || fail "round $round: not told busy: $opened"
	winner=1
	sed -n 8p "$TMP/racer.1" | grep -q '^REPL_OK' || winner=2
	sed -n 10p "$TMP/racer.$winner" | grep -q '^REPL_OK.*same' || fail "round $round: $(cat "$TMP/racer.$winner")"
	[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "round $round: $(ctl info "$T/p")"
	ctl verify "$TMP/p" "$T/p" >/dev/null || lost "round $round: they differ"
done

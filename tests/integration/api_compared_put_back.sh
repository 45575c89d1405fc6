# SPDX-License-Identifier: BSD-3-Clause
# A replica is put back by hand from an earlier copy, of the same generation, amid a resync that has ended its comparison:
# that does not count any more, and what the copy lacks is found by another one.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
size=$((16 * MIB))
pools=$TMP/serve/pools

begin() {
	start_api
	configure "$(pool p)"
	ok set connect-timeout 2000
	ok set reconnect-min 100
	ok set reconnect-max 200
	ok set resync-rate 4M
	ok map "$TMP/p" $size
}

back() {
	ok stat 0
	[ "$(field replication)" = 0 ]
}

staging() {
	session=$(session_of p) && [ "$(stat -c %b "$pools/p.repl")" -gt 4096 ]
}

begin
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
mkdir "$TMP/copy"
cp --preserve=all "$pools/p" "$pools/p.repl" "$TMP/copy"
ok put 0 $MIB 2
ok persist 0 0 $MIB
kill -STOP "$SERVE_PID"
kill -KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-

# The map of this one can't tell what the replica lacks: it is compared, and 12 MiB come at 4 a second.
begin
ok open 0
ok put $((4 * MIB)) $((12 * MIB)) 3
ok persist 0 $((4 * MIB)) $((12 * MIB))
kill -CONT "$SERVE_PID"
wait_for 20 staging || fail "nothing is staged: $(tail -n 3 "$TMP/serve.log")"
kill -STOP "$SERVE_PID"
kill -KILL "$session"
cp --preserve=all "$TMP/copy/p" "$TMP/copy/p.repl" "$pools"
kill -CONT "$SERVE_PID"
wait_for 30 back || fail "not back: $TEXT"
equal "$TMP/p" "$pools/p"
ok compare 0
same

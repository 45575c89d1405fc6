# SPDX-License-Identifier: BSD-3-Clause
# With a method that wants a receive ring, too, a sync goes by the journal, and goes on with what a program's resync has left there.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "rqwrb = pm"
start_api
size=$((16 * MIB))
{
	cat "$TMP/login.conf"
	echo "method = deposit"
} >"$TMP/deposit.conf"

staged() {
	[ "$(stat -c %b "$TMP/serve/pools/p.repl")" -gt 8192 ]
}

sync_it() {
	REPL_CONFIG=$TMP/deposit.conf ctl sync --json "$TMP/p" "$(pool p)" >"$TMP/out" 2>"$TMP/err" ||
		fail "$1: $(cat "$TMP/err")"
	equal "$TMP/p" "$TMP/serve/pools/p"
}

configure "$(pool p)"
ok set lanes 2
ok set method deposit
ok set reconnect-min 100
ok set reconnect-max 200
ok set resync-rate 4M
ok map "$TMP/p" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
kill -STOP "$SERVE_PID"
kill -KILL "$(session_of p)"
ok put 0 $size 2
ok persist 0 0 $size
kill -CONT "$SERVE_PID"
wait_for 20 staged || fail "nothing is staged: $(tail -n 3 "$TMP/serve.log")"
kill -KILL "$(api_child)"
wait_for 10 grep -q 'journal that is not committed is kept' "$TMP/serve.log" || fail "not kept: $(cat "$TMP/serve.log")"
sync_it "with a journal that is kept"
[ "$(member moved_before <"$TMP/out")" -ge $((2 * MIB)) ] || fail "it began anew: $(cat "$TMP/out")"

# Nor beside what a sync stages.
change "$TMP/p" 5000
sync_it "with none"
! grep "lanes open on" "$TMP/serve.log" | tail -n 1 | grep -q "receive ring" || fail "a sync has a receive ring"

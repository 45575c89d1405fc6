# SPDX-License-Identifier: BSD-3-Clause
# A link that breaks again and again before a resync is through: what was staged into the journal is not staged again, so that it
# comes to its end, beside a program that goes on and changes what was staged. So where the program is the one that is killed.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
size=$((48 * MIB + 777))
part=$((40 * MIB))

set_up() {
	configure "$(pool p)"
	ok set lanes 2
	ok set after-crash dirty-map
	ok set reconnect-min 100
	ok set reconnect-max 200
	ok set resync-rate 16M
	ok map "$TMP/p" $size
}

back() {
	ok stat 0
	[ "$(field replication)" = 0 ]
}

staging() {
	session=$(session_of p) && [ "$(stat -c %b "$TMP/serve/pools/p.repl")" -gt $1 ]
}

# staged BLOCKS: so many of 512 bytes of the journal are there, by a session, $session
staged() {
	wait_for 20 staging "$1" || fail "nothing is staged: $(tail -n 3 "$TMP/serve.log")"
}

given_back() {
	[ "$(stat -c %b "$TMP/serve/pools/p.repl")" -lt 2048 ]
}

set_up
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
kill -STOP "$SERVE_PID"
kill -KILL "$(session_of p)"
ok put 0 $part 2
ok persist 0 0 $part
kill -CONT "$SERVE_PID"

# In each of these a round of its own would take 2.5 s.
for i in 1 2 3 4; do
	staged $((i * 16384))
	kill -KILL "$session"
	# What was staged first, what is not staged yet, and the end.
	for at in $((i * 100000)) $((part - i * 100000)) $((size - 100)); do
		ok put "$at" 100 $((at + i))
		ok persist 1 "$at" 100
	done
done
wait_for 20 back || fail "not back: $TEXT"
ok compare 0
same
equal "$TMP/p" "$TMP/serve/pools/p"
[ "$(grep -c 'bytes of a journal are gone on with' "$TMP/serve.log")" -ge 1 ] || fail "it began anew: $(cat "$TMP/serve.log")"

# And whoever opens the pool next goes on with it. What is staged then is not what was before.
wait_for 20 given_back || fail "the journal's space is not given back"
kill -STOP "$SERVE_PID"
kill -KILL "$(session_of p)"
ok put 0 $part 3
ok persist 0 0 $part
kill -CONT "$SERVE_PID"
staged 32768
emptied "$TMP/serve.log"
kill -KILL "$(api_child)"
wait_for 10 grep -q 'journal that is not committed is kept' "$TMP/serve.log" || fail "not kept: $(cat "$TMP/serve.log")"
start_api
set_up
ok open 0
grep -q 'bytes of a journal are gone on with' "$TMP/serve.log" || fail "it began anew: $(cat "$TMP/serve.log")"
ok compare 0
same
equal "$TMP/p" "$TMP/serve/pools/p"

# Whoever finds nothing to bring has none beside what is written.
ok close
ok open 0
ok put 5000 5000 9
ok persist 0 5000 5000
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

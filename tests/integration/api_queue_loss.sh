# SPDX-License-Identifier: BSD-3-Clause
# With ack = quorum of three a stopped or killed replica holds up no drain, the others have each of them, and it is equal again when it is back.
. "$(dirname "$0")/api_lib.sh"
OP_TIMEOUT=4000
make_keys
start_serve
start_api

state_is() {
	ok stat "$1"
	[ "$(field replication)" = "$2" ]
}

noticed() {
	ok stat 2
	[ "$(field error)" -ge 1 ]
}

# lag SIGNAL: persist on with the third replica hurt.
hurt_one() {
	configure "$(pool "$1-a")" "$(pool "$1-b")" "$(pool "$1-c")"
	ok set ack quorum
	ok set on-loss fail
	ok map "$TMP/p-$1" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	ok open 1
	ok persist 0 0 $((4 * MIB))
	pid=$(session_of "$1-c") || fail "no session of $1-c"
	signalled "$1" "$pid"
	for i in $(seq 40); do
		ok put $((i * 4096)) 4096 "$i"
		ok persist $((i % 4)) $((i * 4096)) 4096
		within 1500
	done
	# One that was killed may be back by now.
	wait_for 20 noticed || fail "the loss is not noticed: $TEXT"
	ok put 500000 4096 9
	ok persist 1 500000 4096
	for i in 0 1; do
		state_is "$i" 0 || fail "replica $i: $TEXT"
		ok compare "$i"
		same
	done
	kill -KILL "$pid" 2>/dev/null
	wait_for 30 state_is 2 0 || fail "it is not back: $TEXT"
	ok put 600000 4096 10
	ok persist 2 600000 4096
	ok close
	for pool in a b c; do
		equal "$TMP/p-$1" "$TMP/serve/pools/$1-$pool"
		ctl info "$(pool "$1-$pool")" >"$TMP/info"
		grep -q "^state *up-to-date" "$TMP/info" || fail "$1-$pool: $(cat "$TMP/info")"
		grep -q "^position *[1-9]" "$TMP/info" || fail "$1-$pool: $(cat "$TMP/info")"
	done
}
hurt_one KILL
hurt_one STOP

# Two of three lost: fewer than a drain needs.
configure "$(pool few-a)" "$(pool few-b)" "$(pool few-c)"
ok set ack quorum
ok set on-loss fail
ok anon $((4 * MIB))
ok open 1
ok persist 0 0 100
pids="$(session_of few-b) $(session_of few-c)"
# shellcheck disable=SC2086
signalled STOP $pids
refused REPL_E_LOST "1 of 3 replicas are left, a drain needs 2" persist 0 0 100
within $((OP_TIMEOUT + LATE))
refused REPL_E_LOST "1 of 3 replicas are left, an? (drain|append) needs 2" append 1 0 4096 10 1
# shellcheck disable=SC2086
kill -KILL $pids
api close
stop_api

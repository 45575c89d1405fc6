# SPDX-License-Identifier: BSD-3-Clause
# fault.sh - lib.sh of the integration tests, and a second session that must not notice.
#
#   start_target [LINE]  keys and repld serve, with extra [repld] lines
#   start_victim         another initiator, which writes records without an end
#   check_victim         it still writes; then it is stopped, and all it was told is there
#   hostile MODE         tests/fault/hostile on the pool "hostile"; fails if that does
. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"
HOSTILE=${HOSTILE:-$BUILD/tests/fault/hostile}
LEDGER=${LEDGER:-$BUILD/packaging/ledger}
REPLCTL=${REPLCTL:-$BUILD/replctl}

start_target() {
	[ -e "$TMP/key" ] || make_keys
	start_serve "$@"
	target=$SERVE_USER@127.0.0.1:$SERVE_PORT
}

ledger_on() {
	exec "$LEDGER" write "$TMP/$1" "$target/$1" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" on-loss=fail
}

victim_count() {
	tail -n 1 "$TMP/victim.out"
}

start_victim() {
	ledger_on victim.pool >"$TMP/victim.out" 2>"$TMP/victim.log" &
	VICTIM_PID=$!
	PIDS="$PIDS $VICTIM_PID"
	wait_for 10 test -s "$TMP/victim.out" || fail "the other session does not start"
}

victim_wrote_more() {
	[ "$(victim_count)" -gt "$1" ]
}

check_victim() {
	gone "$VICTIM_PID" && fail "the other session has ended: $(cat "$TMP/victim.log")"
	wait_for 20 victim_wrote_more "$(($(victim_count) + 10))" ||
		fail "the other session has stopped at $(victim_count)"
	stop "$VICTIM_PID"
	"$LEDGER" check "$TMP/serve/pools/victim.pool" "$(victim_count)" >"$TMP/victim.check" ||
		lost "the other session lost something: $(cat "$TMP/victim.check")"
}

hostile() {
	timeout 40 "$HOSTILE" -i "$TMP/key" -k "$TMP/known_hosts" "$1" \
		"$target/${2:-hostile}" >"$TMP/hostile.out" 2>&1 ||
		fail_by $? "$1: $(cat "$TMP/hostile.out")"
	cat "$TMP/hostile.out"
}

# no_signal_deaths: no process of the target was killed by a fault of its own.
no_signal_deaths() {
	! crashes >&2 || fail "the target crashed"
}

# limit_repld LIMIT...: what start_target starts gets these limits of ulimit.
limit_repld() {
	printf '#!/bin/sh\nulimit %s || exit 1\nexec "%s" "$@"\n' "$*" "$BUILD/repld" >"$TMP/repld"
	chmod 755 "$TMP/repld"
	REPLD=$TMP/repld
}

# raw_session: a session as it is, by OpenSSH's client, on standard input and output.
raw_session() {
	timeout 20 ssh -F none -i "$TMP/key" -o UserKnownHostsFile="$TMP/known_hosts" \
		-o BatchMode=yes -p "$SERVE_PORT" -T -s "$SERVE_USER@127.0.0.1" repl
}

# request METHOD [PARAMS]: one line, with the next id.
REQUEST_ID=0
request() {
	REQUEST_ID=$((REQUEST_ID + 1))
	printf '{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' "$REQUEST_ID" "$1" "${2:-{\}}"
}

hello() {
	request hello '{"versions":[1],"peer":"hostile@test"}'
}

# expect_answer PATTERN WHAT: the last line of $TMP/out matches.
expect_answer() {
	tail -n 1 "$TMP/out" | grep -Eq -- "$1" ||
		fail "$2: no '$1' in: $(tail -n 1 "$TMP/out" | head -c 2000)"
}

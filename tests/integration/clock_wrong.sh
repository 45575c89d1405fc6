#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clocks that are wrong by a century, on either side, and that step while a pool is open, cost nothing but the times
# that are shown.
. "$(dirname "$0")/api_lib.sh"
REPLCTL=${REPLCTL:-$BUILD/replctl}
CLOCK=$BUILD/tests/integration/wrong_clock.so
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
Y2100=4102444800

# clocks HERE THERE: what the initiator's and the target's clock say from now on, in seconds.
clocks() {
	for side in here there; do
		printf '%s' "$1" >"$TMP/$side.new"
		mv "$TMP/$side.new" "$TMP/$side"
		shift
	done
}

ctl() {
	LD_PRELOAD=$CLOCK WRONG_CLOCK=$TMP/here timeout -k 5 60 "$REPLCTL" --identity "$TMP/key" \
		--known-hosts "$TMP/known_hosts" "$@" </dev/null
}

shows() {
	pattern=$1
	shift
	ctl "$@" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	grep -q "$pattern" "$TMP/out" || fail "$*: no '$pattern' in: $(cat "$TMP/out")"
}

clocks 0 0
printf '#!/bin/sh\nLD_PRELOAD=%s WRONG_CLOCK=%s exec "%s" "$@"\n' "$CLOCK" "$TMP/there" "$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
make_keys
start_serve

# A machine without a battery begins with 1970: in its first second, too, a pool in parts is one.
mkdir "$TMP/serve/pools/d"
[ "$(id -u)" != 0 ] || chown --reference="$TMP/serve/pools" "$TMP/serve/pools/d"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n20M d\n' >"$TMP/serve/pools/set"
head -c 4M /dev/urandom >"$TMP/file"
shows . sync "$TMP/file" "$(pool set)"
shows '^set .*up-to-date' list "${T:=$SERVE_USER@127.0.0.1:$SERVE_PORT}"
shows . verify "$TMP/file" "$(pool set)"
shows '^created  *1970-01-01' info "$(pool set)"

LD_PRELOAD=$CLOCK WRONG_CLOCK=$TMP/here start_api
configure "$(pool p)"
ok set reconnect-max 500
ok map "$TMP/p" $((8 * MIB))
ok open 1
n=0
for pair in "0 $Y2100" "$Y2100 0" "1 1" "1000000000 $Y2100" "$Y2100 1000000000" "0 0"; do
	set -- $pair
	clocks "$1" "$2"
	n=$((n + 1))
	ok put $((n * 65536)) 65536 "$n"
	ok persist 0 $((n * 65536)) 65536
	shows '^p .*has it open\|^p ' status "$T"
	port=$SERVE_PORT
	hurt serve
	wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
	ok put $((n * 65536 + MIB)) 65536 "$n"
	ok persist 0 $((n * 65536 + MIB)) 65536
	clocks "$2" "$1"
	heal_at "$port"
	wait_for 20 established 0 || fail "with $pair it does not come back: $TEXT"
	ok compare 0
	same
done
clocks 1 $Y2100
ok close
shows '^updated  *2100-01-01' info "$(pool p)"
shows "$(pool p)" newest "$(pool p)"
ok open
ok compare 0
same
ok close
stop_api
shows . verify "$TMP/p" "$(pool p)"

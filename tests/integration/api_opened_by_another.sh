# SPDX-License-Identifier: BSD-3-Clause
# While a replica is away from its program another one begins to open it with another file of the same generation, which it
# is made equal to, and is killed before it has a generation of its own: the first one's marks are not believed of that.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far_beside
size=$((16 * MIB))
p=$TMP/serve/pools/p

generation() {
	ctl --json info "$(pool p)" >"$TMP/info" || fail "info"
	member generation.current <"$TMP/info"
}
made_equal() {
	cmp -s "$TMP/other" "$p"
}
back() {
	ok stat 0
	[ "$(field replication)" = 0 ]
}

start_api
configure "$(pool p)"
ok set reconnect-max 200
ok map "$TMP/p" $size
ok open 5
ok put 0 $size 1
ok persist 0 0 $size
cp "$TMP/p" "$TMP/other"
cp "$TMP/p.repl" "$TMP/other.repl"
dd if=/dev/urandom of="$TMP/other" bs=$MIB seek=8 count=1 conv=notrunc status=none
ctl pause --force "$TMP/p" >/dev/null 2>"$TMP/err" || fail "pause: $(cat "$TMP/err")"
wait_for 20 no_sessions || fail "a session stays"
ok put 0 $MIB 2
ok persist 0 0 $MIB
before=$(generation)
first_in=$API_IN first_out=$API_OUT

# The other one has a new replica, too, 16 MiB away at one a second: until that has all of it no generation begins.
start_api
configure "$(pool p)" "$FAR_TARGET/q"
ok set op-timeout 30000
ok map "$TMP/other" $size
link both rate 8400
echo open 5 >&"$API_IN"
wait_for 60 made_equal || fail "it is not made equal: $(tail -n 3 "$TMP/serve.log")"
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "the other's session stays"
[ "$(generation)" = "$before" ] || fail "the other has begun a generation"
API_IN=$first_in API_OUT=$first_out
ctl resume "$TMP/p" >/dev/null 2>"$TMP/err" || fail "resume: $(cat "$TMP/err")"
wait_for 30 back || fail "not back: $TEXT"
equal "$TMP/p" "$p"
ok close

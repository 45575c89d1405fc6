# SPDX-License-Identifier: BSD-3-Clause
# A replica of class page whose resync was cut off and gone on with has its round log from then on, as one that was not; so has one
# that is opened where nothing is to be brought.
API_DISK=1
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
size=$((24 * MIB + 777))

staging() {
	session=$(session_of p) && [ "$(stat -c %b "$TMP/serve/pools/p.repl")" -gt 16384 ]
}

back() {
	ok stat 0
	[ "$(field replication)" = 0 ]
}

# By its length in the sidecar.
has_log() {
	python3 -c 'import sys
slot = open(sys.argv[1], "rb").read(4096)
sys.exit(int.from_bytes(slot[536:544], "little") == 0)' "$TMP/serve/pools/p.repl" || fail "$1: no round log"
}

configure "$(pool p)"
ok set lanes 2
ok set reconnect-min 100
ok set reconnect-max 200
ok set resync-rate 8M
ok map "$TMP/p" $size
ok open 1
ok profile 0
[[ $TEXT == *page* ]] || { echo "skipped: $TMP is not of class page"; exit 77; }
ok put 0 $size 1
ok persist 0 0 $size
has_log "at first"
kill -STOP "$SERVE_PID"
kill -KILL "$(session_of p)"
ok put 0 $((size - MIB)) 2
ok persist 0 0 $((size - MIB))
kill -CONT "$SERVE_PID"
wait_for 20 staging || fail "nothing is staged: $(tail -n 3 "$TMP/serve.log")"
kill -KILL "$session"
wait_for 30 back || fail "not back: $TEXT"
grep -q 'bytes of a journal are gone on with' "$TMP/serve.log" || fail "it began anew: $(cat "$TMP/serve.log")"
ok put $((size - 100)) 100 3
ok persist 1 $((size - 100)) 100
has_log "brought back"
ok compare 0
same

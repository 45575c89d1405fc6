# SPDX-License-Identifier: BSD-3-Clause
# Where a program has made stacks of 16 KiB the default, for very many threads, those of the library have what they need.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
ok stack 16384
configure "$(pool one)" "$(pool two)"
ok set reconnect-max 500
ok set metrics-file "$TMP/metrics"
ok set after-crash dirty-map
ok map "$TMP/p" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
hurt kill
ok put 0 4096 2
ok persist 0 0 4096
wait_for 30 established 0 || fail "the first one does not come back: $TEXT"
wait_for 30 established 1 || fail "the second one does not come back: $TEXT"
ok compare 0
same
ok compare 1
same
ok close
# What ships to one that nobody waits for, and who looks up a host's name.
configure "$SERVE_USER@localhost:$SERVE_PORT/one"
echo "[localhost]:$SERVE_PORT $(cut -d ' ' -f 1,2 "$TMP/serve_host_key.pub")" >>"$TMP/known_hosts"
ok set async-target "$(pool two)"
ok open
ok put 0 $MIB 3
ok persist 0 0 $MIB
ok close
equal "$TMP/p" "$TMP/serve/pools/one"
equal "$TMP/p" "$TMP/serve/pools/two"
stop_api

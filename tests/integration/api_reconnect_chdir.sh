# SPDX-License-Identifier: BSD-3-Clause
# A program that has changed its directory since it opened its pool, by relative paths, gets a lost replica back.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
cd "$TMP" || exit 1
start_api
configure "$(pool p)"
ok set identity key
ok set known-hosts known_hosts
ok set reconnect-max 500
ok map "$TMP/p" $MIB
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
ok chdir /
hurt kill
wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
ok put 0 4096 2
ok persist 0 0 4096
wait_for 20 established 0 || fail "it does not come back: $TEXT"
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api

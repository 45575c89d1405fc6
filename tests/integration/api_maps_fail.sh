# SPDX-License-Identifier: BSD-3-Clause
# A program that has no descriptor left for a moment while it opens its pool is told so; the pool is not taken for one in
# no file, of which no record is kept.
. "$(dirname "$0")/api_lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
cat >"$TMP/shell" <<END
#!/bin/sh
CALL_FAILS="maps 1" LD_PRELOAD=$BUILD/tests/integration/call_fails.so exec "$API_SHELL"
END
chmod 755 "$TMP/shell"
API_SHELL=$TMP/shell
make_keys
start_serve
start_api
configure "$(pool p)"
ok map "$TMP/p" $MIB
refused REPL_E_LIMIT "which file is mapped, if any: /proc/thread-self/maps: Too many open files" open 1
[ ! -e "$TMP/serve/pools/p" ] || fail "the pool was made"
ok open 1
ok put 0 $MIB 1
ok persist 0 0 $MIB
[ -s "$TMP/p.repl" ] || fail "no record is kept"
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api

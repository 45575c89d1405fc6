# SPDX-License-Identifier: BSD-3-Clause
# replctl wait takes as long as it was told, and no longer, also where the program does not answer.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool p)"
ok map "$TMP/p" $MIB
ok open 1
program=$(api_child)
signalled STOP "$program"
begin=$(date +%s%3N)
ctl_fails 9 "does not answer" wait "$TMP/p" --timeout 1
took=$(($(date +%s%3N) - begin))
kill -CONT "$program"
[ "$took" -ge 900 ] && [ "$took" -le 3500 ] || fail "it took $took ms"
# As long as it has not taken, an answer is waited for all the same.
ctl wait "$TMP/p" --timeout 0 >"$TMP/out" || fail "$?: $(cat "$TMP/out")"
ok close
stop_api

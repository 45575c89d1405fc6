# SPDX-License-Identifier: BSD-3-Clause
# Where /proc is not mounted, as in a bare chroot, a pool in a file is not taken for one that is in none, of which no record
# is kept: it is refused, until the file is named. TCP looks after idle lanes as elsewhere.
. "$(dirname "$0")/api_lib.sh"
# The leak sanitizer needs /proc at the end of the program.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
command -v ss >/dev/null || { echo "skipped: no ss (package iproute2)"; exit 77; }
unshare -m true 2>/dev/null || { echo "skipped: no mount namespace to be had"; exit 77; }
make_keys
start_serve
printf '#!/bin/sh\nexec unshare -m "%s"\n' "$API_SHELL" >"$TMP/shell"
chmod 755 "$TMP/shell"
API_SHELL=$TMP/shell
start_api
configure "$(pool p)"
nsenter -m -t "$(api_child)" mount -t tmpfs none /proc || fail "/proc stays"
ok map "$TMP/p" $MIB
refused REPL_E_FAILED "mount /proc, or name the file by 'pool-file': /proc/thread-self/maps: No such file" open 1
ok set pool-file "$TMP/p"
ok set lanes 2
ok open 1
wait_for 10 lanes_kept 2 || fail "$(ss -tnop)"
ok put 0 $MIB 1
ok persist 0 0 $MIB
[ -s "$TMP/p.repl" ] || fail "no record is kept"
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api

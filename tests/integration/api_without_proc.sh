# SPDX-License-Identifier: BSD-3-Clause
# Where /proc is not mounted, as in a bare chroot, a pool in a file is not taken for one that is in none, of which no record
# is kept: it is refused, until the file is named. TCP looks after idle lanes as elsewhere. So it is where the name that /proc
# tells leads nowhere, or to another file; not where the file is on overlayfs, where older kernels tell its layer's number.
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

start_api
configure "$(pool under)"
mkdir "$TMP/disk"
ok map "$TMP/disk/under" $MIB
nsenter -m -t "$(api_child)" mount -t tmpfs none "$TMP/disk" || fail "nothing is mounted on it"
refused REPL_E_FAILED "can't tell which file is mapped.*'pool-file': $TMP/disk/under: No such file" open 1
nsenter -m -t "$(api_child)" truncate -s $MIB "$TMP/disk/before" "$TMP/disk/under" || fail "no other file"
[ "$(nsenter -m -t "$(api_child)" stat -c %i "$TMP/disk/under")" != "$(stat -c %i "$TMP/disk/under")" ] || fail "two of a number"
refused REPL_E_FAILED "can't tell which file is mapped.*'pool-file': $TMP/disk/under is another one" open 1
[ ! -e "$TMP/serve/pools/under" ] || fail "the pool was made"
nsenter -m -t "$(api_child)" umount "$TMP/disk" || fail "it stays mounted"
ok open 1
[ -s "$TMP/disk/under.repl" ] || fail "no record is kept"
ok close
stop_api

start_api
configure "$(pool over)"
mkdir "$TMP/over" "$TMP/lower" "$TMP/upper" "$TMP/work"
truncate -s $MIB "$TMP/lower/over"
if nsenter -m -t "$(api_child)" mount -t overlay none "$TMP/over" \
	-o "lowerdir=$TMP/lower,upperdir=$TMP/upper,workdir=$TMP/work"; then
	ok map "$TMP/over/over" $MIB
	ok open 1
	[ -s "$TMP/upper/over.repl" ] || fail "no record is kept"
	ok close
fi
stop_api

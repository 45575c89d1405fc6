# SPDX-License-Identifier: BSD-3-Clause
# A log fills, wraps, is trimmed and read back by each method of persistence, and after it the replica
# equals the range.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"
LOAD=$BUILD/tests/integration/log_load

# try METHOD KIND: enough calls of three writers to go round once.
try() {
	rm -f "$TMP"/local* "$TMP/journal"
	echo | timeout 30 "$LOAD" run 7 "$TMP/local" "$TMP/journal" "$2" 3 120 "$T/$1" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" method="$1" \
		>"$TMP/said" 2>"$TMP/load.log" || fail "$1: the load failed"
	timeout 20 "$LOAD" check "$TMP/local" "$TMP/journal" "$T/$1" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" method="$1" >"$TMP/verdict" 2>"$TMP/check.log" ||
		lost "$1: $(cat "$TMP/verdict")"
	echo "$1, kind $2: $(cat "$TMP/verdict")"
	ctl verify "$TMP/local" "$T/$1" >"$TMP/verify.log" 2>&1 || lost "$1: the replica differs"
}

make_keys
start_serve "rqwrb = pm"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
try message 1
try general-purpose 2
try appliance 3
try completion 4
try write-imm 1
try write-imm-read 2
try deposit 3
try deposit-completion 1

# SPDX-License-Identifier: BSD-3-Clause
# A log that is opened again on the same handle keeps what is appended where a trim was not finished, and
# replicates what an append that failed has left. Threads that open it by turns find what each has left.
[ -w /dev/shm ] || exit 77
export TMPDIR=/dev/shm
. "$(dirname "$0")/lib.sh"

# again HOW KEY=VALUE...
again() {
	timeout 30 "$BUILD/tests/integration/log_again" "$1" "$TMP/$1" "$T/$1" identity="$TMP/key" \
		known-hosts="$TMP/known_hosts" "${@:2}" >"$TMP/said" 2>"$TMP/again.log" ||
		fail_by $? "$1: $(cat "$TMP/again.log")"
	cat "$TMP/said"
	ctl verify "$TMP/$1" "$T/$1" >"$TMP/verify.log" 2>&1 || lost "$1: the replica differs"
	rm "$TMP/$1"*
}

make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
again trim lanes=1
again beside lanes=1
again busy lanes=2 op-timeout=3000
grep -q "records: [12]" "$TMP/said" || fail "records"
again turns lanes=1

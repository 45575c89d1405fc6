# SPDX-License-Identifier: BSD-3-Clause
# A hangup that whoever starts replctl has it ignore, as nohup does, does not end a sync; else it is told as an interrupt.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
gate=$TMP/serve/gate
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s exec "%s" "$@"\n' "$BUILD/tests/integration/slow_space.so" "$gate" \
	"$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >file

# hangs_up HOW POOL: a sync with --HOW-signal of env(1) gets a SIGHUP while the target makes its pool; $status.
# (SIGINT and SIGTERM are for a moment a library's of libfabric's, which is being loaded then.)
hangs_up() {
	: >"$gate"
	env "--$1-signal=HUP" "$REPLCTL" --identity key --known-hosts known_hosts sync file "$T/$2" \
		</dev/null >bg.out 2>bg.err &
	CTL_PID=$!
	PIDS="$PIDS $CTL_PID"
	wait_for 20 test -e "$gate.met" || fail "no sync at the target: $(cat bg.err)"
	kill -HUP "$CTL_PID"
	rm -f "$gate" "$gate.met"
	wait "$CTL_PID"
	status=$?
}

hangs_up ignore p
[ "$status" -eq 0 ] || fail "exit $status: $(cat bg.err)"
cmp -s file serve/pools/p || lost "it is not synced"
hangs_up default q
[ "$status" -eq 1 ] || fail "exit $status: $(cat bg.out)"
grep -q "interrupted before anything was copied" bg.err || fail "$(cat bg.err)"

# SPDX-License-Identifier: BSD-3-Clause
# fails_lib.sh - on top of lib.sh: replctl, one of whose system calls fails, as CALL_FAILS says (call_fails.c).
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS

ctl() {
	LD_PRELOAD=$BUILD/tests/integration/call_fails.so "$REPLCTL" --identity "$TMP/key" \
		--known-hosts "$TMP/known_hosts" "$@" </dev/null
}

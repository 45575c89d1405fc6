# SPDX-License-Identifier: BSD-3-Clause
# What programs do wrong ends in an error that says so, and in nothing else: calls without a handle, a
# range that is not mapped or longer than its file, too few descriptors, which is no more when there are
# enough, threads that are cancelled in the middle of calls, and logs that lie over each other.
. "$(dirname "$0")/lib.sh"
start_target
misuse() {
	timeout -k 1 120 "$BUILD/tests/integration/api_misuse" "$@" 2>"$TMP/err" ||
		fail "$1: status $?: $(cat "$TMP/err")"
}

misuse null
for what in range files cancel logs; do
	misuse "$what" "$T/$what" "$TMP/key" "$TMP/known_hosts" "$TMP/$what"
done
cmp "$TMP/cancel" "$TMP/serve/pools/cancel" || lost "the replica differs"

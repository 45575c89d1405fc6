#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of its pool durable before the file has its size is replicated when it has; of an odd size
# it is told, or ended with on-loss = fail.
. "$(dirname "$0")/run_lib.sh"
start_target

# The empty file is none of these.
ON_LOSS=degrade odd sized '^[^:]*: [^ ]*/sized: NOT REPLICATED: its size of 5000 bytes is not a multiple of 4096; next: [^:]*
[^:]*: [^ ]*/sized: is replicated now$'

# Of one that it gets later it is told once.
ON_LOSS=degrade odd behind '^[^:]*: [^ ]*/behind: bytes 1048576 to 1048676 lie behind its size of 1048576: NOT REPLICATED; next: [^:]*$'

# fails MODE PATTERN
fails() {
	local status=0

	(run "$TMP/fails.$1" "fails.$1" "$BUILD/tests/integration/pmem_odd" "$1" "$TMP/fails.$1") >"$TMP/out" 2>&1 ||
		status=$?
	[ $status -eq 134 ] || fail "$1, with on-loss = fail, ends with $status: $(cat "$TMP/out")"
	grep -q "$2" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
}
fails sized 'NOT REPLICATED: its size of 5000 bytes'
fails behind 'lie behind its size'

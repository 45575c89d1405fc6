#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program that makes bytes of its pool durable before the file has its size is replicated when it has; of an odd size
# it is told, or ended with on-loss = fail.
. "$(dirname "$0")/run_lib.sh"
start_target

# The empty file is none of these.
ON_LOSS=degrade odd sized '^[^:]*: [^ ]*/sized: NOT REPLICATED: its size of 5000 bytes is not a multiple of 4096; next: [^:]*
[^:]*: [^ ]*/sized: is replicated now$'

status=0
(run "$TMP/fails" fails "$BUILD/tests/integration/pmem_odd" sized "$TMP/fails") >"$TMP/out" 2>&1 || status=$?
[ $status -eq 134 ] || fail "with on-loss = fail it ends with $status: $(cat "$TMP/out")"
grep -q 'fails: NOT REPLICATED: its size of 5000 bytes' "$TMP/out" || fail "it says: $(cat "$TMP/out")"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A child of which no handler of fork(2) tells, by _Fork(3), clone(2) or vfork(2), neither hangs nor uses its parent's
# connections, whose replica stays; of what the child writes while nobody has the pool open it is told.
. "$(dirname "$0")/run_lib.sh"
start_target
# In such a child the leak sanitizer looks for threads that are its parent's.
ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0

odd unseen '^[^:]*: [^ ]*/unseen: made durable by a child of _Fork[^:]*: NOT REPLICATED [^:]*: use fork\(2\)$'
odd shares '^[^:]*: [^ ]*/shares: made durable by a child that shares [^:]*: on the replicas when [^:]*$'
odd borrows '^[^:]*: [^ ]*/borrows: made durable by a child that shares [^:]*: on the replicas when [^:]*$'
! grep -q 'is not known to be complete' "$TMP/serve.log" || fail "a session was not closed: $(cat "$TMP/serve.log")"

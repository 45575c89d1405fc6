# SPDX-License-Identifier: BSD-3-Clause
# A log that has reached the limit for the size of files, or is a directory, does not end the program.
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "16M rem.part"
local_set rem.set
make_pool

RPMEM_LOG_FILE=$TMP/full
truncate -s 64M "$TMP/full"
(ulimit -f 32768 && fill 5) >"$TMP/out" || fail "with a full log it ends: $(cat "$TMP/out")"
[ "$(stat -c %s "$TMP/full")" -eq $((64 << 20)) ] || fail "the log is not at its limit"
RPMEM_LOG_FILE=$TMP
fill 5 >"$TMP/out" || fail "with a directory as its log it ends: $(cat "$TMP/out")"

# SPDX-License-Identifier: BSD-3-Clause
# A set in files that was promoted is opened where it lies by PMDK's programs; demoted it is the initiator's replica again.
. "$(dirname "$0")/compat_lib.sh"
start_compat

# In one file: also the part by itself.
target_set rem.set "16M $POOLS/p"
local_set rem.set
make_pool
filled=$(fill 200) || exit 1
head -c 4096 "$POOLS/p" >"$TMP/header"
primary
opens "$POOLS/p"
here "$FILL" fill "$POOLS/rem.set" test 10
replica
filled=$(fill 5) || exit 1
lose_and_sync "$filled"

# Killed before the header was written, or amid that: the same again.
dd if="$TMP/header" of="$POOLS/p" conv=notrunc bs=4096 2>/dev/null
primary
replica
dd if="$TMP/header" of="$POOLS/p" conv=notrunc bs=512 count=4 2>/dev/null
primary
replica
filled=$(fill 5) || exit 1
lose_and_sync "$filled"

# SPDX-License-Identifier: BSD-3-Clause
# A pool is opened with a replica that is new, 1 Mbit/s away: the whole of it gets there, which takes longer than any
# request may; and small persists go there in time.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
start_api
OP_TIMEOUT=4000
configure "$FAR_TARGET/p"
ok set connect-timeout 4000
ok map "$TMP/p" $((2 * MIB))
ok put 0 $((2 * MIB)) 7
link both rate 1000
ok open 1
ok put 4096 4096 9
ok persist 0 4096 4096
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

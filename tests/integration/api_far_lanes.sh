# SPDX-License-Identifier: BSD-3-Clause
# Sixteen lanes to a target that is 600 ms away are opened within the deadline that four have there: all at once.
. "$(dirname "$0")/api_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
start_api
configure "$FAR_TARGET/p"
ok set lanes 16
ok map "$TMP/p" $((4 * MIB))
link both delay 300
ok open 1
link both delay 0
ok put 0 65536 7
for lane in $(seq 0 15); do
	ok persist "$lane" $((lane * 4096)) 4096
done
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

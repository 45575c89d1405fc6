# SPDX-License-Identifier: BSD-3-Clause
# A replica whose target has no room for a receive ring any more is made equal and fails at the last step: its reason
# names the ring and what helps, and it comes back when there is room.
. "$(dirname "$0")/full_lib.sh"

start_on_disk tmpfs 64m
configure "$(pool p)"
ok set lanes 4
ok set method deposit
ok map "$TMP/local" $((4 * MIB + 777))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))
ctl pause "$TMP/local" "$(pool p)" >/dev/null || fail "pause"
wait_for 20 no_sessions || fail "its session stays"
ok put 65536 4096 2
ok persist 1 65536 4096

# For a journal of that, not for the ring.
leave 400000
ctl resume "$TMP/local" "$(pool p)" >/dev/null || fail "resume"
told() {
	ctl why "$TMP/local" >"$TMP/why" && grep -q '^message .*receive ring.* make room' "$TMP/why" &&
		grep -q '^reason *refused:' "$TMP/why"
}
wait_for 20 told || fail "not told: $(cat "$TMP/why")"

rm -f "$pools"/.filler
ctl resume "$TMP/local" "$(pool p)" >/dev/null || fail "resume"
back "with room"
is reason ""
ok compare 0
same
ok close
equal "$TMP/local" "$pools/p"
stop_api

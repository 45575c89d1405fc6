# SPDX-License-Identifier: BSD-3-Clause
# Two replicas that drains wait for are lost at once while an asynchronous one lags behind both, and come back to targets whose
# journals don't take what they lack: as long as that one lacks what they have, none of them is made inconsistent. If the
# program's machine is lost then, what was acknowledged before is there.
. "$(dirname "$0")/laggard_lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far_beside "journal-max = 1M"
S=$(pool s)
T=$(pool t)
X=$FAR_TARGET/x
start_api
configure "$S" "$T"
ok set async-target "$X"
ok set on-loss degrade
ok set lanes 1
ok set op-timeout 30000
ok set heartbeat-timeout 60000
ok set async-lag-bytes 128M
ok set async-lag-time 60000
ok set resync-rate 1M
ok map "$TMP/p" $size
fill 2
# A MiB a second.
link both rate 8400
had=$((6 * MIB))
ok put 0 $had 2
ok persist 0 0 $had
cp "$TMP/p" "$TMP/acknowledged"
ctl pause "$TMP/p" "$S" >/dev/null && ctl pause "$TMP/p" "$T" >/dev/null || fail "pause"
x_has() {
	cmp -s -n "$had" "$TMP/acknowledged" "$TMP/far/pools/x"
}
! x_has || fail "x does not lag"
ok put $had $((4 * MIB)) 3
ok persist 0 $had $((4 * MIB))
ctl resume "$TMP/p" "$S" >/dev/null && ctl resume "$TMP/p" "$T" >/dev/null || fail "resume"
one_begins() {
	ctl status "$TMP/p" >"$TMP/out"; grep -q '^state.*inconsistent' "$TMP/out"
}
wait_for 60 one_begins || fail "none is copied directly: $(cat "$TMP/out")"
x_has || lost "x lacks what those have that are copied into: $(cat "$TMP/out")"
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
link both rate 0
no_writer() {
	ctl newest "$S" "$T" "$X" >"$TMP/out" 2>"$TMP/err" && ! grep -q writer "$TMP/out"
}
wait_for 20 no_writer || fail "newest: $(cat "$TMP/out" "$TMP/err")"
ctl restore "$(sed -n 's/^newest  *//p' "$TMP/out")" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
cmp -n "$had" "$TMP/acknowledged" "$TMP/restored" >&2 || lost "what was acknowledged is gone"

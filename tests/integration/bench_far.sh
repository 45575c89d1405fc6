# SPDX-License-Identifier: BSD-3-Clause
# replctl bench, by itself and of remote logs, goes on with a target to which each round trip takes long: the target
# hears of it in the middle of a part too.
[ -w /dev/shm ] && export TMPDIR=/dev/shm # where slices have many appends
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far "heartbeat = 1000" "heartbeat-timeout = 6000"
T=$FAR_TARGET

# opened: one more of them has all that it needs to begin with.
opened() {
	[ "$(grep -c "baseline of" "$TMP/serve.log")" -gt "$before" ]
}

# Both at once: most of it is waiting.
begun=
for words in "bench --size 4M --seconds 50" "bench remotelog --method message"; do
	before=$(grep -c "baseline of" "$TMP/serve.log")
	ctl_start $words "$T"
	wait_for 20 opened || fail "$words: nothing is measured: $(cat "$TMP/bg.err")"
	mv "$TMP/bg.err" "$TMP/bg.err.$CTL_PID"
	begun="$begun $CTL_PID"
done
link both delay 50
# Longer than the target bears silence.
sleep 9
for pid in $begun; do
	! gone "$pid" || fail "it has ended: $(cat "$TMP/bg.err.$pid")"
	kill -TERM "$pid"
done
for pid in $begun; do
	wait_for 60 gone "$pid" || fail "an interrupt ends it not"
	grep -q interrupted "$TMP/bg.err.$pid" || fail "no interrupt is told: $(cat "$TMP/bg.err.$pid")"
done
! grep -q "has been silent" "$TMP/serve.log" || fail "the target heard nothing"
link both delay 0

# A slice that was short when it began takes minutes, and an interrupt does not wait for its end.
before=$(grep -c "lanes open on" "$TMP/serve.log")
ctl_start bench remotelog --method message "$T"
way_opened() {
	[ "$(grep -c "lanes open on" "$TMP/serve.log")" -gt $((before + 1)) ]
}
wait_for 20 way_opened || fail "nothing is appended: $(cat "$TMP/bg.err")"
sleep 1
link both delay 250
sleep 2
kill -TERM "$CTL_PID"
wait_for 30 gone "$CTL_PID" || fail "an interrupt waits for the end of a slice"
link both delay 0

# A target that is gone ends it, and who reads that is told what helps where it was only far.
printf "op-timeout = 2000\nconnect-timeout = 4000\n" >>"$TMP/login.conf"
before=$(grep -c "baseline of" "$TMP/serve.log")
ctl_start bench --size 4M --seconds 50 "$T"
wait_for 20 opened || fail "nothing is measured: $(cat "$TMP/bg.err")"
sleep 1
link both drop
wait_for 60 gone "$CTL_PID" || fail "a dead link does not end it"
link both clear
grep -q "smaller --size.* op-timeout" "$TMP/bg.err" || fail "no option is named: $(cat "$TMP/bg.err")"

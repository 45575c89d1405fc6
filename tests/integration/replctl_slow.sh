# SPDX-License-Identifier: BSD-3-Clause
# A whole pool goes to a target and comes back over a link of 2 Mbit/s, where a megabyte takes longer than any request
# may, as long as something moves; a link on which nothing does ends both.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/far_lib.sh"
start_far
T=$FAR_TARGET
echo "op-timeout = 2500" >>"$TMP/login.conf"
head -c 2M /dev/urandom >"$TMP/pool"
link both rate 2000
ctl create "$T/p" --from "$TMP/pool" >/dev/null 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
cmp "$TMP/pool" "$TMP/serve/pools/p" || lost "the replica differs"
ctl restore "$T/p" "$TMP/back" >/dev/null 2>"$TMP/err" || fail "restore: $(cat "$TMP/err")"
cmp "$TMP/pool" "$TMP/back" || lost "what was restored differs"

# Half of it is on its way behind 4 seconds.
for words in "create $T/q --from $TMP/pool" "restore $T/p $TMP/again"; do
	link both rate 2000
	ctl_start $words
	sleep 4
	! gone "$CTL_PID" || fail "$words has ended: $(cat "$TMP/bg.err")"
	link both drop
	wait_for 30 gone "$CTL_PID" || fail "$words: a dead link does not end it"
	grep -q "did not answer\|timed out\|did not send" "$TMP/bg.err" || fail "$words: $(cat "$TMP/bg.err")"
	link both clear
done

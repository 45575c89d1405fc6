# SPDX-License-Identifier: BSD-3-Clause
# A server that writes to the standard error for ever keeps nobody beyond the deadline, neither who reads
# nor who closes.
. "$(dirname "$0")/lib.sh"
make_keys
ssh-keygen -q -t ed25519 -N '' -f "$TMP/host_key" || fail "ssh-keygen"
port=$(free_port)
# On one processor, and who reads gives way: there is always more to read.
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
taskset -cp "$cpu" $$ >/dev/null || exit 77
"$BUILD/tests/integration/ssh_asks" complaints "$port" "$TMP/host_key" >"$TMP/asks.out" 2>"$TMP/asks.log" &
PIDS="$PIDS $!"
wait_for 10 grep -q listening "$TMP/asks.out" || fail "the server does not start"
trust "$port" "$TMP/host_key.pub"
echo hello | timeout 30 nice -n 19 "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" -t 2000 cat "x@127.0.0.1:$port" \
	>"$TMP/out" 2>"$TMP/err"
status=$?
! grep -q "another libssh" "$TMP/asks.log" || exit 77
[ "$status" -eq 1 ] || fail "status $status: $(cat "$TMP/err")"
grep -q "^timeout: .*timed out waiting for" "$TMP/err" || fail "not a deadline but: $(cat "$TMP/err")"

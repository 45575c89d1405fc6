# SPDX-License-Identifier: BSD-3-Clause
# A session that sends half a line and then nothing ends after heartbeat-timeout, and its pool is
# free for another writer.
. "$(dirname "$0")/fault.sh"
start_target "heartbeat = 200" "heartbeat-timeout = 2000"
start_victim
mkfifo "$TMP/in"
raw_session <"$TMP/in" >"$TMP/out" &
ssh_pid=$!
exec 3>"$TMP/in"
{
	hello
	request pool.create '{"name":"half","size":4096}'
	request pool.open '{"name":"half","mode":"write"}'
	printf '{"jsonrpc":"2.0","id":9,"me'
} >&3
wait_for 20 grep -q '"epoch"' "$TMP/out" || fail "pool.open: $(cat "$TMP/out")"
# Bytes that end no line are no sign of life.
(
	sleep 1
	printf 'thod' >&3
) &
wait_for 20 gone "$ssh_pid" || fail "the session goes on"
exec 3>&-
grep -q "the peer has been silent for 2000 ms" "$TMP/serve.log" || fail "no reason in the log"
{ hello && request pool.open '{"name":"half","mode":"write"}'; } | raw_session >"$TMP/out"
expect_answer '"state":"unknown".*"epoch":2' "the next writer"
check_victim

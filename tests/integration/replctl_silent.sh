# SPDX-License-Identifier: BSD-3-Clause
# A target that falls silent amid a command ends it by op-timeout, and the message names the request.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
{
	echo "[repl]"
	echo "op-timeout = 1500"
	# The target may fall silent when the lanes are being connected.
	echo "connect-timeout = 5000"
} >"$TMP/repl.conf"
export REPL_CONFIG=$TMP/repl.conf
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
head -c $((256 * MIB)) /dev/urandom >"$TMP/p"
ctl create "$T/p" --from "$TMP/p" >/dev/null 2>&1 || fail "create"
ctl verify "$TMP/p" "$T/p" >"$TMP/out" 2>"$TMP/err" &
verify=$!
wait_for 10 session_of p >/dev/null || fail "no session"
signalled STOP "$(session_of p)"
since=$(date +%s)
wait $verify
rc=$?
[ $(($(date +%s) - since)) -le 9 ] || fail "it took $(($(date +%s) - since)) s"
[ $rc = 9 ] || fail "status $rc: $(cat "$TMP/err")"
grep -q "127.0.0.1: timed out waiting for the answer to [a-z]*\.[a-z]*$\|lane" "$TMP/err" || fail "$(cat "$TMP/err")"
grep -q "or op-timeout where an answer is waited for" "$TMP/err" || fail "no step: $(cat "$TMP/err")"
kill -KILL "$(session_of p)"

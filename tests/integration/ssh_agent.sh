# SPDX-License-Identifier: BSD-3-Clause
# A key with a passphrase is used through ssh-agent; an agent that does not answer is a timeout.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT

ssh-agent -D -a "$TMP/agent" >/dev/null 2>&1 &
agent=$!
PIDS="$PIDS $agent"
wait_for 20 test -S "$TMP/agent" || fail "ssh-agent does not start"
export SSH_AUTH_SOCK=$TMP/agent
cp "$TMP/key" "$TMP/locked_key"
ssh-add -q "$TMP/key" || fail "ssh-add"
ssh-keygen -q -p -N secret -f "$TMP/locked_key" >/dev/null || fail "ssh-keygen -p"

echo hello | "$CHANNEL_CAT" -i "$TMP/locked_key" -k "$TMP/known_hosts" cat "$target" \
	>"$TMP/out" || fail "locked identity, agent has the key"
echo hello | "$CHANNEL_CAT" -k "$TMP/known_hosts" cat "$target" >"$TMP/out" ||
	fail "no identity, agent has the key"

signalled STOP "$agent"
expect_error timeout "ssh-agent at '$TMP/agent'" \
	"$CHANNEL_CAT" -t 700 -k "$TMP/known_hosts" cat "$target"

# SPDX-License-Identifier: BSD-3-Clause
# An agent with more keys than the server takes attempts, sshd or that of repld, is told as what it is, at once, and not
# as silence of the server until the deadline; the good key by itself gets in.
. "$(dirname "$0")/lib.sh"
make_keys
start_sshd "Subsystem repl /bin/cat" "MaxAuthTries 2"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
ssh-agent -D -a "$TMP/agent" >/dev/null 2>&1 &
PIDS="$PIDS $!"
wait_for 20 test -S "$TMP/agent" || fail "ssh-agent does not start"
export SSH_AUTH_SOCK=$TMP/agent
for i in 1 2 3; do
	ssh-keygen -q -t ed25519 -N '' -f "$TMP/wrong$i" && ssh-add -q "$TMP/wrong$i" || fail "ssh-add"
done
ssh-add -q "$TMP/key" || fail "ssh-add"
cp "$TMP/key" "$TMP/locked" && ssh-keygen -q -p -P '' -N secret -f "$TMP/locked" >"$TMP/out" || fail "ssh-keygen"

# refused TARGET OPTION...
refused() {
	local at=$1

	shift
	expect_error auth "the server ended the login \(.*Too many.*ssh-agent has many.*'identity'" \
		"$CHANNEL_CAT" -t 15000 "$@" -k "$TMP/known_hosts" cat "$at"
}

begin=$(date +%s)
refused "$target"
refused "$target" -i "$TMP/locked"
[ $(($(date +%s) - begin)) -lt 15 ] || fail "it was waited for"
[ "$(echo hello | client cat "$target")" = hello ] || fail "the key by itself"

# repld takes some more.
ssh-add -q -d "$TMP/key" || fail "ssh-add -d"
start_serve
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
for i in $(seq 4 22); do
	ssh-keygen -q -t ed25519 -N '' -f "$TMP/wrong$i" && ssh-add -q "$TMP/wrong$i" || fail "ssh-add"
done
refused "$target"
ctl list "$target" >"$TMP/out" 2>&1 || fail "the key by itself: $(cat "$TMP/out")"

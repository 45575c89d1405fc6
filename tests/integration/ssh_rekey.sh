# SPDX-License-Identifier: BSD-3-Clause
# A session that lives for long has its keys exchanged anew: whoever begins that, not a byte is lost.
. "$(dirname "$0")/lib.sh"
command -v ssh >/dev/null || { echo "skipped: no ssh"; exit 77; }
make_keys

# sshd begins.
start_sshd "RekeyLimit 64K" "LogLevel DEBUG1"
client -c cat pump "$USER_NAME@127.0.0.1:$SSHD_PORT" 500000 || lost "bytes are lost under sshd"
[ "$(grep -c "SSH2_MSG_NEWKEYS sent" "$TMP/sshd.log")" -gt 3 ] || fail "sshd has not exchanged keys"
stop "$SSHD_PID"

# The client begins, under repld serve.
start_serve_with "$SERVE_WITH"
head -c 250000 /dev/zero | base64 -w 100 >"$TMP/in"
timeout 60 ssh -v -F none -o RekeyLimit=64K -i "$TMP/key" -o UserKnownHostsFile="$TMP/known_hosts" -p "$SERVE_PORT" \
	-s "$SERVE_USER@127.0.0.1" repl <"$TMP/in" >"$TMP/out" 2>"$TMP/ssh.log" || fail "ssh"
cmp "$TMP/in" "$TMP/out" || lost "bytes are lost under repld serve"
[ "$(grep -c "SSH2_MSG_NEWKEYS sent" "$TMP/ssh.log")" -gt 3 ] || fail "ssh has not exchanged keys"

# SPDX-License-Identifier: BSD-3-Clause
# Bytes, their end and the exit status pass between client and session unchanged.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
start_sshd "Subsystem repl /bin/cat"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
client pump "$target" 1048576 || fail "1 MiB both ways, repld serve"
client pump "$USER_NAME@127.0.0.1:$SSHD_PORT" 1048576 || fail "1 MiB both ways, sshd"

# One way at a time, far beyond every window: the reader starts when the writer has blocked.
head -c 8000000 /dev/urandom >"$TMP/blob"
mkfifo "$TMP/slow"
(sleep 1; cat) <"$TMP/slow" >"$TMP/copy" &
copier=$!
ssh -F none -p "$SERVE_PORT" -i "$TMP/key" -o BatchMode=yes \
	-o UserKnownHostsFile="$TMP/known_hosts" -s "${target%:*}" repl \
	<"$TMP/blob" >"$TMP/slow" || fail "ssh with 8 MB"
wait "$copier"
cmp "$TMP/blob" "$TMP/copy" || lost "8 MB came back changed"

for answer in "3 lost" "127 config"; do
	read -r status kind <<<"$answer"
	echo "exit $status" | client cat "$target" 2>"$TMP/err" && fail "no error at exit $status"
	grep -q "^$kind: .*exit status $status" "$TMP/err" || fail "status: $(cat "$TMP/err")"
done

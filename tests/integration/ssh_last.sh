# SPDX-License-Identifier: BSD-3-Clause
# The end of a session that a client does not take holds no place in sessions-max for ever.
. "$(dirname "$0")/lib.sh"
make_keys
# It ends with more to say than all buffers hold, to whoever asks for it.
cat >"$TMP/talker" <<'END'
#!/bin/sh
read -r line
[ "$line" = talk ] || { echo "$line"; exit 0; }
yes >&1 &
sleep 2
kill $!
END
chmod 755 "$TMP/talker"
start_serve_with "$TMP/talker" 1
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
mkfifo "$TMP/in" "$TMP/out"
client cat "$target" <"$TMP/in" >"$TMP/out" &
deaf=$!
PIDS="$PIDS $deaf"
# Nobody reads what it prints.
exec 3>"$TMP/in" 4<"$TMP/out"
echo talk >&3
begun() {
	grep -q "session of .* begins" "$TMP/serve.log"
}
wait_for 10 begun || fail "no session"
ended() {
	grep -q "session of .* has ended" "$TMP/serve.log"
}
signalled STOP "$deaf"
wait_for 60 ended || fail "the session lasts for as long as its client does not read"
echo hello | client -t 5000 cat "$target" >"$TMP/said" || fail "no room after it"
grep -q hello "$TMP/said" || fail "said: $(cat "$TMP/said")"

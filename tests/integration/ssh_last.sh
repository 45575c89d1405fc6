# SPDX-License-Identifier: BSD-3-Clause
# The end of a session that a client does not take holds no place in sessions-max for ever; and by which fault of its own it
# has ended is in the log, whoever its client tells.
. "$(dirname "$0")/lib.sh"
make_keys
# It ends with more to say than all buffers hold, to whoever asks for it.
cat >"$TMP/talker" <<'END'
#!/bin/sh
read -r line
case $line in
talk) ;;
[A-Z]*) kill "-$line" $$ ;;
*) echo "$line"; exit 0 ;;
esac
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
	[ "$(grep -c "session of .* has ended" "$TMP/serve.log")" -ge "$1" ]
}
signalled STOP "$deaf"
wait_for 60 ended 1 || fail "the session lasts for as long as its client does not read"
echo hello | client -t 5000 cat "$target" >"$TMP/said" || fail "no room after it"
grep -q hello "$TMP/said" || fail "said: $(cat "$TMP/said")"

CRASH_DUE='session [0-9]* ended by signal 6'
count=2
for signal in TERM KILL ABRT; do
	wait_for 20 ended $count || fail "a session does not end"
	echo $signal | client -t 5000 cat "$target" >"$TMP/said" 2>&1
	count=$((count + 1))
done
wait_for 20 ended $count || fail "sessions do not end"
grep "session [0-9]* ended by signal" "$TMP/serve.log" >"$TMP/told"
grep -q " error: .*$CRASH_DUE\$" "$TMP/told" && [ "$(wc -l <"$TMP/told")" -eq 1 ] || fail "in the log: $(cat "$TMP/serve.log")"

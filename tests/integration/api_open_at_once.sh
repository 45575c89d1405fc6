# SPDX-License-Identifier: BSD-3-Clause
# repl_open() connects its targets at once: 16 whose sessions wait for each other are opened; those
# that are silent cost one connect-timeout together; what one refuses ends it soon, by its name, with
# nothing changed on the others; and sshd's bound for logins under way is kept.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
mkdir "$TMP/far"
printf '[repld]\npool-dir = %s\n' "$TMP/far" >"$TMP/far.conf"
# A session begins when so many are there.
cat >"$TMP/meet.sh" <<END
#!/bin/sh
: >"$TMP/met/\$\$"
i=0
until [ "\$(ls "$TMP/met" | wc -l)" -ge "\$(cat "$TMP/party")" ] || [ \$i -gt 400 ]; do
	i=\$((i + 1))
	sleep 0.05
done
exec "$REPLD" session --config "$TMP/far.conf"
END
chmod 755 "$TMP/meet.sh"
start_sshd
first=$SSHD_PORT
ssh_pid=$SSHD_PID
mkdir "$TMP/met"
start_sshd
second=$SSHD_PORT

start_api
many=()
for i in 1 2 3 4 5 6 7 8; do
	many+=("$USER_NAME@127.0.0.1:$first/a$i" "$USER_NAME@127.0.0.1:$second/b$i")
done
echo 16 >"$TMP/party"
configure "${many[@]}"
ok set lanes 1
ok set command "$TMP/meet.sh"
ok set on-loss fail
ok set connect-timeout 15000
ok map "$TMP/p" $MIB
ok put 0 $MIB 1
ok open 1
ok put 4096 4096 2
ok persist 0 4096 4096
ok close
for file in "$TMP"/far/[ab][1-8]; do
	equal "$TMP/p" "$file"
done
[ "$(ls "$TMP"/far/*.repl | wc -l)" = 16 ] || fail "not 16 pools: $(ls "$TMP/far")"

# Of one server's 16 no more than sshd bears without a login.
grep -q "MaxStartups\|drop connection" "$TMP/sshd.log" && fail "$(cat "$TMP/sshd.log")"
echo 1 >"$TMP/party"
many=()
for i in $(seq 16); do
	many+=("$USER_NAME@127.0.0.1:$first/a$i")
done
configure "${many[@]}"
ok set lanes 1
ok set command "$TMP/meet.sh"
ok set on-loss fail
ok set connect-timeout 15000
ok open 1
ok close
for file in "$TMP"/far/a*[0-9]; do
	equal "$TMP/p" "$file"
done
grep -q "MaxStartups\|drop connection" "$TMP/sshd.log" && fail "$(cat "$TMP/sshd.log")"

# One is of another past: nothing changes anywhere.
configure "$(pool x)"
ok map "$TMP/other" $MIB
ok put 0 $MIB 9
ok open 1
ok close
cp "$TMP/far/a1" "$TMP/before"
ok map "$TMP/p" $MIB
ok put 0 $MIB 3
configure "$USER_NAME@127.0.0.1:$first/a1" "$(pool x)" "$USER_NAME@127.0.0.1:$first/a2"
ok set command "$TMP/meet.sh"
refused REPL_E_DIVERGED "127.0.0.1:$SERVE_PORT/x" open 0
equal "$TMP/before" "$TMP/far/a1"

# The servers are silent: what one takes all take.
signalled STOP "$ssh_pid"
many=("${many[@]:0:4}")
configure "${many[@]}" "$(pool y)"
ok set command "$TMP/meet.sh"
ok set lanes 1
ok set connect-timeout 2000
ok open 1
within $((2 * 2000))
ok stat 4
is replication 0
ok stat 3
is replication 2
ok close
kill -CONT "$ssh_pid"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A pause does not override on-loss: where by it calls of the program would fail or wait it is refused, unless it is forced.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
FILE=$TMP/pool
A=$(pool a)
B=$(pool b)

# policy ON-LOSS ACK TARGET...
policy() {
	configure "${@:3}"
	ok set on-loss "$1"
	ok set ack "$2"
	ok set block-timeout 300
	ok set reconnect-max 300
	[ -e "$FILE" ] || ok map "$FILE" $((1 * MIB))
	ok open 1
}

unpaused() {
	ctl status --json "$FILE" >"$TMP/out" || fail "$1: $(cat "$TMP/out")"
	ok put 0 4096 1
	ok persist 0 0 4096
}

again() {
	ctl resume "$FILE" >/dev/null || fail "resume"
	ctl wait "$FILE" --timeout 20 >/dev/null || fail "not back: $(ctl why "$FILE")"
}

policy fail all "$A" "$B"
ctl_fails 4 "on-loss = fail .*drains need it" pause "$FILE" "$A"
grep -q "^next: replctl pause --force $FILE $A " "$TMP/err" || fail "$(cat "$TMP/err")"
unpaused "a replica"
ctl_fails 4 "on-loss = fail" pause "$FILE"
grep -q "^next: replctl pause --force $FILE (" "$TMP/err" || fail "$(cat "$TMP/err")"
unpaused "all"
ctl pause "$FILE" "$A" --force >/dev/null || fail "pause --force"
refused REPL_E_LOST "paused" persist 0 0 4096
# Where calls fail already it is no other thing.
ctl_fails 4 "on-loss = fail" pause "$FILE" "$B"
again
ok close

# Who may not ask the program is none who forces it.
others_fail() {
	mkdir "$TMP/theirs"
	cp "$TMP/key" "$TMP/theirs/key"
	chown -R nobody "$TMP/theirs"
	for command in resume pause; do
		for replica in "" "$A"; do
			# shellcheck disable=SC2086
			setpriv --reuid=nobody --clear-groups "$REPLCTL" --identity "$TMP/theirs/key" \
				--known-hosts "$TMP/known_hosts" $command "$FILE" $replica >"$TMP/out" 2>"$TMP/err"
			status=$?
			[ "$status" -eq 4 ] || fail "$command: exit $status: $(cat "$TMP/out" "$TMP/err")"
			grep -q "pool.repl-sock: Permission denied" "$TMP/err" || fail "$command: $(cat "$TMP/err")"
			grep -q "^next: repeat the command as the user whose file it is$" "$TMP/err" || fail "$command: $(cat "$TMP/err")"
		done
	done
}
policy fail all "$A" "$B"
[ "$(id -u)" -ne 0 ] || others_fail
unpaused "another user"
ok close

policy block all "$A"
ctl_fails 4 "on-loss = block .*300 ms" pause "$FILE" "$A"
unpaused "a replica"
ctl pause -f "$FILE" >/dev/null || fail "pause --force"
refused REPL_E_LOST "not back within 300 ms" persist 0 0 4096
again
ok close

# No drain needs one of two with any, but both; nor an asynchronous one.
policy block any "$A" "$B"
ctl_fails 4 "on-loss = block" pause "$FILE"
ctl pause "$FILE" "$A" >/dev/null || fail "pause of one that is spare"
ok persist 0 0 4096
ctl_fails 4 "on-loss = block" pause "$FILE" "$B"
ok persist 0 0 4096
again
ok close
configure "$A"
ok set async-target "$B"
ok set on-loss fail
ok open 1
ctl pause "$FILE" "$B" >/dev/null || fail "pause of one that is asynchronous"
ok persist 0 0 4096
ctl_fails 4 "on-loss = fail" pause "$FILE" "$A"
again
ok close
stop_api

# The library of a program that began before an upgrade pauses at once, and says nowhere that it looks at its on-loss: it is
# not asked to.
python3 - "$FILE.repl-sock" "$TMP/asked" >"$TMP/old.log" 2>&1 <<'END' &
import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
reason = "none"
while True:
    lines = s.accept()[0].makefile("rw")
    for line in lines:
        asked = json.loads(line)
        if asked["method"] in ("pause", "resume"):
            reason = "paused" if asked["method"] == "pause" else "none"
            with open(sys.argv[2], "a") as f:
                f.write(asked["method"] + "\n")
        lines.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {
            "pool": "pool", "size": 1, "pid": 1, "begin": 1, "lanes": 1, "flushes": 0, "drains": 0,
            "replicas": [{"replica": "host/a", "reason": reason}]}}) + "\n")
        lines.flush()
END
old=$!
PIDS="$PIDS $old"
wait_for 10 grep -q listens "$TMP/old.log" || fail "no socket: $(cat "$TMP/old.log")"
for replica in "" host/a; do
	ctl_fails 4 "older librepl.*on-loss" pause "$FILE" $replica
	grep -q "^next: replctl pause --force $FILE ${replica:+$replica }(" "$TMP/err" || fail "$(cat "$TMP/err")"
	[ ! -e "$TMP/asked" ] || fail "it was asked to $(cat "$TMP/asked")"
done
ctl pause "$FILE" --force >"$TMP/out" 2>&1 || fail "pause --force: $(cat "$TMP/out")"
ctl resume "$FILE" >"$TMP/out" 2>&1 || fail "resume: $(cat "$TMP/out")"
[ "$(cat "$TMP/asked")" = $'pause\nresume' ] || fail "it was asked to $(cat "$TMP/asked")"

# SPDX-License-Identifier: BSD-3-Clause
# Who watches sees a replica's loss, its return, a pause and the end in their order, and is told why and what helps.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
FILE=$TMP/pool
R=$(pool a)
T=${R%/a}
configure "$R"
ok set reconnect-max 400
# None of this is about deadlines: a slow machine is no loss.
ok set op-timeout 10000
# Who waits for a program that is only starting needs no file yet.
ctl_fails 3 "pool: No such file" wait "$FILE" --timeout 0
ctl_start wait "$FILE" --timeout 60
wait_for 10 threads_are S "$CTL_PID" || fail "it does not wait"
ok map "$FILE" $((8 * MIB))
ok open 1
wait "$CTL_PID" || fail "$?: $(cat "$TMP/bg.err")"
ok put 0 $((8 * MIB)) 1
ok persist 0 0 $((8 * MIB))

ctl_start events "$FILE"
EVENTS=$CTL_PID
wait_for 20 grep -q "up-to-date" "$TMP/bg.out" || fail "no snapshot: $(cat "$TMP/bg.out")"
cp "$TMP/bg.err" "$TMP/events.err"

# status and why of one that is well.
ctl status "$FILE" >"$TMP/out" || fail "status"
grep -q "^state  *connected, established, up-to-date$" "$TMP/out" || fail "$(cat "$TMP/out")"
ctl status --json "$FILE" | member replicas.0.reason | grep -qx none || fail "json"
ctl wait "$FILE" --for up-to-date --timeout 0 >/dev/null || fail "wait"
ctl metrics "$FILE" | grep -q 'repl_replica_connection{.*state="connected"} 1' || fail "metrics"
ctl metrics --json "$FILE" | python3 -m json.tool >/dev/null || fail "metrics --json"
reported() {
	ctl status "$T" >"$TMP/out" && grep -q "as its writer says: connected, established" "$TMP/out"
}
wait_for 20 reported || fail "no report: $(cat "$TMP/out")"
ctl why "$R" >"$TMP/out" || fail "why TARGET/pool"
grep -q "^reason  *none:" "$TMP/out" || fail "$(cat "$TMP/out")"

# A loss.
sent() {
	ctl metrics "$FILE" | sed -n 's/^repl_replica_sent_bytes_total{.*} //p'
}
sent_before=$(sent)
hurt serve
is_lost() {
	[ "$(ctl status --json "$FILE" | member replicas.0.replication)" = degraded ]
}
wait_for 10 is_lost || fail "no loss is seen"
ok put 0 100 2
ok persist 0 0 100
ctl why "$FILE" >"$TMP/out" || fail "why FILE"
grep -Eq "^reason  *(connection-lost|unreachable|not-answering):" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^next  *[a-z]" "$TMP/out" || fail "no next step: $(cat "$TMP/out")"
unreachable() {
	ctl why "$FILE" | grep -q "^reason  *unreachable:"
}
wait_for 10 unreachable || fail "$(ctl why "$FILE")"
ctl_fails 9 "not all replicas are up-to-date" wait "$FILE" --timeout 0
ctl why "$R" >"$TMP/out" || fail "why TARGET/pool of one that is not there"
grep -q "^reason  *unreachable:" "$TMP/out" || fail "$(cat "$TMP/out")"

# It comes back at the same place.
port=$SERVE_PORT
heal_at_port() {
	kill -KILL $hurt_pids 2>/dev/null
	sed -i "s/^listen = .*/listen = 127.0.0.1:$port/" "$TMP/repld.conf"
	aside "$TMP/serve.log"
	"$REPLD" serve --config "$TMP/repld.conf" >"$TMP/serve.log" 2>&1 &
	SERVE_PID=$!
	PIDS="$PIDS $SERVE_PID"
	wait_for 20 grep -q "listening on" "$TMP/serve.log" || fail "repld serve does not start again"
}
heal_at_port
ctl wait "$FILE" --for up-to-date --timeout 20 >/dev/null || fail "it does not come back: $(ctl why "$FILE")"
ok compare 0
same
ok stat 0
is connection 0
is error 1
# Counters of the opening: they go on where they were.
[ "$(sent)" -ge "$sent_before" ] || fail "$(sent) bytes are sent, before the loss $sent_before"

# Paused: no writes go there, until it is resumed.
ctl_fails 3 "no replica is called" pause "$FILE" nobody@nowhere/a
ctl pause "$FILE" "$R" >"$TMP/out" || fail "pause"
grep -q "(paused)" "$TMP/out" || fail "the state from before the pause: $(cat "$TMP/out")"
paused() {
	ctl status --json "$FILE" | member replicas.0.reason | grep -qx paused
}
wait_for 20 paused || fail "$(ctl status "$FILE")"
ctl status "$FILE" >/dev/null
[ $? -eq 5 ] || fail "the status of a degraded replica is no success"
(cd "$(dirname "$FILE")" && ctl why "$(basename "$FILE")" >"$TMP/out") || fail "a name without a slash"
grep -q "^reason  *paused:" "$TMP/out" || fail "$(cat "$TMP/out")"
# Wished for: no operation has failed.
ok stat 0
is error 1
ok put 4096 100 3
ok persist 0 4096 100
ctl why "$FILE" | grep -q "replctl resume $FILE" || fail "$(ctl why "$FILE")"
[ "$(ctl status --json "$FILE" | member replicas.0.dirty_bytes)" -gt 0 ] || fail "nothing is dirty"
ctl resume "$FILE" >"$TMP/out" || fail "resume"
grep -q "(paused)" "$TMP/out" && fail "the state from before: $(cat "$TMP/out")"
ctl wait "$FILE" --timeout 20 >/dev/null || fail "not resumed: $(ctl why "$FILE")"
ok compare 0
same

# On a terminal: drawn in place, no line longer than the screen, and Ctrl-C ends it.
timeout 20 python3 - "$REPLCTL" "$FILE" >&2 <<'END' || fail "--watch on a terminal"
import fcntl, os, pty, re, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "status", sys.argv[2], "--watch"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen = b""
while seen.count(b"\033[J") < 3:
    seen += os.read(fd, 65536)
os.write(fd, b"\003")
try:
    while True:
        more = os.read(fd, 65536)
        if not more:
            break
except OSError:
    pass
status = os.waitpid(pid, 0)[1]
assert status == 0, status
screens = seen.split(b"\033[H")[1:]
assert len(screens) >= 3 and b"\033[2J" not in seen
for line in screens[1].split(b"\r\n"):
    plain = re.sub(rb"\033\[[A-Z]", b"", line)
    assert len(plain) < 80, plain
assert b"established" in screens[1] and b"/s" in screens[1], screens[1]
END
# And lines where it is none.
timeout 3 "$REPLCTL" status "$FILE" --watch </dev/null >"$TMP/out"
[ "$(grep -c "established up-to-date" "$TMP/out")" -ge 2 ] || fail "$(cat "$TMP/out")"
grep -q "$(printf '\033')" "$TMP/out" && fail "an escape in a pipe"

ok close
wait_for 20 gone "$EVENTS" || fail "events goes on"
wait "$EVENTS" || fail "events: $(cat "$TMP/events.err")"
# Each change in its order; others may stand between, such as another reason.
python3 - "$TMP/bg.out" >&2 <<'END' || fail "$(cat "$TMP/bg.out")"
import re, sys
text = open(sys.argv[1]).read()
at = 0
for due in ["connected established up-to-date", "connecting degraded outdated \\((connection-lost|not-answering)\\)",
            "connecting degraded outdated \\(unreachable\\)", "connected resyncing outdated \\(resyncing\\)",
            "connected established up-to-date", "standalone degraded outdated \\(paused\\)",
            "connected resyncing outdated \\(resyncing\\)", "connected established up-to-date"]:
    found = re.compile(due).search(text, at)
    if not found:
        sys.exit("not seen in its order: " + due)
    at = found.end()
END
# Afterwards, from the records alone.
ctl_fails 3 "no program has the pool open" status "$FILE"
ctl_fails 3 "next: name the local pool file" status "$FILE.not"
ctl why "$FILE" >"$TMP/out" || fail "why of a closed pool"
grep -q "closed it in order" "$TMP/out" || fail "$(cat "$TMP/out")"
# Neither the record nor a target knows what went on without a replica.
grep -q "^reason  *none:.*what a replica has is told by its target" "$TMP/out" || fail "$(cat "$TMP/out")"
ctl why "$R" >"$TMP/out" || fail "why of an idle replica"
grep -q "^reason  *none:.*another copy may have gone on" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^next  *replctl newest $R (with " "$TMP/out" || fail "$(cat "$TMP/out")"

# Of a program that was killed, while another waits for it as well.
ok open 1
ctl_start wait "$FILE" --for standalone --timeout 60
asked() {
	[ "$(find "/proc/$CTL_PID/fd" -lname 'socket:*' | wc -l)" -gt 0 ]
}
wait_for 10 asked || fail "nobody waits"
kill -KILL "$(api_child)"
wait "$CTL_PID"
[ $? -eq 7 ] || fail "the end of a wait for who was killed: $(cat "$TMP/bg.err")"
grep -q "^next: replctl why $FILE" "$TMP/bg.err" || fail "no next step: $(cat "$TMP/bg.err")"
killed() {
	ctl why "$R" >"$TMP/out" && grep -q "^reason  *writer-gone:" "$TMP/out"
}
wait_for 10 killed || fail "$(cat "$TMP/out")"
# The start makes the replica equal to the file, which may have less after a power cut.
power_first() {
	grep -q "^next .*lost its power.*replctl newest .*start" "$TMP/out" || lost "the start comes first: $(cat "$TMP/out")"
}
power_first
# Where the machine has kept its power nothing comes before the start, and where it has not the start does not come at all.
ctl why "$FILE" >"$TMP/out" || fail "why after a kill"
grep -q "^reason  *writer-gone:" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -q "^next *start the program again" "$TMP/out" || fail "$(cat "$TMP/out")"
ctl_rebooted why "$FILE" >"$TMP/out" 2>&1 || fail "why after a power cut"
grep -q "^next *replctl .*newest .*before all else" "$TMP/out" || lost "the start comes first: $(cat "$TMP/out")"

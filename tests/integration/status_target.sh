# SPDX-License-Identifier: BSD-3-Clause
# Who watches a target sees pools come and go, what their writers say, and the rates of their sessions, until
# an interrupt, or the target's end, which is an error.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# events_start NAME ARG...: output in $TMP/NAME.out.
events_start() {
	local name=$1

	shift
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@" </dev/null \
		>"$TMP/$name.out" 2>"$TMP/$name.err" &
	WATCH=$!
	PIDS="$PIDS $WATCH"
}
seen() {
	grep -Eq "$2" "$TMP/$1.out"
}
due() {
	wait_for 10 seen "$1" "$2" || fail "no '$2' in: $(cat "$TMP/$1.out" "$TMP/$1.err")"
}

events_start text events "$T"
text=$WATCH
events_start json events --json "$T"
json=$WATCH
configure "$(pool a)"
ok map "$TMP/p" $((4 * MIB))
ok open 1
ok persist 0 0 100
due text " a up-to-date, writer .* \(open\): connected established up-to-date \(none\)$"
ok close
due text " a up-to-date, writer [^()]*$"
configure "$(pool b)" "$(pool c)"
stay_lost
ok map "$TMP/q" $MIB
ok open 1
due text " b up-to-date, .*\(open\)"
due text " c up-to-date, .*\(open\)"

due json '"b".*"established"'

# One of two is lost: nobody speaks for its pool any more.
due text " c .*: connected established up-to-date"
signalled KILL "$(session_of c)"
unspoken() {
	grep " c " "$TMP/text.out" | tail -n 1 | sed 's/^[^ ]* [^ ]* //' | grep -q "writer [^:]*$"
}
wait_for 10 unspoken || fail "$(cat "$TMP/text.out")"

# A pool that is removed is told of once.
ctl create --size 1M "$T/gone" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
due text " gone [a-z-]+, writer"
due json '"gone"'
ctl remove --force "$T/gone" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
due text "UTC gone removed$"
due json '^\{.*"gone".*"removed" *\}$'

# A terminal of 80 columns is wide enough.
ctl status "$T" >"$TMP/out"
grep -Eq "^b +1.0 MiB +up-to-date +[a-z]+ +20[0-9: -]* UTC$" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -Eq "^    open for writing by .* pid [0-9]+$" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -Eq "^b +write( +[0-9.]+){4} (B|KiB) +[0-9.]+ B/s$" "$TMP/out" || fail "$(cat "$TMP/out")"
grep -Eq "^    by .* pid [0-9]+; message" "$TMP/out" || fail "$(cat "$TMP/out")"
[ "$(awk '{ if (length > n) n = length } END { print n }' "$TMP/out")" -le 80 ] || fail "$(cat "$TMP/out")"

# Rates: what goes on, as often as it is looked at.
events_start watch status "$T" --watch
watch=$WATCH
events_start rates status --json "$T" --watch
rates=$WATCH
ok load 1 $MIB
busy() {
	python3 - "$TMP/rates.out" <<'END'
import json, sys
lines = open(sys.argv[1]).read().split("\n")
looks = [json.loads(line) for line in lines[:-1]]
assert len(looks) >= 3
assert any(s["commits_per_s"] > 0 and s["commit_bytes_per_s"] > 0
           for look in looks for s in look["sessions"] if s["pool"] == "b")
assert all(look["target"] and len(look["pools"]) == 3 for look in looks)
END
}
wait_for 15 busy || fail "$(cat "$TMP/rates.out" "$TMP/rates.err")"
# The other one looks at another time.
due watch "^b .* write .* [1-9][0-9]* "
due watch "^b, as its writer says: connected, established, up-to-date$"
ok unload
grep -q "$(printf '\033')" "$TMP/watch.out" && fail "an escape in a file"
ok close
due watch "^no session has a pool open$"

# On a terminal it is drawn anew, and Ctrl-C ends it.
timeout 20 python3 - "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" \
	status "$T" --watch >&2 <<'END' || fail "--watch on a terminal"
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while seen.count(b"\033[H") < 2:
    seen += os.read(fd, 65536)
os.write(fd, b"\003")
try:
    while os.read(fd, 65536):
        pass
except OSError:
    pass
status = os.waitpid(pid, 0)[1]
assert status == 0, status
assert b"no session has a pool open" in seen
END

# An interrupt ends all of them in order.
for pid in "$watch" "$rates" "$json"; do
	kill -TERM "$pid"
	wait_for 10 gone "$pid" || fail "it goes on"
	wait "$pid" || fail "exit $?: $(cat "$TMP"/*.err)"
done
python3 - "$TMP/json.out" >&2 <<'END' || fail "$(cat "$TMP/json.out")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
a = [e for e in events if e["pool"] == "a"]
# That it was made may be told before it is open.
assert any(e["writer_open"] for e in a) and not a[-1]["writer_open"], a
assert any(e.get("report", {}).get("replication") == "established" for e in events), events
assert sum(e["state"] == "removed" for e in events) == 1, events
for pool in "abc":
    own = [e for e in events if e["pool"] == pool]
    assert len(own) > 1
    for one, next in zip(own, own[1:]):
        assert one != next, one
END

# The end of the target is told, also to a program that reads.
events_start end events --json "$T"
end=$WATCH
due end '"b"'
signalled KILL $(pgrep -P "$SERVE_PID") "$SERVE_PID"
wait_for 10 gone "$text" || fail "events outlives its target"
wait "$text" && fail "the end of the target is a success"
grep -q "." "$TMP/text.err" || fail "it says nothing of the end"
wait_for 10 gone "$end" || fail "events --json outlives its target"
sed -n '/^{$/,$p' "$TMP/end.out" | member error.exit | grep -qx 7 || fail "no error: $(cat "$TMP/end.out")"
stop_api

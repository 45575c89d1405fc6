# SPDX-License-Identifier: BSD-3-Clause
# A handle tells its state on a socket beside the pool file; who misbehaves there is dropped and disturbs nobody.
. "$(dirname "$0")/api_lib.sh"

mkdir -p "$TMP/$(printf 'd%.0s' {1..100})/$(printf 'e%.0s' {1..100})"
FILE=$(echo "$TMP"/d*/e*)/pool
SOCK=$FILE.repl-sock

# A stale socket of a dead process is there.
python3 - "$(dirname "$SOCK")" <<'END'
import os, socket, sys
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX).bind("pool.repl-sock")
END
make_keys
start_serve
start_api
configure "$(pool a)"
ok set metrics-file "$TMP/metrics"
ok map "$FILE" $((4 * MIB))
ok open 1
ok persist 0 0 100
[ "$(stat -c '%a %F' "$SOCK")" = "600 socket" ] || fail "$(stat -c '%a %F' "$SOCK")"
timeout 40 python3 - "$SOCK" >&2 <<'END' || fail "the socket"
import json, os, socket, sys, time

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    fd = os.open(sys.argv[1], os.O_PATH)
    s.connect("/proc/self/fd/%d" % fd)
    os.close(fd)
    return s

def ask(s, method):
    s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"%s"}\n' % method)
    return json.loads(s.makefile().readline())

def ended(s):
    try:
        return s.recv(65536) == b""
    except ConnectionError:
        return True

s = connect()
status = ask(s, b"status")["result"]
replica = status["replicas"][0]
assert replica["connection"] == "connected", replica
assert replica["data"] == "up-to-date" and replica["reason"] == "none", replica
assert replica["provider"] == "tcp" and replica["provider_why"].startswith("not verbs: "), replica
assert status["pool"].endswith("/pool") and status["drains"] >= 1, status
assert "repl_drain_duration_seconds_count" in ask(s, b"metrics")["result"]["text"]
assert ask(s, b"nonsense")["error"]["code"] == -32601
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":3}\n')
assert "error" in json.loads(s.makefile().readline())

# Garbage, and a line without an end, are dropped.
for bad in [os.urandom(3000) + b"\n", b"[" * 4000 + b"\n", b'{"a":' * 2000, b"x" * 9000, b"\0\n"]:
    g = connect()
    try:
        g.sendall(bad)
    except ConnectionError:
        pass
    assert ended(g), bad[:20]

# One that follows and never reads; it asks until its answers are too many.
lazy = connect()
lazy.setblocking(False)
asked = 0
try:
    while asked < 100000:
        try:
            lazy.send(b'{"jsonrpc":"2.0","id":1,"method":"metrics"}\n' * 20)
            asked += 20
        except BlockingIOError:
            time.sleep(0.001)
except ConnectionError:
    pass
assert asked < 100000, "never dropped"
assert ask(connect(), b"status")["result"]["pid"] == status["pid"]

# A hundred at once: those over the bound are closed, and when they are gone there is room again.
many = []
for i in range(100):
    try:
        many.append(connect())
    except (ConnectionError, BlockingIOError):
        pass
served = 0
for c in many:
    try:
        served += ask(c, b"status")["result"]["pid"] == status["pid"]
    except (ConnectionError, ValueError):
        pass
assert 1 <= served <= 16, served
for c in many:
    c.close()
for attempt in range(100):
    try:
        if "result" in ask(connect(), b"status"):
            break
    except (ConnectionError, ValueError):
        time.sleep(0.05)
else:
    raise SystemExit("no room again")
END
ok persist 0 0 100
wait_for 10 grep -q "^repl_flushes_total{pool=\".*/pool\"} [0-9]" "$TMP/metrics" ||
	fail "no metrics: $(ls -la "$TMP")"
ok close
[ ! -e "$SOCK" ] && [ ! -e "$TMP/metrics" ] || fail "something stays: $(ls "$TMP")"

# One that can't be written shows.
ok set metrics-file "$TMP/nowhere/metrics"
ok open 1
unwritten() {
	ctl status --json "$FILE" | member metrics_error | grep -q "nowhere/metrics: No such file"
}
wait_for 10 unwritten || fail "$(ctl status --json "$FILE")"
ctl status "$FILE" | grep -q "^metrics  *not written: .*nowhere/metrics: No such file" || fail "$(ctl status "$FILE")"
ok close

# A file in the place is not removed, and for "auto" it is no reason to fail.
echo precious >"$SOCK"
ok open 1
ok close
[ "$(cat "$SOCK")" = precious ] || fail "a file is gone"
ok set status-socket "$SOCK"
refused REPL_E_EXISTS "no socket" open 1
rm "$SOCK"

# At another place it is found by the file where the configuration says so, and by that of its own pool only.
ok set status-socket "$TMP/sock"
ok open 1
running=$(ctl status --json "$TMP/sock" | member pid) || fail "no status by the socket"
{
	cat "$TMP/login.conf"
	echo "status-socket = $TMP/sock"
} >"$TMP/named.conf"
ctl_named() {
	REPL_CONFIG=$TMP/named.conf ctl "$@" >"$TMP/out" 2>&1
}
ctl_named status --json "$FILE" && [ "$(member pid <"$TMP/out")" = "$running" ] || fail "status: $(cat "$TMP/out")"
ctl_named resume "$FILE" || fail "resume: $(cat "$TMP/out")"
ctl_named why "$FILE" && grep -q "^replica " "$TMP/out" || fail "why: $(cat "$TMP/out")"
: >"$TMP/another"
! ctl_named status "$TMP/another" || fail "it answers for another: $(cat "$TMP/out")"
# held: a program that runs has not ended.
held() {
	ctl why "$FILE" >"$TMP/out" 2>&1 && grep -q "^reason  *none: a program, a sync or a restore has it, " "$TMP/out" ||
		fail "a program that runs: $(cat "$TMP/out")"
	! grep -q "start the program" "$TMP/out" || fail "it is to be started: $(cat "$TMP/out")"
}
held
ok close
ok set status-socket none
ok open 1
[ ! -e "$SOCK" ] || fail "a socket in spite of none"
held
ok close
ctl why "$FILE" | grep -q "^reason  *none: the record tells of nothing wrong" || fail "$(ctl why "$FILE")"
stop_api

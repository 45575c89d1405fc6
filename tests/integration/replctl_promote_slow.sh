# SPDX-License-Identifier: BSD-3-Clause
# A target that takes long to promote, or to demote, does it also when nobody waits any more: whoever has got no answer is told
# to look before another replica is promoted. status tells of the session that is at it, and of one that takes long to open a pool.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
GATE=$TMP/serve/gate
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s exec "%s" "$@"\n' "$BUILD/tests/integration/slow_space.so" "$GATE" \
	"$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target
head -c 65536 /dev/urandom >"$TMP/file"
ctl sync "$TMP/file" "$T/it's" >/dev/null 2>"$TMP/err" || fail "sync: $(cat "$TMP/err")"

# relay: another way to the target, which can be cut; $VIA is its name there, $RELAY_PID.
relay() {
	rm -f "$TMP/relay"
	python3 - "$SERVE_PORT" >"$TMP/relay" <<'END' &
import socket, sys, threading
def pump(a, b):
    while data := a.recv(65536):
        b.sendall(data)
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
while True:
    a, _ = s.accept()
    b = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for pair in (a, b), (b, a):
        threading.Thread(target=pump, args=pair, daemon=True).start()
END
	RELAY_PID=$!
	PIDS="$PIDS $RELAY_PID"
	wait_for 20 test -s "$TMP/relay" || fail "no relay"
	trust "$(cat "$TMP/relay")" "$TMP/serve_host_key.pub"
	VIA=$SERVE_USER@127.0.0.1:$(cat "$TMP/relay")
}

is_primary() {
	ctl info --json "$T/it's" >"$TMP/info" && grep -q '"primary": *true' "$TMP/info"
}

is_replica() {
	! is_primary && grep -q '"state"' "$TMP/info"
}

# told_at_work COMMAND: both forms of status tell of a session that does it to the pool.
told_at_work() {
	ctl status "$T" >"$TMP/status" && grep -q "^it's  *$1 " "$TMP/status" &&
		ctl --json status "$T" >"$TMP/status" && python3 -c 'import json, sys
sessions = json.load(open(sys.argv[1]))["sessions"]
sys.exit([(s["pool"], s["mode"]) for s in sessions] != [("it\x27s", sys.argv[2])])' "$TMP/status" "$1"
}

nobody_at_work() {
	ctl status "$T" >"$TMP/status" && grep -q "^no session has a pool open" "$TMP/status"
}

# as_in_front ARG...: as ctl_start, but that an interrupt is not ignored, as a shell has it for what is in its background.
as_in_front() {
	REPL_CONFIG=$TMP/login.conf python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$REPLCTL" "$@" </dev/null >"$TMP/bg.out" 2>"$TMP/bg.err" &
	CTL_PID=$!
	PIDS="$PIDS $CTL_PID"
}

# unanswered COMMAND COME-ABOUT WORDS [SIGNAL]: its connection is lost, or it gets that signal, while the target is at it, it tells by which look the same again
# is right, status tells that it is at it, and it comes to its end.
unanswered() {
	relay
	: >"$GATE"
	as_in_front "$1" "$VIA/it's"
	wait_for 20 test -e "$GATE.met" || fail "$1: no sync: $(cat "$TMP/bg.err")"
	if [ -n "${4-}" ]; then
		kill -"$4" "$CTL_PID"
		wait "$CTL_PID"
		status=$?
		[ "$status" -eq 7 ] || fail "$1, SIG$4: exit $status: $(cat "$TMP/bg.out" "$TMP/bg.err")"
		grep -q "interrupted" "$TMP/bg.err" || fail "$1, SIG$4: $(cat "$TMP/bg.err")"
	else
		signalled KILL "$RELAY_PID"
		wait "$CTL_PID" && fail "$1: answered: $(cat "$TMP/bg.out" "$TMP/bg.err")"
	fi
	grep -q "^next: the target may still be at it: when replctl status $VIA shows no session .*, replctl info '$VIA/it'.* tells whether it is $3, .*promote no other replica" "$TMP/bg.err" ||
		fail "$1: $(cat "$TMP/bg.err")"
	wait_for 20 told_at_work "$1" || fail "$1: status does not tell of it: $(cat "$TMP/status")"
	rm "$GATE" "$GATE.met"
	wait_for 20 "$2" || fail "$1: it did not go on"
	wait_for 20 nobody_at_work || fail "$1: status does not tell that it is done: $(cat "$TMP/status")"
}

unanswered promote is_primary "the primary; if not"
unanswered demote is_replica "still the primary; if so"
unanswered promote is_primary "the primary; if not" INT
unanswered demote is_replica "still the primary; if so" TERM

# Who is refused a pool that another session is opening is sent to status, too.
change "$TMP/file" 5000
: >"$GATE"
ctl_start sync --force "$TMP/file" "$T/it's"
wait_for 20 test -e "$GATE.met" || fail "no sync: $(cat "$TMP/bg.err")"
wait_for 20 told_at_work open || fail "open: status does not tell of it: $(cat "$TMP/status")"
rm "$GATE" "$GATE.met"
wait "$CTL_PID" || fail "sync: $(cat "$TMP/bg.err")"
wait_for 20 nobody_at_work || fail "open: status does not tell that it is done: $(cat "$TMP/status")"
equal "$TMP/file" "$TMP/serve/pools/it's"

# SPDX-License-Identifier: BSD-3-Clause
# A promoted pool has no writer left: the old one's process is gone first, whatever it does, and who comes back is refused with who and when.
. "$(dirname "$0")/api_lib.sh"
start_target
start_sshd "Subsystem repl $REPLD session --config $TMP/repld.conf"
P=$TMP/serve/pools/p

hash_of() {
	sha256sum <"$1"
}

# session_pid: of the one that has p open for writing.
session_pid() {
	ctl status --json "$T" | python3 -c 'import json, sys
for s in json.load(sys.stdin)["sessions"]:
    if s.get("pool") == "p" and s.get("mode") == "write": print(s["pid"])'
}

has_session() {
	[ -n "$(session_pid)" ]
}

# stream TARGET: a program writes without end.
stream() {
	rm -f "$TMP/p" "$TMP/p.repl"
	ctl remove --force "$T/p" >/dev/null 2>&1
	start_api
	configure "$1"
	ok set lanes 2
	ok set on-loss fail
	ok map "$TMP/p" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	ok open 1
	ok load 2 $((2 * MIB))
	wait_for 10 has_session || fail "no session is told of"
}

# fenced: the pool stays as it is now, and its old writer is told.
fenced() {
	before=$(hash_of "$P")
	api unload
	api persist 0 0 64
	[ "$STATUS" != REPL_OK ] || lost "an update of a fenced writer was acknowledged"
	within 3000
	[ "$before" = "$(hash_of "$P")" ] || lost "the pool has changed after the promotion"
	[ "$(ctl info --json "$T/p" | member primary)" = True ] || fail "no primary"
	ok close
	refused "REPL_E_REFUSED" "was promoted 20.* by .*primary now.*next: replctl info $T/p" open
	[ "$before" = "$(hash_of "$P")" ] || lost "the pool has changed by a refused writer"
	stop_api
	ctl demote "$T/p" >/dev/null || fail "demote"
	start_api
	configure "$TARGET"
	ok map "$TMP/p" $((4 * MIB))
	# Else the two may be equal by chance, which is no divergence.
	ok put 0 64 9
	refused "REPL_E_DIVERGED" "newer|diverged.*next: replctl resolve" open
	[ "$before" = "$(hash_of "$P")" ] || lost "the pool has changed by a fenced writer"
	stop_api
}

# Under repld serve, in order.
TARGET=$(pool p)
stream "$TARGET"
pid=$(session_pid)
ctl_fails 4 "is open for writing by" promote "$T/p"
grep -q "next: .*replctl promote --force $T/p" "$TMP/err" || fail "$(cat "$TMP/err")"
ctl promote --force "$T/p" >"$TMP/out" || fail "promote"
gone "$pid" || fail "session $pid lives"
grep -q "is the primary" "$TMP/out" || fail "$(cat "$TMP/out")"
fenced

# One that is stopped, under sshd where that can log in as who owns the pools.
TARGET=$(pool p)
[ "$USER_NAME" != "$SERVE_USER" ] || TARGET=$USER_NAME@127.0.0.1:$SSHD_PORT/p
stream "$TARGET"
pid=$(session_pid)
kill -STOP "$pid"
ctl promote --force "$T/p" >/dev/null || fail "promote of a stopped one"
gone "$pid" || fail "session $pid lives"
fenced

# Nobody's session: a lock that no session has is left alone, and so is who has it.
if [ "$(id -u)" -eq 0 ]; then
	head -c 1048576 /dev/urandom >"$TMP/q"
	ctl sync "$TMP/q" "$T/q" >/dev/null || fail "sync"
	(exec 5<"$TMP/serve/pools/q.repl" && flock 5 && exec sleep 60) &
	holder=$!
	PIDS="$PIDS $holder"
	locked() {
		! flock -n "$TMP/serve/pools/q.repl" true
	}
	wait_for 20 locked || fail "no lock"
	ctl_fails 4 "^next: end that: .*fuser -v.*then again replctl promote --force $T/q" promote --force "$T/q"
	grep -q "by no session of repld" "$TMP/err" || fail "not told whose lock it is: $(cat "$TMP/err")"
	gone "$holder" && fail "a process that is no session was ended"
	kill "$holder"
else
	left_out "a lock of nobody's needs root"
fi

# Two writers at once: one has it, the other is told who.
head -c 1048576 /dev/urandom >"$TMP/r"
ctl sync "$TMP/r" "$T/r" >/dev/null || fail "sync"
cp "$TMP/r" "$TMP/r2"
cp "$TMP/r.repl" "$TMP/r2.repl"
for turn in 1 2 3; do
	printf 'turn%s' "$turn" | dd of="$TMP/r" bs=1 conv=notrunc status=none
	printf 'TURN%s' "$turn" | dd of="$TMP/r2" bs=1 conv=notrunc status=none
	ctl sync "$TMP/r" "$T/r" >"$TMP/one" 2>&1 &
	one=$!
	ctl sync "$TMP/r2" "$T/r" >"$TMP/two" 2>&1
	two=$?
	wait "$one"
	one=$?
	[ "$one" -eq 0 ] || [ "$two" -eq 0 ] || lost "both lost: $(cat "$TMP/one" "$TMP/two")"
	[ "$one" -ne 0 ] || [ "$two" -ne 0 ] || fail "both won"
	if [ "$one" -eq 0 ]; then won=r lost=r2; else won=r2 lost=r; fi
	cmp -s "$TMP/$won" "$TMP/serve/pools/r" || lost "not what the winner has"
	ctl resolve --force --discard local "$TMP/$lost" "$T/r" >/dev/null 2>"$TMP/err" ||
		fail "the loser takes it: $(cat "$TMP/err")"
done

# One that is promoted, and whose file is elsewhere for now: who only looks is told what a writer is.
ctl promote "$T/r" >/dev/null || fail "promote"
mv "$TMP/serve/pools/r" "$TMP/away"
for command in sync "sync --dry-run"; do
	ctl_fails 4 "is the primary now, and its file is not there: put it back" $command "$TMP/r" "$T/r"
done
ctl_fails 4 "is the primary now, and its file is not there: put it back" info "$T/r"
ctl why "$T/r" >"$TMP/out"
grep -q "^reason *promoted:" "$TMP/out" || fail "why: $(cat "$TMP/out")"
mv "$TMP/away" "$TMP/serve/pools/r"
ctl_fails 4 "is the primary now and takes no replication" sync --dry-run "$TMP/r" "$T/r"

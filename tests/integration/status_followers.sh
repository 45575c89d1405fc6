# SPDX-License-Identifier: BSD-3-Clause
# Who follows events keeps nobody else from asking: one whose output nobody reads any more ends by itself, and there are
# fewer of them than clients. One that is dropped says so; only a program that ends in order is followed to its end. Who waits
# ends when nobody is left who could learn of it.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
FILE=$TMP/pool
R=$(pool a)
T=${R%/a}
configure "$R"
ok map "$FILE" $MIB
ok open 1

# As where the connection of who collects them breaks, again and again.
unread() {
	for _ in $(seq "$1"); do
		(ctl "${@:2}" 2>"$TMP/err" | head -n 1 >"$TMP/line") &
		PIDS="$PIDS $!"
		orphans="$orphans $!"
	done
}
all_gone() {
	for pid in $orphans; do
		gone "$pid" || return 1
	done
}
orphans=
unread 10 events --json "$FILE"
unread 1 status --json "$FILE" --watch
unread 1 status --json "$T" --watch
wait_for 20 all_gone || fail "they follow on, whom nobody hears: $(cat "$TMP/err")"
# Of a target something must come first.
rm "$TMP/line"
unread 2 events --json "$T"
wait_for 20 grep -q up-to-date "$TMP/line" || fail "no events of the target"
wait_for 20 all_gone || fail "they follow the target on, whom nobody hears: $(cat "$TMP/err")"

# waits NAME FILE [ARG...]: its output goes there, and how it ends to NAME.status, if its parent is there by then.
waits() {
	(
		REPL_CONFIG=$TMP/login.conf "$REPLCTL" wait "$FILE" "${@:3}" --for standalone --timeout 600 \
			</dev/null >"$2" 2>"$TMP/$1.err" &
		echo $! >"$TMP/$1.pid"
		wait $!
		echo $? >"$TMP/$1.status"
	) &
	parent=$!
	PIDS="$PIDS $parent"
	wait_for 20 asks "$1" || fail "$1: $(cat "$TMP/$1.err")"
	waiter=$(cat "$TMP/$1.pid")
	PIDS="$PIDS $waiter"
}
asks() { [ -s "$TMP/$1.pid" ] && ls -l "/proc/$(cat "$TMP/$1.pid")/fd" | grep -q socket; }
# reads NAME: who takes the output of the next one.
reads() {
	mkfifo "$TMP/$1"
	cat "$TMP/$1" >/dev/null &
	reader=$!
	PIDS="$PIDS $reader"
}
reads unread
waits unread "$TMP/unread"
unread=$waiter
kill "$reader"
waits unparented "$TMP/unparented.out" --json
unparented=$waiter
kill -KILL "$parent"
reads orphan
waits orphan "$TMP/orphan"
kill "$reader"
kill -KILL "$parent"
wait_for 20 gone "$waiter" || fail "it waits on, and nobody will learn of it"
gone "$unread" && fail "it ends, whose end is waited for: $(cat "$TMP/unread.err")"
gone "$unparented" && fail "it ends, whose output may be read: $(cat "$TMP/unparented.err")"
ctl pause --force "$FILE" "$R" >"$TMP/out" 2>&1 || fail "pause: $(cat "$TMP/out")"
wait_for 20 grep -qx 0 "$TMP/unread.status" || fail "its output nobody reads: $(cat "$TMP/unread.err")"
wait_for 20 grep -q standalone "$TMP/unparented.out" || fail "without a parent: $(cat "$TMP/unparented.err")"
ctl resume "$FILE" "$R" >"$TMP/out" 2>&1 || fail "resume: $(cat "$TMP/out")"
ctl wait "$FILE" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"

followers=
for i in $(seq 12); do
	REPL_CONFIG=$TMP/login.conf "$REPLCTL" events "$FILE" </dev/null >"$TMP/follower$i" 2>&1 &
	PIDS="$PIDS $!"
	followers="$followers $!"
	wait_for 20 grep -q up-to-date "$TMP/follower$i" || fail "follower $i: $(cat "$TMP/follower$i")"
done
ctl_fails 4 "12 .*follow" events "$FILE"
ctl status "$FILE" >/dev/null || fail "no status beside followers"
ok close
for pid in $followers; do
	wait "$pid" || fail "a follower, when the program has ended in order: $(cat "$TMP"/follower*)"
done

# ends HOW STATUS: a program that answers once, and then ends the connection, or all, or is another one at once.
ends() {
	python3 - "$FILE.repl-sock" "$1" <<'END' &
import json, os, socket, sys, time
path, how = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
# It has its name when it can be connected to.
listener.bind(path + "-new")
listener.listen(16)
os.rename(path + "-new", path)

def answer(c, pid):
    line = c.makefile().readline()
    if not line:
        return
    request = json.loads(line)
    c.sendall(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"pid": pid, "begin": 1, "replicas": [
        {"replica": "r", "connection": "connected", "replication": "established", "data": "up-to-date",
         "reason": "none"}]}}).encode() + b"\n")
c, _ = listener.accept()
if how != "never":
    answer(c, 1)
    time.sleep(0.2)
if how == "closes":
    os.unlink(path)
    listener.close()
c.close()
if how in ("drops", "again"):
    while True:
        c, _ = listener.accept()
        answer(c, 2 if how == "again" else 1)
        c.close()
time.sleep(60)
END
	server=$!
	PIDS="$PIDS $server"
	wait_for 20 test -S "$FILE.repl-sock" || fail "$1: no server"
	timeout 20 "$REPLCTL" events "$FILE" >"$TMP/out" 2>"$TMP/err" </dev/null
	status=$?
	[ "$status" -eq "$2" ] || fail "$1: exit $status, not $2: $(cat "$TMP/out" "$TMP/err")"
	kill "$server"
	wait "$server" 2>/dev/null
	rm -f "$FILE.repl-sock"
}
ends never 7
ends drops 7
grep -q "not read in time" "$TMP/err" && grep -q "^next: replctl events $FILE" "$TMP/err" || fail "$(cat "$TMP/err")"
# One that is there and does not answer.
ends hangs 7
ends closes 0
ends again 0
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# Which replica to go on from is told where something tells it, also of targets that were killed; else it is said what does not.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# newest WANTED POOL...
newest() {
	wanted=$T/$1
	shift
	ctl newest "${@/#/$T/}" >"$TMP/out" 2>"$TMP/err" || fail "newest $*: $? $(cat "$TMP/out" "$TMP/err")"
	grep -q "^newest *$wanted$" "$TMP/out" || fail "newest $*: not $wanted: $(cat "$TMP/out")"
}

# noted POOL NOTE: in the line below it.
noted() {
	grep -A 1 "^$T/$1 " "$TMP/out" | tail -n 1 | grep -Eq "$2" || fail "of $1: $(cat "$TMP/out")"
}

# position POOL TEXT: in that column, behind state and generation.
position() {
	grep "^$T/$1 " "$TMP/out" | awk '{print $4}' | grep -Fqx -- "$2" || fail "position of $1, not $2: $(cat "$TMP/out")"
}

fails() {
	rc=$1 text=$2
	shift 2
	ctl newest "$@" >"$TMP/out" 2>"$TMP/err"
	[ $? = "$rc" ] || fail "newest $*: not $rc: $(cat "$TMP/out" "$TMP/err")"
	cat "$TMP/out" >>"$TMP/err"
	grep -Eq "$text" "$TMP/err" || fail "newest $*: $(cat "$TMP/err")"
}

set_up() {
	start_api
	configure "$(pool "$1")"
	ok set lanes 1
	ok set heartbeat-timeout 60000
	ok set async-lag-bytes 128M
	ok set async-lag-time 60000
}

# One of three is behind when the program and all three targets are killed: no session ends in order.
set_up a
ok set target "$(pool b)"
ok set target "$(pool c)"
ok set ack quorum
ok map "$TMP/p" $size
fill 2
fails 4 "$T/[ab] is open for writing" "$T/a" "$T/b"
grep -q "^next: wait until it has ended" "$TMP/err" || fail "$(cat "$TMP/err")"
late=$(session_of c) || fail "no session of c"
signalled STOP "$late"
ok put 0 $((4 * MIB)) 7
ok persist 0 0 $((4 * MIB))
for i in 1 2 3 4 5 6 7 8; do
	ok put $((i * 4 * MIB)) $((4 * MIB)) "$((i + 1))"
	ok persist 0 $((i * 4 * MIB)) $((4 * MIB))
done
# shellcheck disable=SC2046
kill -KILL "$(api_child)" $(sessions)
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
wait_for 20 no_sessions || fail "sessions stay"
ctl newest "$T/c" "$T/b" "$T/a" >"$TMP/out" || fail "newest: $(cat "$TMP/out")"
take=$(sed -n "s|^newest *$T/||p" "$TMP/out")
[ "$take" = a ] || [ "$take" = b ] || fail "it is $take: $(cat "$TMP/out")"
noted c "its position is lower"
equal "$TMP/p" "$TMP/serve/pools/$take"
ctl newest --json "$T/c" "$T/b" "$T/a" >"$TMP/out" || fail "as JSON"
[ "$(member newest <"$TMP/out")" = "$T/$take" ] || fail "as JSON: $(cat "$TMP/out")"

# Each drain waits for a synchronous replica, and not for the asynchronous one.
set_up d
ok set async-target "$(pool e)"
ok map "$TMP/q" $size
fill 1
leave_behind e
newest d e d
noted e "$T/d has been waited for"
position d all

# Whoever has waited for it, of a copy that was cut off nobody knows what is there.
for part in "" .repl; do
	cp -p "$TMP/serve/pools/d$part" "$TMP/serve/pools/broken$part"
done
mark_pool broken inconsistent
[ "$(ctl info --json "$T/broken" | member waited)" = True ] || fail "nobody has waited for it"
newest d d broken
position broken "?"

# It had been away, and was lost once more while it was brought back: of the generation that both are of it may have more, and is
# not overwritten by what is restored from the other one.
for part in "" .repl; do
	cp -p "$TMP/serve/pools/d$part" "$TMP/serve/pools/back$part"
	cp -p "$TMP/serve/pools/d$part" "$TMP/serve/pools/cut$part"
	cp -p "$TMP/serve/pools/e$part" "$TMP/serve/pools/lags$part"
done
chain=$(ctl info --json "$T/lags" | python3 -c 'import json, sys
info = json.load(sys.stdin)
print(json.dumps({"state": "outdated", "generation": info["generation"], "history": info["history"]}))')
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"back","mode":"write","waits":true}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":'"$chain"'}'
} | client cat "$T" >"$TMP/out" || fail "no session: $(cat "$TMP/out")"
wait_for 20 no_sessions || fail "sessions stay"
ctl info --json "$T/back" | member state | grep -qx outdated || fail "it is not outdated: $(cat "$TMP/out")"
fails 4 "the one that is outdated was being brought back" "$T/back" "$T/lags"
ctl restore "$T/lags" "$TMP/lags" >"$TMP/out" 2>&1 || fail "restore of lags: $(cat "$TMP/out")"
set_up back
ok map "$TMP/lags" $size
refused REPL_E_DIVERGED "/back: the replica is newer" open
equal "$TMP/q" "$TMP/serve/pools/back"
stop_api

# Nor where its session is killed before what was committed has come in: whoever asks brings that in.
mkfifo "$TMP/more"
exec {more}<>"$TMP/more"
client cat "$T" <"$TMP/more" >"$TMP/out" {more}>&- &
cut_pid=$!
PIDS="$PIDS $cut_pid"
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"cut","mode":"write","waits":true}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"journal.begin","params":{"bytes":4096}}'
	echo '{"jsonrpc":"2.0","id":4,"method":"journal.commit","params":'"$chain"'}'
} >&"$more"
wait_for 20 grep -q '"id": *4' "$TMP/out" || fail "no answer: $(cat "$TMP/out")"
grep -q '"error"' "$TMP/out" && fail "not committed: $(cat "$TMP/out")"
held=$(session_of cut) || fail "no session of cut"
signalled KILL "$held"
exec {more}>&-
wait_for 20 no_sessions || fail "sessions stay"
fails 4 "the one that is outdated was being brought back" "$T/cut" "$T/lags"
grep "^$T/cut " "$TMP/out" | grep -q outdated || fail "it was not brought in: $(cat "$TMP/out")"

# One is lost and the program goes on: the other one names its generation.
set_up f
ok set target "$(pool g)"
ok set reconnect-min 3600000
ok map "$TMP/r" $((4 * MIB))
ok open 1
ok persist 0 0 $((4 * MIB))
newest f f g
noted f "somebody writes to it now"
noted g "it has all as well; somebody"
signalled KILL "$(session_of g)"
ok put 0 4096 3
api persist 0 0 4096
ok persist 0 0 4096
ok close
stop_api
newest f g f
noted g "older: $T/f names its generation"

# Those that were made one by one, with replctl, are one pool by the generations that they have in common.
ctl create "$T/h" --size 4M >/dev/null && ctl create "$T/i" --size 4M >/dev/null || fail "create"
set_up h
ok set async-target "$(pool i)"
ok map "$TMP/s" $((4 * MIB))
ok open
ok persist 0 0 4096
ok close
stop_api
newest h i h

# Nothing tells.
ctl promote "$T/g" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
fails 4 "neither names the other's generation" "$T/g" "$T/f"
ctl newest --json "$T/g" "$T/f" >"$TMP/json" 2>/dev/null && fail "as JSON"
[ "$(member newest <"$TMP/json")" = None ] && member why <"$TMP/json" | grep -q "neither names" &&
	[ "$(member replicas.1.replica <"$TMP/json")" = "$T/f" ] || fail "as JSON: $(cat "$TMP/json")"
grep -q "next: look at the data: replctl restore" "$TMP/err" || fail "no next step: $(cat "$TMP/err")"
newest g g
noted g "it was promoted"
position g -

# What can't be chosen, or not be asked.
ctl create "$T/new" --size 4M >/dev/null || fail "create"
newest f f new
noted new "it has nothing"
fails 4 "none of them is usable" "$T/new"
fails 2 "different pools" "$T/a" "$T/f"
fails 2 "$T/[dh] and $T/[dh] are replicas of different pools" "$T/h" "$T/d" "$T/i"
fails 2 "named twice" "$T/a" "$T/a"
fails 2 "no replica is named"
fails 5 "1 of 2 could not be asked" "$SERVE_USER@127.0.0.1:1/a" "$T/a"
fails 7 "127.0.0.1:1" "$SERVE_USER@127.0.0.1:1/a"
fails 3 "not found" "$T/nowhere"
dd if=/dev/zero of="$TMP/serve/pools/new.repl" bs=8192 count=1 conv=notrunc 2>/dev/null
fails 5 "sidecar: both copies are damaged" "$T/new" "$T/f"

# One that has less is made no better by a sync of what was restored from it: it is of a generation of its own then.
ctl restore "$T/e" "$TMP/less" >/dev/null || fail "restore of e"
ctl sync "$TMP/less" "$T/e" >"$TMP/out" 2>&1 || fail "sync to e: $(cat "$TMP/out")"
fails 4 "neither names the other's generation" "$T/e" "$T/d"

# Nor is one that was promoted: its position is of the generation that it then names.
ctl promote "$T/c" >"$TMP/out" 2>&1 || fail "promote of c: $(cat "$TMP/out")"
fails 4 "$T/c was promoted .* of which $T/$take may have more" "$T/c" "$T/$take"
position c -

# They are asked at once: six that hang cost the time of one.
printf '[repl]\nconnect-timeout = 3000\n' >"$TMP/short.conf"
export REPL_CONFIG=$TMP/short.conf
signalled STOP "$SERVE_PID"
since=$(date +%s)
fails 9 "timed out" "$T/a" "$T/b" "$T/c" "$T/d" "$T/e" "$T/f"
[ $(($(date +%s) - since)) -le 9 ] || fail "it took $(($(date +%s) - since)) s"
kill -CONT "$SERVE_PID"

# Nothing was drained since it was opened: all have all, killed or closed.
for end in closed killed; do
	set_up "$end-a"
	ok set target "$(pool "$end-b")"
	ok set target "$(pool "$end-c")"
	ok set ack quorum
	ok map "$TMP/$end" $size
	ok open 1
	for i in 0 1 2; do
		wait_for 10 follows "$i" || fail "replica $i does not follow"
	done
	if [ "$end" = closed ]; then
		stop_api
	else
		kill -KILL "$(api_child)"
		wait "$api_pid" 2>/dev/null
		exec {API_IN}>&-
		wait_for 20 no_sessions || fail "sessions stay"
	fi
	newest "$end-b" "$end-b" "$end-a" "$end-c"
done

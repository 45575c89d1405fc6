# SPDX-License-Identifier: BSD-3-Clause
# replctl wait takes as long as it was told, and no longer, also where the program does not answer. What is named next is then
# no command that would end the same way, nor the end of a program that may be well.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool p)"
ok map "$TMP/p" $MIB
ok open 1
program=$(api_child)
signalled STOP "$program"
begin=$(date +%s%3N)
ctl_fails 9 "does not answer" wait "$TMP/p" --timeout 1
took=$(($(date +%s%3N) - begin))
kill -CONT "$program"
[ "$took" -ge 900 ] && [ "$took" -le 3500 ] || fail "it took $took ms"
# As long as it has not taken, an answer is waited for all the same.
ctl wait "$TMP/p" --timeout 0 >"$TMP/out" || fail "$?: $(cat "$TMP/out")"

# stuck EXIT PATTERN COMMAND...: what each of them says of a program that is stopped.
stuck() {
	local due=$1 pattern=$2 command pids=""

	shift 2
	for command in "$@"; do
		# shellcheck disable=SC2086 # a word and its options
		ctl $command "$TMP/p" >"$TMP/${command%% *}.out" 2>"$TMP/${command%% *}.err" &
		pids="$pids $!:${command%% *}"
	done
	for command in $pids; do
		wait "${command%:*}"
		status=$?
		command=${command#*:}
		[ "$status" -eq "$due" ] && grep -Eq "$pattern" "$TMP/$command.err" ||
			fail "$command: $status, $(cat "$TMP/$command.err")"
		grep -qx "next: look at the program that has it open (fuser -v $TMP/p.repl): its process may be stopped, hang, serve too many, or be none of librepl's; what a replica has: replctl why TARGET/POOL" \
			"$TMP/$command.err" || fail "$command: $(cat "$TMP/$command.err")"
	done
}
signalled STOP "$program"
# (A pause would be done later on.)
stuck 9 "does not answer" status why metrics events resume "wait --timeout 1"
# Those who have asked in vain wait to be let in, until no more can.
python3 -c '
import socket, sys
try:
    while True:
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        s.connect(sys.argv[1])
except BlockingIOError:
    pass' "$TMP/p.repl-sock" || fail "the socket takes all"
stuck 4 "too many are asking" status why metrics events resume "pause --force" "wait --timeout 1"
kill -CONT "$program"
wait_for 20 ctl metrics "$TMP/p" || fail "$(ctl metrics "$TMP/p" 2>&1)"
ctl wait "$TMP/p" --timeout 60 >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
ok close
stop_api

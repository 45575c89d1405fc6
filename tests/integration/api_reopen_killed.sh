#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A writer that is killed while it brings its replica up at the opening, and whose file is lost with it, leaves a
# replica that can be restored: as it was before, or with all that the file had.
. "$(dirname "$0")/api_lib.sh"
seed=${API_SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
make_keys
start_serve
size=$((64 * MIB + 777))
file=$TMP/p
next=$TMP/next

lanes() {
	grep -c "lanes open" "$TMP/serve.log"
}

# One more session has opened its lanes: the comparison begins.
begins() {
	[ "$(lanes)" -gt "$lanes" ]
}

# shell_of PID: the api_shell of a writer, below timeout.
shell_of() {
	pgrep -x api_shell -P "$(pgrep -x timeout -P "$1")"
}

# writer LINE...: api_shell with the pool mapped.
writer() {
	printf '%s\n' config "set identity $TMP/key" "set known-hosts $TMP/known_hosts" \
		"set target $(pool p)" "map $file $size" "$@" | timeout 60 "$API_SHELL"
}

writer "put 0 $size 1" "open 1" close >"$TMP/out" || fail "$(cat "$TMP/out")"
# The program has been told that the pool is open: six lines, one for each of its words.
answered() {
	[ "$(grep -c ^REPL_ "$TMP/out")" -ge 6 ]
}

before=0 after=0 amid=0
for ((i = 2; i <= 9 || (amid == 0 && i <= 25); i++)); do
	cp "$file" "$TMP/was"
	# What somebody else has written to the file since: every page differs.
	writer "put 0 $size $i" >"$TMP/out" || fail "$(cat "$TMP/out")"
	cp "$file" "$next"
	lanes=$(lanes)
	writer "open 0" >"$TMP/out" 2>&1 &
	pid=$!
	wait_for 10 shell_of "$pid" || fail "the writer does not begin: $(cat "$TMP/out")"
	shell=$(shell_of "$pid")
	until begins || gone "$pid"; do
		:
	done
	sleep "$(printf '0.%03d' $((RANDOM % 400)))"
	kill -KILL "$shell" 2>/dev/null
	wait "$pid" 2>/dev/null
	begins || fail "it has ended: $(cat "$TMP/out")"
	answered || amid=$((amid + 1))
	wait_for 20 no_sessions || fail "its session stays"
	rm -f "$file" "$file.repl"
	ctl restore "$(pool p)" "$file" >"$TMP/restore.log" 2>&1 || lost "restore: $(cat "$TMP/restore.log")"
	if cmp -s "$file" "$TMP/was"; then
		before=$((before + 1))
	elif cmp -s "$file" "$next"; then
		after=$((after + 1))
	else
		lost "what is restored is neither the one nor the other"
	fi
done
echo "as before $before times, with all $after times, $amid of them amid the opening"
[ $amid -gt 0 ] || fail "no kill was amid an opening"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# An unmodified program of PMDK's that is killed at any moment loses nothing that it was told is durable.
#
#   run_kills.sh PROGRAM   of which kills/ tells what it is; KILLS of them, 10 unless given
#
# Each time the local file is deleted, restored, and checked by PMDK and the program; it goes on from there.
#
# A program's file has: write_on, which becomes the program, to print a line for each thing that is durable; check
# FILE LINES LEFT, of what was restored, against the lines and the file that was left; where needed begin, which makes
# the pool, and sign, a pattern that says that it writes.
here=$(dirname "$0")
. "$here/run_lib.sh"
EXAMPLES=/usr/share/doc
program=${1:?program}
seed=${SEED:-$RANDOM}
RANDOM=$seed
echo "seed $seed"
pool=$TMP/pool
sign='[0-9]'

# example NAME ARG...: one of PMDK's that Debian has as source is compiled.
example() {
	name=$1
	shift
	for source in "$@"; do
		case $source in
		-*) ;;
		*) [ -e "$source" ] || { echo "skipped: no $source"; exit 77; } ;;
		esac
	done
	gcc -O1 -w -I"$here/examples" -o "$TMP/$name" "$@" || fail "compiling $name"
}

pmempool_check() {
	timeout 20 pmempool check "$1" >"$TMP/check.log" 2>&1 || lost "pmempool check: $(cat "$TMP/check.log")"
}

# pages_differ A B MOST
pages_differ() {
	python3 - "$@" <<'PY' || lost "$program: pages are lost"
import sys
a, b = (open(n, "rb").read() for n in sys.argv[1:3])
bad = [i for i in range(0, max(len(a), len(b)), 4096) if a[i:i + 4096] != b[i:i + 4096]]
if len(bad) > int(sys.argv[3]):
    sys.exit(f"{len(bad)} pages differ: {bad[:10]}")
PY
}

begin() {
	:
}

# killed PID: it and what it has started, which is no more meanwhile.
killed() {
	[ -z "$(children "$1")" ] || signalled STOP "$1"
	for child in $(children "$1"); do
		killed "$child"
	done
	kill -KILL "$1" 2>/dev/null
}

# Our only session on the target has ended.
target_idle() {
	for child in $(children "$SERVE_PID"); do
		[ -z "$(children "$child")" ] || return 1
	done
}

# What is restored is checked. A pool that was being made when it was killed need not have a replica yet.
restored() {
	wait_for 20 target_idle || fail "the writer is still there"
	rm -f "$pool" "$pool.repl"
	if ctl restore "$T/killed" "$pool" >"$TMP/restore.log" 2>&1; then
		fresh=
		check "$pool" "$TMP/acknowledged" "$TMP/left"
	elif [ "$fresh" ] && [ ! -s "$TMP/acknowledged" ] &&
		grep -q "not found\|never\|inconsistent" "$TMP/restore.log"; then
		anew
	else
		lost "restore: $(cat "$TMP/restore.log")"
	fi
}

anew() {
	rm -f "$pool" "$pool.repl"
	ctl remove --force "$T/killed" >/dev/null 2>&1
	fresh=1
	begin
}

# stock WHAT: it can't load a library that was built with sanitizers. fio can, what is ours is built with them.
stock() {
	if nm -D "$BUILD/librepl-preload.so" | grep -q "__[at]san"; then
		echo "skipped: librepl-preload.so is built with sanitizers, and $* is not"
		exit 77
	fi
}

start_target
# shellcheck source=/dev/null
case $program in
log | blk | pmem2 | threads) . "$here/kills/stream.sh" ;;
pmemblk) . "$here/kills/fio.sh" ;;
pmem2log) . "$here/kills/addlog.sh" ;;
*) . "$here/kills/$program.sh" ;;
esac

i=0
while [ $i -lt "${KILLS:-10}" ]; do
	# Before it is full.
	[ $((i % 10)) -ne 0 ] || anew
	i=$((i + 1))
	: >"$TMP/counts"
	write_on >"$TMP/counts" 2>"$TMP/run.log" &
	pid=$!
	PIDS="$PIDS $pid"
	# Every fourth one is hit while it begins, or at any time; the others while it writes.
	[ $((i % 4)) -eq 0 ] || wait_for 30 grep -Eq "$sign" "$TMP/counts" ||
		fail "nothing is written: $(cat "$TMP/run.log")"
	sleep "0.$((RANDOM % 300 + 100))"
	killed "$pid"
	wait "$pid" 2>/dev/null
	! grep -q "REPLICATED\|LOST" "$TMP/run.log" || fail "$(cat "$TMP/run.log")"
	# A line that is not ended was not acknowledged.
	cp "$TMP/counts" "$TMP/acknowledged"
	[ -z "$(tail -c 1 "$TMP/acknowledged")" ] || sed -i '$d' "$TMP/acknowledged"
	rm -f "$TMP/left"
	[ ! -e "$pool" ] || cp "$pool" "$TMP/left"
	restored
done

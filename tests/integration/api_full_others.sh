# SPDX-License-Identifier: BSD-3-Clause
# A replica that has missed more than its target's disk takes leaves that room to others who write there, however often it is
# tried, stays the copy that it was, and comes back when there is room.
. "$(dirname "$0")/full_lib.sh"

# free_least FILE: the least that is free on the disk, until the file is there.
free_least() {
	python3 -c '
import os, sys, time
least = 1 << 60
while not os.path.exists(sys.argv[2]):
    disk = os.statvfs(sys.argv[1])
    least = min(least, disk.f_bavail * disk.f_frsize)
    time.sleep(0.0005)
print(least)' "$pools" "$1"
}

ended() {
	grep -c "session of .* has ended" "$TMP/serve.log"
}
tried() {
	[ "$(ended)" -gt "$told" ]
}

# misses WHAT: 28 MiB of its sparse pool, with 16 MiB free.
misses() {
	configure "$(pool p)"
	ok set reconnect-max 200
	ok map "$TMP/local" $((32 * MIB))
	ok open 5
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	ctl pause --force "$TMP/local" >/dev/null 2>"$TMP/err" || fail "pause: $(cat "$TMP/err")"
	ok put 0 $((28 * MIB)) 2
	ok persist 0 0 $((28 * MIB))
	wait_for 20 no_sessions || fail "$1: a session stays"
	leave $((16 * MIB))
	free_least "$TMP/enough" >"$TMP/least" &
	told=$(($(ended) + 4))
	ctl resume "$TMP/local" >/dev/null 2>"$TMP/err" || fail "resume: $(cat "$TMP/err")"
	wait_for 30 tried || fail "$1: it is not tried again"
	still_a_copy "$1: with a part of its room"
	: >"$TMP/enough"
	wait $! || fail "$1: no least room"
	# Not all is taken until it is clear that it will not do: a part, and as much of the sparse pool.
	[ "$(cat "$TMP/least")" -ge $((4 * MIB)) ] || lost "$1: $(cat "$TMP/least") of $((16 * MIB)) bytes were left to others"
	rm "$pools/.filler"
	back "$1: with room"
	ok close
	equal "$TMP/local" "$pools/p"
}

start_on_disk tmpfs 80m
misses "a journal"

# More than a journal may be is copied into the pool directly: where that has no room either the copy stays, too.
stop "$SERVE_PID"
rm "$pools"/p "$pools"/p.* "$TMP"/local* "$TMP/enough"
start_serve "journal-max = 8M"
misses "beyond journal-max"

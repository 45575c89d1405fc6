# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map an opening copies what the dirty maps tell and compares nothing: after a close in
# order, of a degraded pool too, and after a kill. With compare, and where the map can't be trusted, it compares.
#   OPENING, GETTING: seconds behind which the program, and the target, are killed; more of them at night
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
size=$((64 * MIB + 777))

set_up() {
	configure "$(pool a)" "$(pool b)"
	ok set lanes 2
	ok set after-crash "${1:-dirty-map}"
	ok set op-timeout 5000
}

# Where nobody writes, so that only who compares sees what nobody may do there.
lie_at=$((40 * MIB + 12345))
lie() {
	printf 'lie' | dd of="$TMP/serve/pools/$1" bs=1 seek=$lie_at conv=notrunc 2>/dev/null
}

truth() {
	dd if="$TMP/p" of="$TMP/serve/pools/$1" bs=1 skip=$lie_at seek=$lie_at count=3 conv=notrunc \
		2>/dev/null
}

# found POOL lie|truth: whether the opening has looked there; afterwards it is as it should be.
found() {
	local is=truth

	cmp -s -n 3 -i $lie_at "$TMP/p" "$TMP/serve/pools/$1" || is=lie
	[ $is = "$2" ] || fail "$1 has the $is where the $2 was to be found"
	truth "$1"
}

both_established() {
	for i in 0 1; do
		ok stat "$i"
		is replication 0
		is data 0
	done
}

both_equal() {
	equal "$TMP/p" "$TMP/serve/pools/a"
	equal "$TMP/p" "$TMP/serve/pools/b"
}

b_is_open() {
	session_of b >/dev/null
}

# The pool is open there, and what it lacks is on its way.
opening() {
	printf 'open 0\n' >&"$API_IN"
	wait_for 20 b_is_open || fail "nobody opens b"
	sleep "$delay"
}

# killed_with PID...: the program, and then those.
killed_with() {
	signalled KILL $(api_child)
	kill -KILL "$@" 2>/dev/null
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 10 no_sessions || fail "sessions stay"
	start_api
	ok map "$TMP/p" $size
}

killed() {
	killed_with
}

# On media it is known that the second replica is lost, and since which generation: POOL-FORMAT.md, 1.6.
remembered() {
	python3 -c 'import sys
with open(sys.argv[1], "rb") as f:
    f.seek(480)
    f.seek(int.from_bytes(f.read(8), "little") + 64 + 48)
    sys.exit(f.read(1)[0] & 3 != 1)' "$TMP/p.repl"
}

set_up
ok map "$TMP/p" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok put $((20 * MIB)) 300000 2
ok flush 1 $((20 * MIB)) 300000
ok close

# Closed in order, and whole: nothing is compared; what was never drained has come.
lie a
lie b
ok open 0
both_established
ok close
found a lie
found b lie
both_equal

# ... and by default all of it is.
lie a
set_up compare
ok open 0
found a truth
ok close
both_equal

# Who compares leaves a map behind for its lost ones only: the others are compared once more.
lie b
set_up
ok open 0
found b truth
ok close

# Closed with one of two lost: that one gets what it missed.
set_up
stay_lost
ok open 0
pid=$(session_of b) || fail "no session of b"
signalled KILL "$pid"
wait_for 10 degraded 1 || fail "the loss is not noticed: $TEXT"
ok put $((5 * MIB)) $((2 * MIB)) 3
ok persist 0 $((5 * MIB)) $((2 * MIB))
ok put $((30 * MIB)) 4096 4
ok flush 1 $((30 * MIB)) 4096
ok close
lie a
lie b
ok open 0
both_established
found a lie
found b lie
ok compare 1
same
ok close
both_equal

# Killed: what was written to lately is copied; to the lost one what it missed as well.
ok open 0
ok put $((10 * MIB)) 100000 5
ok persist 0 $((10 * MIB)) 100000
pid=$(session_of b) || fail "no session of b"
signalled KILL "$pid"
wait_for 10 degraded 1 || fail "the loss is not noticed: $TEXT"
ok put $((50 * MIB)) 100000 6
ok persist 1 $((50 * MIB)) 100000
wait_for 10 remembered || fail "the dirty map is not written"
killed
lie a
lie b
set_up
ok open 0
both_established
found a lie
found b lie
both_equal
pid=$(session_of b) || fail "no session of b"
signalled KILL "$pid"
wait_for 10 degraded 1 || fail "the loss is not noticed: $TEXT"
ok put $((30 * MIB)) 100000 7
ok persist 1 $((30 * MIB)) 100000
killed
set_up
ok open 0
both_established
both_equal
ok close

# sent_ahead OFFSET: flushed, and killed before a drain, by a power cut that takes it from the file: whatever of it has
# arrived goes from the replicas, too. Where they have their memory registered by then it is sent at once.
sent_ahead() {
	dd if="$TMP/p" of="$TMP/before" iflag=skip_bytes,count_bytes skip="$1" count=300000 bs=1M status=none
	ok put "$1" 300000 "$2"
	ok flush 1 "$1" 300000
	[ -z "${3-}" ] || wait_for 20 arrived "$1" || fail "it is not sent before it is drained"
	killed
	dd if="$TMP/before" of="$TMP/p" oflag=seek_bytes seek="$1" conv=notrunc bs=1M status=none
	set_up
	ok set method general-purpose
	ok open 0
	for i in 0 1; do
		ok compare $i
		same
	done
	both_equal
	ok put $((60 * MIB)) 300000 "$2"
	ok persist 1 $((60 * MIB)) 300000
}

arrived() {
	cmp -s -n 300000 -i "$1" "$TMP/p" "$TMP/serve/pools/b"
}

set_up
ok set method general-purpose
ok open 0
ok put $((60 * MIB)) 300000 7
ok persist 1 $((60 * MIB)) 300000
sent_ahead $((44 * MIB)) 8
# In an extent that is in the log it arrives.
ok persist 1 $((44 * MIB)) 1
sent_ahead $((44 * MIB)) 9 arrives
ok close

# Of three of which two must have a drain one is stopped: what it has not got is in the log of the killed program.
set_up
ok set target "$(pool c)"
ok set ack quorum
ok open 1
pid=$(session_of c) || fail "no session of c"
signalled STOP "$pid"
for at in 3 9 27; do
	ok put $((at * MIB)) 70000 "$at"
	ok persist 0 $((at * MIB)) 70000
done
killed_with "$pid"
lie c
set_up
ok set target "$(pool c)"
ok set ack quorum
ok open 0
ok close
found c lie
equal "$TMP/p" "$TMP/serve/pools/c"
both_equal

# Without its map, or with one that is of another writer's time, it is compared.
set_up
ok open 0
killed
flip=$((8192 + 4096))
printf '\377' | dd of="$TMP/p.repl" bs=1 seek=$flip conv=notrunc 2>/dev/null
lie a
set_up
ok open 0
found a truth
ok close

# Another file has the pool's name, with what nobody has told the library.
replaced() {
	cp "$TMP/p" "$TMP/other"
	change "$TMP/other" $((33 * MIB))
	mv "$TMP/other" "$TMP/p"
	ok map "$TMP/p" $size
	set_up
	ok open 0
	both_established
	ok close
	both_equal
}
replaced
set_up
ok open 0
killed
replaced

# Killed while it opens, again and again, with a delta that takes its time.
for delay in ${OPENING:-0 0.06 0.15}; do
	set_up
	stay_lost
	ok open 0
	signalled KILL "$(session_of b)"
	wait_for 10 degraded 1 || fail "the loss is not noticed: $TEXT"
	ok put 0 $((48 * MIB)) "${delay#0.}"
	ok persist 0 0 $((48 * MIB))
	ok close
	set_up
	opening
	killed
	ok put $((60 * MIB)) 4096 "${delay#0.}"
	set_up
	ok open 0
	both_established
	ok persist 0 $((60 * MIB)) 4096
	ok close
	both_equal
done

# In a session of its own: the one that was killed may not yet be missed.
b_is_back() {
	local now

	now=$(session_of b) && [ "$now" != "$pid" ] && established 1
}

# The target is killed while it gets the delta: it is opened without it, and comes by itself.
for delay in ${GETTING:-0 0.08}; do
	set_up
	stay_lost
	ok open 0
	signalled KILL "$(session_of b)"
	wait_for 10 degraded 1 || fail "the loss is not noticed: $TEXT"
	ok put 0 $((48 * MIB)) "${delay#0.}"
	ok persist 0 0 $((48 * MIB))
	ok close
	set_up
	opening
	pid=$(session_of b) && kill -KILL "$pid" 2>/dev/null
	IFS=' ' read -r -t 30 -u "$API_OUT" STATUS MS TEXT || fail "no answer to open"
	[ "$STATUS" = REPL_OK ] || fail "open: $STATUS $TEXT"
	wait_for 30 b_is_back || fail "the replica does not come back: $TEXT"
	ok put $((60 * MIB)) 4096 "${delay#0.}"
	ok persist 0 $((60 * MIB)) 4096
	ok close
	both_equal
done
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A pool that has all its space, on a file system where another file may share its blocks, as a copy of it does, and
# whose disk is full then: its replica is lost as that of a full disk, what updates are to be brought in says so to
# whoever opens it, and with room all that was acknowledged is there. Likewise where only its local replica's are shared.
. "$(dirname "$0")/full_lib.sh"

make_keys
make_serve_dir
truncate -s 400m "$TMP/disk"
mkfs.xfs -q -f -m reflink=1 "$TMP/disk" 2>/dev/null && mount -o loop "$TMP/disk" "$pools" || exit 77
trap 'code=$?; umount -l "$pools"; (exit $code); cleanup' EXIT
chown "$SERVE_USER" "$pools"
chmod 700 "$pools"
start_serve

# What the file system has set aside for a file that was written it gives back behind a sync.
shared_and_full() {
	cp --reflink=always "$pools/$1" "$pools/shared" || exit 77
	for n in 1 2 3; do
		cat /dev/zero >"$pools/.filler$n" 2>/dev/null
		sync -f "$pools"
	done
}

no_space() {
	api stat 0
	[[ $TEXT == *"no space"* ]]
}

room() {
	rm -f "$pools/shared" "$pools"/.filler*
	sync -f "$pools"
}

# More than what the round log of a session gives back at its end.
updates() {
	for ((at = 4 * MIB; at < 20 * MIB; at += 65536)); do
		ok put "$at" 40000 "$1"
		ok persist 0 "$at" 4000
		ok persist 0 $((at + 4000)) 36000
	done
}

begin() {
	start_api
	configure "$(pool "$1")"
	ok set reconnect-max 200
	ok map "$TMP/local" $((24 * MIB))
	ok open 1
}

# filled POOL FILE: of which the blocks are shared; its last writer is killed.
filled() {
	begin "$1"
	ok put 0 $((24 * MIB)) 1
	ok persist 0 0 $((24 * MIB))
	shared_and_full "$2"
	updates 2
	wait_for 20 no_space || fail "not told: $TEXT"
	wait_for 20 why_full || fail "the reason is not that the disk is full"
	room
	back "updates"
	# All in the round log, if it has one.
	for ((at = 4 * MIB; at < 6 * MIB; at += 16384)); do
		ok put "$at" 64 3
		ok persist 0 "$at" 64
	done
	pid=$(session_of "$2") || fail "no session"
	kill -KILL "$(api_child)" "$pid"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 no_sessions || fail "sessions stay"
}

# no_room COMMAND...
no_room() {
	! ctl "$@" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	grep -q 'no space is left for .* make room' "$TMP/out" || fail "$*: $(cat "$TMP/out")"
}

filled p p
shared_and_full p
no_room restore "$(pool p)" "$TMP/copy"
no_room verify "$TMP/local" "$(pool p)"
room
ctl restore "$(pool p)" "$TMP/copy" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
equal "$TMP/local" "$TMP/copy"

rm "$TMP/local" "$TMP/local.repl"
printf 'PMEMPOOLSET\nOPTION NOHDRS\n24M part\nREPLICA\n24M twin\n' >"$pools/s"
filled s twin
# What the writer has not brought to the local replica is by who opens the pool next.
dd if=/dev/urandom of="$pools/twin" bs=64k count=4 seek=100 conv=notrunc status=none
shared_and_full twin
no_room sync "$TMP/local" "$(pool s)"
room
ctl sync "$TMP/local" "$(pool s)" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
equal "$pools/part" "$pools/twin"
equal "$TMP/local" "$pools/part"
! grep -q 'device failed' "$TMP/serve.log" || fail "it is told as a failing device"

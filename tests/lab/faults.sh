# SPDX-License-Identifier: BSD-3-Clause
# faults.sh - what befalls the replicas in the lab, a function each; sourced by lab.sh.
#
# A fault is a function fault_NAME of one run: the load is started and ended in it. fault_setup
# makes what it needs before the targets start.

fault_setup() {
	declare -F "fault_${1//-/_}" >/dev/null || return 1
	case $1 in
	link-* | late-* | lossy | reordered | doubled | flapping) link_start 0 && link_start 1 ;;
	quorum-*)
		TARGETS="0 1 2"
		THIRD=target=
		;;
	async-*)
		TARGETS="0 1 2"
		THIRD=async-target=
		;;
	disk-full-target) small_disk "$TMP/t0/pools" 20m ;;
	disk-full-initiator)
		small_disk "$TMP/here" 17m
		HERE=$TMP/here
		;;
	initiator-killed-dirty-map) export LAB_REST=1 ;;
	power-cut*)
		REPLD=$BUILD/tests/sim/repld-media
		export REPL_MEDIA_GRANULARITY=page REPL_MEDIA_DOMAIN=dmp REPL_MEDIA_DDIO=on
		;;
	old-target)
		skew_setup
		REPLD_OF[0]=$OLD/repld
		;;
	# One in memory, the other on a disk.
	target-upgraded)
		skew_setup
		small_disk "$TMP/t0/pools" 64m
		;;
	old-initiator | upgrade-and-back)
		skew_setup
		export LD_LIBRARY_PATH=$OLD
		;;
	clock-jumped)
		echo 0 >"$TMP/clock"
		chmod a+r "$TMP/clock"
		export LAB_CLOCK=$TMP/clock
		LAB_PRELOAD="env LD_PRELOAD=$BUILD/tests/lab/lab_clock.so"
		echo -864000 >"$TMP/clock"
		[ "$($LAB_PRELOAD date +%s)" -lt $(($(date +%s) - 800000)) ] || fail "the clock does not jump"
		echo 0 >"$TMP/clock"
		;;
	esac
	return 0
}

fault_run() {
	LOAD_KEYS=
	"fault_${1//-/_}"
}

# The load runs, the fault comes and goes, all is well again, the load ends in order.
around() {
	load_start 1
	pause 100 900
	"$@"
	check_well
	pause 50 300
	load_stop
	check_equal
}

# Which of the targets.
victim() {
	random 2
	VICTIM=$RANDOM_VALUE
}

# ---- signals ----

hurt_session_killed() {
	session_signal KILL "$VICTIM"
}

hurt_target_killed() {
	target_kill "$VICTIM"
	pause 100 2000
	target_start "$VICTIM"
}

hurt_target_stopped() {
	local pids

	pids=$(session_pids "$VICTIM")
	session_signal STOP "$VICTIM"
	pause 500 5000
	# shellcheck disable=SC2086
	kill -CONT $pids 2>/dev/null
}

hurt_initiator_stopped() {
	load_halt
	pause 1000 5000
	load_resume
}

# Whoever goes on first finds the others stopped.
hurt_both_stopped() {
	local pids

	pids="$(session_pids 0) $(session_pids 1)"
	session_signal STOP 0
	session_signal STOP 1
	pause 0 200
	load_halt
	pause 500 2500
	random 2
	if [ "$RANDOM_VALUE" -eq 0 ]; then
		load_resume
		pause 0 2500
	fi
	# shellcheck disable=SC2086
	kill -CONT $pids 2>/dev/null
	if [ "$RANDOM_VALUE" -ne 0 ]; then
		pause 0 2500
		load_resume
	fi
}

fault_session_killed() {
	victim
	around hurt_session_killed
}

fault_target_killed() {
	victim
	around hurt_target_killed
}

fault_target_stopped() {
	victim
	around hurt_target_stopped
}

fault_initiator_stopped() {
	around hurt_initiator_stopped
}

fault_both_stopped() {
	around hurt_both_stopped
}

# The program is killed; what is left is looked at; it goes on.
fault_initiator_killed() {
	load_start 1
	pause 50 1500
	load_kill
	check_left
	load_start 0
	check_well
	pause 50 300
	load_stop
	check_equal
}

# Bytes of target I's replica where nobody writes: who compares puts them right.
lie_at=$((17 << 20))

lie() {
	printf 'lie' | dd of="$TMP/t$1/pools/$POOL" bs=1 seek=$lie_at conv=notrunc status=none
}

# It was not compared: the lie has stayed. It is taken back.
lie_stayed() {
	printf 'lie' | cmp -s -n 3 -i 0:$lie_at - "$TMP/t$1/pools/$POOL" || return
	dd if=/dev/zero of="$TMP/t$1/pools/$POOL" bs=1 count=3 seek=$lie_at conv=notrunc status=none
}

# ... and gets only what the dirty maps tell, be a replica lost or not.
fault_initiator_killed_dirty_map() {
	LOAD_KEYS="after-crash=dirty-map"
	victim
	load_start 1
	for lost in '' 1 1; do
		# The other replica must be there to hold what is acknowledged while the victim is lost.
		[ -z "$lost" ] || check_well
		pause 50 1500
		[ -z "$lost" ] || hurt_session_killed
		[ -z "$lost" ] || pause 1 1500
		load_kill
		check_left
		lie 0
		lie 1
		load_start 0
		# What is known of a lost one may not have come to the disk.
		for i in $TARGETS; do
			lie_stayed "$i" || [ "$lost$i" = "1$VICTIM" ] || fail "$WHAT: target $i was compared"
		done
	done
	check_well
	pause 50 300
	load_stop
	check_equal
}

# ... and while one replica is on its way back.
fault_initiator_killed_in_resync() {
	fall_behind
	resync_begins
	pause 1 300
	load_kill
	check_left
	load_start 0
	check_well
	load_stop
	check_equal
}

# both_die HOW [THEN]: the program and both targets go, HOW for these; THEN what is left here is changed.
both_die() {
	local pids

	load_start 1
	pause 100 1500
	# At a time: a session whose program is gone ends in order.
	pids="$(target_pids 0) $(target_pids 1)"
	# shellcheck disable=SC2086
	kill -KILL "$load" $pids || fail "$WHAT: there is no load to kill"
	"$1" 0
	"$1" 1
	load_was_killed
	"${2-:}"
	target_start 0
	target_start 1
	check_left
	load_start 0
	check_well
	load_stop
	check_equal
}

fault_both_killed() {
	both_die target_kill
}

# ---- three replicas, not all of which a drain waits for ----

fault_quorum_target_killed() {
	LOAD_KEYS="ack=quorum"
	random 3
	VICTIM=$RANDOM_VALUE
	around hurt_target_killed
}

fault_quorum_target_stopped() {
	LOAD_KEYS="ack=quorum"
	random 3
	VICTIM=$RANDOM_VALUE
	around hurt_target_stopped
}

# With two stopped nothing is acknowledged. What two have has its place in one order, so that the
# same two have all before it.
fault_quorum_initiator_killed() {
	local pids

	LOAD_KEYS="ack=quorum"
	WHOLE_LEAST=2
	random 3
	load_start 1
	pause 50 1000
	pids="$(session_pids $(((RANDOM_VALUE + 1) % 3))) $(session_pids $(((RANDOM_VALUE + 2) % 3)))"
	session_signal STOP $(((RANDOM_VALUE + 1) % 3))
	session_signal STOP $(((RANDOM_VALUE + 2) % 3))
	pause 50 300
	load_kill
	# shellcheck disable=SC2086
	kill -CONT $pids
	check_left
	load_start 0
	check_well
	pause 50 300
	load_stop
	check_equal
}

fault_async_target_killed() {
	VICTIM=2
	around hurt_target_killed
}

# ---- the link ----

hurt_link() {
	link "$VICTIM" "$@"
	pause 500 4000
	link_clear "$VICTIM"
	link_hurt "$VICTIM"
}

fault_link_down() {
	victim
	around hurt_link both drop
}

fault_link_in_dropped() {
	victim
	around hurt_link in drop
}

fault_link_out_dropped() {
	victim
	around hurt_link out drop
}

fault_flapping() {
	victim
	around hurt_flapping
}

hurt_flapping() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		link "$VICTIM" both drop
		sleep 0.2
		link_clear "$VICTIM"
		sleep 0.2
	done
	link_hurt "$VICTIM"
}

fault_late_500() {
	victim
	around hurt_link both delay 500
}

fault_lossy() {
	victim
	around hurt_link both loss 5
}

fault_reordered() {
	victim
	around hurt_link both reorder 20
}

fault_doubled() {
	victim
	around hurt_link both double 30
}

# ---- full disks ----

# A disk of a few MiB more than the pools need, under PATH.
small_disk() {
	mkdir -p "$1"
	mount -t tmpfs -o "size=$2,mode=0777" tmpfs "$1" 2>/dev/null || exit 77
	MOUNTS="${MOUNTS-} $1"
}

fill_disk() {
	dd if=/dev/zero of="$1/filler" bs=64k 2>/dev/null
	dd if=/dev/zero of="$1/filler2" bs=4k 2>/dev/null
	! dd if=/dev/zero of="$1/filler3" bs=4k count=1 2>/dev/null || fail "$WHAT: $1 is not full"
}

fault_disk_full_target() {
	load_start 1
	pause 100 300
	VICTIM=0
	fill_disk "$TMP/t0/pools"
	hurt_session_killed
	pause 200 500
	hurt_target_killed
	check_well
	load_stop
	check_equal
	rm -f "$TMP"/t0/pools/filler*
}

fault_disk_full_initiator() {
	load_start 1
	pause 100 300
	fill_disk "$TMP/here"
	victim
	hurt_target_killed
	check_well
	victim
	hurt_session_killed
	pause 0 500
	load_kill
	check_left
	rm -f "$TMP"/here/filler*
	load_start 0
	check_well
	load_stop
	check_equal
}

# ---- bytes that change on a disk ----

# flip FILE OFFSET [FILE OFFSET...]
flip() {
	python3 - "$@" <<'END' || fail "$WHAT: flip $*"
import sys
for path, at in zip(sys.argv[1::2], sys.argv[2::2]):
    with open(path, "r+b") as f:
        f.seek(int(at))
        byte = f.read(1)
        f.seek(int(at))
        f.write(bytes([byte[0] ^ 0x10]))
END
}

# verify_told FILE OTHER ANSWER...: what verify has answered are the units of 64 bytes in which these files differ.
verify_told() {
	python3 - "$@" <<'END'
import json
import sys

UNIT = 64
paths = sys.argv[1:]
while paths:
    a, b = (open(path, "rb").read() for path in paths[:2])
    with open(paths[2], encoding="utf-8") as f:
        ranges = json.load(f)["ranges"]
    paths = paths[3:]
    due = {i for i in range(0, len(a), UNIT) if a[i : i + UNIT] != b[i : i + UNIT]}
    told = {i for r in ranges for i in range(r["off"], r["off"] + r["len"], UNIT)}
    if due != told or not due:
        sys.exit(f"verify tells {sorted(told)}, and there differ {sorted(due)}")
END
}

# On either side, behind everybody's back: what verify tells is all of that, and nothing else.
fault_bits_flipped() {
	local flips=() answers=() at size

	load_start 1
	pause 100 500
	load_stop
	check_equal
	size=$(stat -c %s "$LOCAL")
	for file in "$LOCAL" "$TMP/t0/pools/$POOL" "$TMP/t1/pools/$POOL"; do
		for _ in 1 2 3 4 5 6; do
			random 32768
			at=$RANDOM_VALUE
			random 32768
			flips+=("$file" $(((at << 15 | RANDOM_VALUE) % size)))
		done
	done
	flip "${flips[@]}" "$TMP/t0/pools/$POOL" 0 "$TMP/t1/pools/$POOL" $((size - 1))
	for i in $TARGETS; do
		! verify "$i" || lost "$WHAT: verify of target $i finds nothing"
		mv "$TMP/verify" "$TMP/verify$i"
		answers+=("$LOCAL" "$TMP/t$i/pools/$POOL" "$TMP/verify$i")
	done
	verify_told "${answers[@]}" 2>"$TMP/told" ||
		lost "$WHAT: $(cat "$TMP/told" "$TMP/verify.log" "$TMP"/verify?)"
}

# One copy of a sidecar, here or there.
fault_sidecar_copy_flipped() {
	load_start 1
	pause 100 500
	load_kill
	check_left
	random 8192
	at=$RANDOM_VALUE
	random 3
	case $RANDOM_VALUE in
	0) flip "$LOCAL.repl" "$at" ;;
	*) flip "$TMP/t$((RANDOM_VALUE - 1))/pools/$POOL.repl" "$at" ;;
	esac
	load_start 0
	check_well
	load_stop
	check_equal
}

# What is known of a replica that is away: it is copied too much rather than too little.
fault_dirty_map_flipped() {
	LOAD_KEYS="after-crash=dirty-map"
	victim
	load_start 1
	pause 100 300
	target_kill "$VICTIM"
	pause 1500 1000
	random 2
	if [ "$RANDOM_VALUE" -eq 0 ]; then
		load_stop
	else
		load_kill
	fi
	size=$(stat -c %s "$LOCAL.repl")
	[ "$size" -gt 8192 ] || fail "$WHAT: there is no dirty map"
	random $((size - 8192))
	flip "$LOCAL.repl" $((8192 + RANDOM_VALUE))
	target_start "$VICTIM"
	load_start 0
	check_well
	load_stop
	check_equal
}

# journal_flip SIDECAR WHERE PID...: those, a session, are stopped between the commit of a journal and the end of what
# brings it into the pool, and a bit of its messages flips, WHERE of 30000 of their bytes.
journal_flip() {
	python3 - "$@" <<'END' || fail "$WHAT: $* no journal was flipped"
import os
import signal
import sys
import time

path, where, pids = sys.argv[1], int(sys.argv[2]), [int(p) for p in sys.argv[3:]]
fd = os.open(path, os.O_RDWR)
end = time.monotonic() + 20


def number(page, at, size=8):
    return int.from_bytes(page[at : at + size], "little")


def committed():
    slot = max((os.pread(fd, 4096, at) for at in (0, 4096)), key=lambda s: number(s, 24))
    return number(slot, 512) if number(slot, 60, 4) & 8 else 0


def stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0] in "TZX"


def send(what):
    for pid in pids:
        os.kill(pid, what)


while time.monotonic() < end:
    if not committed():
        continue
    send(signal.SIGSTOP)
    while not all(stopped(pid) for pid in pids):
        pass
    at = committed()
    if at:
        at += 8192 + where * number(os.pread(fd, 4096, at + 4096), 40) // 30000
        os.pwrite(fd, bytes([os.pread(fd, 1, at)[0] ^ 0x10]), at)
        sys.exit(0)
    send(signal.SIGCONT)
sys.exit(1)
END
}

# What the target has staged and is about to believe: it is all there, or the replica says that it is no copy.
fault_journal_flipped() {
	local pids

	fall_behind
	wait_for 10 has_session "$VICTIM" || fail "$WHAT: no session comes"
	pids=$(session_pids "$VICTIM")
	random 30000
	# shellcheck disable=SC2086
	journal_flip "$TMP/t$VICTIM/pools/$POOL.repl" "$RANDOM_VALUE" $pids
	random 2
	# What opens the pool next finds it, or the session itself.
	[ "$RANDOM_VALUE" -eq 0 ] || kill -KILL $pids
	[ "$RANDOM_VALUE" -ne 0 ] || kill -CONT $pids
	check_well
	load_stop
	check_equal
}

# ---- time ----

fault_clock_jumped() {
	load_start 1
	pause 100 300
	echo 86400 >"$TMP/clock"
	pause 500 1000
	victim
	hurt_session_killed
	check_well
	echo -86400 >"$TMP/clock"
	pause 500 1000
	victim
	hurt_target_killed
	check_well
	load_stop
	check_equal
	echo 0 >"$TMP/clock"
}

# ---- more than one who writes ----

# open_fails: the load that is started now is refused.
load_is_refused() {
	aside "$TMP/load2.log"
	timeout -k 1 60 "$LOAD" "$1" "$TMP/journal2" "$2" 300 "$(target_text 0)" "$(target_text 1)" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" </dev/null >"$TMP/said2" \
		2>"$TMP/load2.log"
	grep -q ready "$TMP/said2" && lost "$WHAT: a second writer came in"
	return 0
}

# racer FILE JOURNAL CREATE [N]: a program with that file wants the pool; its standard input is the pipe sayN.
racer() {
	rm -f "$TMP/say${4-}" "$TMP/said${4-}"
	mkfifo "$TMP/say${4-}"
	aside "$TMP/load${4-}.log"
	timeout -k 1 170 "$LOAD" "$1" "$2" "$3" 300 "$(target_text 0)" "$(target_text 1)" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" \
		<"$TMP/say${4-}" >"$TMP/said${4-}" 2>"$TMP/load${4-}.log" &
}

other_ready() {
	grep -q ready "$TMP/said2" || gone "$other"
}

race_here() {
	racer "$LOCAL" "$TMP/journal" "$1"
	load_waiter=$!
	exec 6>"$TMP/say"
}

race_there() {
	racer "$2" "$TMP/journal2" "$1" 2
	other=$!
	exec 9>"$TMP/say2"
}

# race CREATE OTHER: two programs want the pool, of the local file and of that other one. One gets it.
race() {
	random 2
	if [ "$RANDOM_VALUE" -eq 0 ]; then
		race_here "$1"
		pause 0 120
		race_there "$@"
	else
		race_there "$@"
		pause 0 120
		race_here "$1"
	fi
	wait_for 40 other_ready && wait_for 40 load_ready || fail "$WHAT: neither ready nor refused"
	if grep -q ready "$TMP/said"; then
		! grep -q ready "$TMP/said2" || lost "$WHAT: both came in"
		exec 9>&-
		pause 50 300
		load_stop
		check_equal
		return
	fi
	exec 6>&-
	grep -q ready "$TMP/said2" || fail "$WHAT: neither came in: $(cat "$TMP/load.log")"
	pause 50 300
	# shellcheck disable=SC2046
	kill -KILL $(children "$other") || fail "$WHAT: the other program is gone"
	exec 9>&-
	wait "$other" 2>/dev/null
	mv "$TMP/journal2" "$TMP/journal"
	if [ "$2" != "$LOCAL" ]; then
		mv "$2" "$LOCAL"
		mv "$2.repl" "$LOCAL.repl"
	fi
	check_left
	load_start 0
	check_well
	load_stop
	check_equal
}

# The other changes nothing.
fault_two_initiators() {
	race 1 "$TMP/other"
	rm -f "$TMP"/other* "$TMP/journal2"
}

# ... of a pool that is there, whose file has been copied with its record; or it is the same file.
fault_two_initiators_again() {
	load_start 1
	pause 100 500
	load_stop
	check_equal
	cp "$TMP/journal" "$TMP/journal2"
	random 3
	if [ "$RANDOM_VALUE" -eq 0 ]; then
		race 0 "$LOCAL"
	else
		cp "$LOCAL" "$TMP/other"
		cp "$LOCAL.repl" "$TMP/other.repl"
		race 0 "$TMP/other"
	fi
	# Who was refused is behind, and stays so.
	if [ -e "$TMP/other" ]; then
		load_is_refused "$TMP/other" 0
		check_equal
	fi
	rm -f "$TMP"/other* "$TMP/journal2"
}

# The pool is restored elsewhere and written to; the old program comes back.
fault_both_sides_written() {
	load_start 1
	pause 100 500
	load_kill
	timeout 60 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" restore \
		"$(target_text 0)" "$TMP/there" >"$TMP/restore.log" 2>&1 ||
		lost "$WHAT: restore: $(cat "$TMP/restore.log")"
	cp "$TMP/journal" "$TMP/journal.old"
	old=$LOCAL
	LOCAL=$TMP/there
	load_start 0
	pause 100 500
	load_stop
	check_equal
	load_is_refused "$old" 0
	grep -Eq "newer|diverged|behind" "$TMP/load2.log" ||
		fail "$WHAT: not told why: $(cat "$TMP/load2.log")"
	check_equal
	rm -f "$TMP"/there* "$TMP/journal.old" "$old"*
}

# ---- the version before this one, on either side ----

skew_setup() {
	OLD=$(bash "$(dirname "$0")/old.sh" "$BUILD") || exit 77
	# It knows whole pages only.
	export LAB_WHOLE_PAGES=1
}

fault_old_target() {
	VICTIM=0
	load_start 1
	pause 100 500
	hurt_session_killed
	check_well
	hurt_target_killed
	check_well
	load_stop
	check_equal
}

fault_old_initiator() {
	load_start 1
	pause 100 500
	load_kill
	check_left
	load_start 0
	pause 100 300
	load_stop
	check_equal
}

# A new program goes on with what an old one has left, and the other way round.
fault_upgrade_and_back() {
	lib=$LD_LIBRARY_PATH
	load_start 1
	pause 100 500
	load_stop
	check_equal
	unset LD_LIBRARY_PATH
	load_start 0
	victim
	pause 100 300
	hurt_session_killed
	check_well
	load_stop
	check_equal
	export LD_LIBRARY_PATH="$lib"
	load_start 0
	pause 100 500
	load_stop
	check_equal
}

# number_at FILE OFFSET LENGTH
number_at() {
	od -A n -t "u$3" -j "$2" -N "$3" "$1"
}

# record_version FILE: the major version of a sidecar, by the slot that was written last.
record_version() {
	local at=0

	[ "$(number_at "$1" 24 8)" -gt "$(number_at "$1" 4120 8)" ] || at=4096
	number_at "$1" $((at + 8)) 2
}

# The other version gets what this one has left, on the disk a round log.
log_left() {
	[ "$(record_version "$TMP/t1/pools/$POOL.repl")" -eq 3 ] || fail "$WHAT: target 1 has left no round log"
	targets_swap
}

targets_swap() {
	for i in $TARGETS; do
		target_swap "$i"
	done
}

target_swap() {
	if [ "${REPLD_OF[$1]-}" = "$OLD/repld" ]; then
		REPLD_OF[$1]=$REPLD
	else
		REPLD_OF[$1]=$OLD/repld
	fi
}

# Targets are killed, and another version goes on in their place: first both with the program, then one after the other
# while it runs. Which is the first version alternates.
fault_target_upgraded() {
	both_die target_kill log_left
	load_start 0
	random 2
	for VICTIM in $RANDOM_VALUE $((1 - RANDOM_VALUE)); do
		pause 100 500
		target_kill "$VICTIM"
		target_swap "$VICTIM"
		pause 0 500
		target_start "$VICTIM"
		check_well
	done
	load_stop
	check_equal
	targets_swap
	for VICTIM in $TARGETS; do
		target_kill "$VICTIM"
		target_start "$VICTIM"
	done
}

# ---- power cuts: of what a target held only what was flushed is left ----

# target_cut I: the machine stops; nothing is left of the pool but what the media hold.
target_cut() {
	target_kill "$1"
	"$BUILD/tests/sim/media_cut" "$TMP/t$1/pools/$POOL" 2>"$TMP/cut.log" &&
		"$BUILD/tests/sim/media_cut" "$TMP/t$1/pools/$POOL.repl" 8192 2>>"$TMP/cut.log" ||
		fail "$WHAT: the cut of target $1: $(cat "$TMP/cut.log")"
}

hurt_power() {
	target_cut "$VICTIM"
	pause 50 1000
	target_start "$VICTIM"
}

fault_power_cut() {
	victim
	around hurt_power
}

# Of the pool here no more is left than the program has synced; its record is synced by librepl itself.
local_cut() {
	mv "$LAB_MEDIA" "$LOCAL"
	check_image "$LOCAL" acked
}

# The machines of the program and both targets stop, and each holds what was promised.
fault_power_cut_all() {
	export LAB_MEDIA=$LOCAL.media
	both_die target_cut local_cut
}

# ... and again and again while a replica comes back.
fault_power_cut_in_resync() {
	fall_behind
	for _ in 1 2 3 4 5; do
		resync_begins
		pause 0 300
		target_cut "$VICTIM"
		target_start "$VICTIM"
	done
	check_well
	load_stop
	check_equal
}

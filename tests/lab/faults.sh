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
	power-cut*)
		REPLD=$BUILD/tests/sim/repld-media
		export REPL_MEDIA_GRANULARITY=page REPL_MEDIA_DOMAIN=dmp REPL_MEDIA_DDIO=on
		;;
	old-target)
		skew_setup
		REPLD_OF[0]=$OLD/repld
		;;
	old-initiator | upgrade-and-back)
		skew_setup
		export LD_LIBRARY_PATH=$OLD
		RECONNECT=()
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
	kill -STOP "$load" || fail "$WHAT: there is no load to stop"
	random 6000
	STOPPED_MS=$((1000 + RANDOM_VALUE))
	sleep $((STOPPED_MS / 1000))
	kill -CONT "$load"
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
		load_start 0
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
	load_start 1
	pause 100 1500
	kill -KILL "$load" || fail "$WHAT: there is no load to kill"
	"$1" 0
	"$1" 1
	exec 6>&-
	wait "$load_waiter" 2>/dev/null
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

# ---- kills, one after the other, of who resyncs ----

# A replica is behind by all that is written meanwhile, and comes back slowly, soon after each loss.
fall_behind() {
	LOAD_KEYS="resync-rate=$((16 << 20)) reconnect-min=50 reconnect-max=100"
	victim
	load_start 1
	pause 100 300
	target_kill "$VICTIM"
	pause 300 1000
	target_start "$VICTIM"
}

# How many sessions the victim has opened the pool for. What the one before has left is done with then.
lanes_opened() {
	grep -c "lanes open on" "$TMP/t$VICTIM.log.now"
}

# resyncs AFTER: the victim has a journal, of a session behind so many.
resyncs() {
	[ "$(lanes_opened)" -gt "$1" ] && [ "$(stat -c %s "$TMP/t$VICTIM/pools/$POOL.repl")" -gt 8192 ]
}

# resync_begins [AFTER]
resync_begins() {
	POLL_MS=10 wait_for 20 resyncs "${1:-0}" || fail "$WHAT: no resync begins"
}

fault_resync_target_killed() {
	local opened=0

	fall_behind
	for _ in 1 2 3 4 5 6; do
		resync_begins $opened
		pause 0 150
		opened=$(lanes_opened)
		session_signal KILL "$VICTIM"
	done
	check_well
	load_stop
	check_equal
}

# First while the keeper brings a replica back, then in openings, of which the first has that to bring.
fault_resync_initiator_killed() {
	fall_behind
	resync_begins
	pause 0 100
	load_kill
	check_left
	for _ in 1 2 3; do
		load_begin 0
		pause 50 350
		load_kill
		check_left
	done
	load_start 0
	check_well
	load_stop
	check_equal
}

# A restore that is killed again and again ends with the pool, and nothing before is called one.
fault_restore_killed() {
	local attempts=0 met=0

	load_start 1
	pause 300 600
	load_kill
	rm -f "$LOCAL".repl*
	while :; do
		"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" \
			restore "$(target_text 0)" "$TMP/restored" >"$TMP/restore.log" 2>&1 &
		restore=$!
		PIDS="$PIDS $restore"
		attempts=$((attempts + 1))
		[ $attempts -lt 10 ] || break
		# At any time, and while it writes, which it does for some milliseconds.
		if [ $((attempts % 2)) -eq 0 ]; then
			pause 0 100
		else
			random 300
			until [ -e "$TMP/restored.restoring" ] || ! kill -0 $restore 2>/dev/null; do :; done
			for ((i = 0; i < RANDOM_VALUE; i++)); do :; done
		fi
		kill -KILL $restore 2>/dev/null
		wait $restore 2>/dev/null
		[ ! -e "$TMP/restored" ] || break
		[ ! -e "$TMP/restored.restoring" ] || met=$((met + 1))
	done
	[ -e "$TMP/restored" ] || wait $restore || lost "$WHAT: restore: $(cat "$TMP/restore.log")"
	[ $met -gt 0 ] || fail "$WHAT: no restore was hit"
	check_image "$TMP/restored" acked
	cmp "$TMP/restored" "$TMP/t0/pools/$POOL" || lost "$WHAT: the restored file differs"
	rm -f "$TMP"/restored*
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

# flip FILE OFFSET
flip() {
	python3 - "$1" "$2" <<'END' || fail "$WHAT: flip $*"
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte[0] ^ 0x10]))
END
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
	timeout -k 1 60 "$LOAD" "$1" "$TMP/journal2" "$2" 300 "$(target_text 0)" "$(target_text 1)" \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" </dev/null >"$TMP/said2" \
		2>"$TMP/load2.log"
	grep -q ready "$TMP/said2" && lost "$WHAT: a second writer came in"
	return 0
}

# Two programs want the same new pool: one gets it, and the other changes nothing.
fault_two_initiators() {
	timeout -k 1 60 "$LOAD" "$TMP/other" "$TMP/journal2" 1 300 "$(target_text 0)" \
		"$(target_text 1)" identity="$TMP/key" known-hosts="$TMP/known_hosts" \
		</dev/null >"$TMP/said2" 2>"$TMP/load2.log" &
	other=$!
	rm -f "$TMP/say" "$TMP/said"
	pause 0 120
	mkfifo "$TMP/say"
	timeout -k 1 170 "$LOAD" "$LOCAL" "$TMP/journal" 1 300 "$(target_text 0)" \
		"$(target_text 1)" identity="$TMP/key" known-hosts="$TMP/known_hosts" \
		<"$TMP/say" >"$TMP/said" 2>"$TMP/load.log" &
	load_waiter=$!
	exec 6>"$TMP/say"
	wait $other
	wait_for 40 load_ready || fail "$WHAT: neither ready nor refused"
	if grep -q ready "$TMP/said"; then
		pause 50 300
		load_stop
		check_equal
		grep -q ready "$TMP/said2" && lost "$WHAT: both came in"
	else
		exec 6>&-
		grep -q ready "$TMP/said2" || fail "$WHAT: neither came in: $(cat "$TMP/load.log")"
		mv "$TMP/other" "$LOCAL"
		mv "$TMP/other.repl" "$LOCAL.repl"
		mv "$TMP/journal2" "$TMP/journal"
		check_left
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

# SPDX-License-Identifier: BSD-3-Clause
# faults_kills.sh - kills, one after the other, of who brings a copy up; sourced by lab.sh beside faults.sh.

# ---- of who resyncs ----

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
	for ((kills = 0; kills < 20; kills++)); do
		resync_begins $opened
		pause 0 100
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

# ---- of who restores ----

# A pool on the targets whose program has died.
left_behind() {
	load_start 1
	pause 300 600
	load_kill
	rm -f "$LOCAL".repl*
}

restore_begin() {
	: >"$TMP/restore.begun"
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json \
		restore "$(target_text 0)" "$TMP/restored" >"$TMP/restore.out" 2>"$TMP/restore.log" &
	restore=$!
	PIDS="$PIDS $restore"
}

# The last restore writes, or did.
restore_writes() {
	[ "$TMP/restored.restoring" -nt "$TMP/restore.begun" ]
}

# restore_meanwhile KILLS: at any time for every second kill, the other ones from its first write on.
restore_meanwhile() {
	if [ $(($1 % 2)) -eq 0 ]; then
		pause 0 100
	else
		random 20000
		until restore_writes || gone "$restore"; do :; done
		for ((i = 0; i < RANDOM_VALUE; i++)); do :; done
	fi
}

check_restored() {
	check_image "$TMP/restored" acked
	cmp "$TMP/restored" "$TMP/t0/pools/$POOL" || lost "$WHAT: the restored file differs"
	rm -f "$TMP"/restored*
}

# restore_lacks: in how many bytes, in blocks, what the last restore has left differs from the replica.
restore_lacks() {
	python3 - "$TMP/restored.restoring" "$TMP/t0/pools/$POOL" <<'END'
import os
import sys

BLOCK = 65536
left, due = sys.argv[1:]
old = open(left, "rb").read() if os.path.exists(left) else b""
new = open(due, "rb").read()
print(sum(BLOCK for i in range(0, len(new), BLOCK) if old[i : i + BLOCK] != new[i : i + BLOCK]))
END
}

# It ends with the pool, and moves nothing that is there already.
restore_ends() {
	local lacks

	lacks=$(restore_lacks)
	restore_begin
	wait $restore || lost "$WHAT: restore: $(cat "$TMP/restore.log")"
	[ "$(member moved <"$TMP/restore.out")" -le "$lacks" ] ||
		fail "$WHAT: restore lacked $lacks bytes: $(cat "$TMP/restore.out")"
	check_restored
}

# A restore that is killed again and again ends with the pool, and nothing before is called one.
fault_restore_killed() {
	local met=0

	left_behind
	for ((kills = 0; kills < 20; kills++)); do
		restore_begin
		restore_meanwhile $kills
		kill -KILL $restore 2>/dev/null
		wait $restore 2>/dev/null
		if [ -e "$TMP/restored" ]; then
			check_restored
		elif restore_writes; then
			met=$((met + 1))
		fi
	done
	[ $met -gt 0 ] || fail "$WHAT: no restore was hit"
	restore_ends
}

# One whose target is killed again and again says so, and goes on when it is begun again.
fault_restore_target_killed() {
	local met=0 status

	left_behind
	for ((kills = 0; kills < 10; kills++)); do
		restore_begin
		restore_meanwhile $kills
		target_kill 0
		target_start 0
		wait_for 40 gone "$restore" || fail "$WHAT: restore hangs without its target"
		wait $restore
		status=$?
		[ $status -lt 126 ] || fail "$WHAT: restore ended with $status: $(cat "$TMP/restore.log")"
		if [ $status -eq 0 ]; then
			check_restored
			continue
		fi
		[ ! -e "$TMP/restored" ] || lost "$WHAT: a restore that has failed has left a file"
		! restore_writes || met=$((met + 1))
	done
	[ $met -gt 0 ] || fail "$WHAT: no restore was hit"
	restore_ends
}

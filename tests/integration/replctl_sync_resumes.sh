# SPDX-License-Identifier: BSD-3-Clause
# A sync by the journal that is cut off, by the death of either side or by an interrupt, leaves the replica as it was,
# and the next one moves only what is left; also where the file has changed in between.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
pools=$TMP/serve/pools
size=$((40 * 1024 * 1024))
enough=$((4 * 1024 * 1024))

nobody_writes() {
	! ctl list --json "$T" | grep -q '"writer_open": true'
}

taken() {
	echo $(($(stat -c %b "$pools/p.repl") * 512))
}

# What has space need not have been written: of random bytes few are zero.
was_staged() {
	[ "$(tr -d '\0' <"$pools/p.repl" | wc -c)" -ge "$enough" ]
}

# The daemon's child has the connection, the child of that one the session.
session_pid() {
	connection=$(ps -o pid= --ppid "$SERVE_PID" | tail -n 1 | tr -d ' ')
	[ -z "$connection" ] || ps -o pid= --ppid "$connection" | tail -n 1 | tr -d ' '
}

has_lanes() {
	[ "$(lanes_opened)" -gt "$1" ]
}

# Goes on by a little at a time until so much is staged, and stands then; false: it has come to its end before.
stage_some() {
	for _ in $(seq 3000); do
		kill -STOP "$CTL_PID" 2>/dev/null
		gone "$CTL_PID" && return 1
		was_staged && return
		kill -CONT "$CTL_PID"
		sleep 0.005
	done
	fail "nothing is staged: $(cat bg.err)"
}

# cut_off WHAT: a sync of a file that differs everywhere has staged some and is cut off; old is what the pool is then.
cut_off() {
	for _ in $(seq 15); do
		cp "$pools/p" old || fail "copy"
		head -c "$size" /dev/urandom >pool
		lanes=$(lanes_opened)
		ctl_start sync pool "$T/p"
		POLL_MS=5 wait_for 60 has_lanes "$lanes" || fail "$1: no lanes: $(cat bg.err)"
		session=$(session_pid)
		if stage_some; then
			case $1 in
			replctl) kill -KILL "$CTL_PID" ;;
			session) kill -KILL "$session" ;;
			interrupt) kill -TERM "$CTL_PID" ;;
			esac
			kill -CONT "$CTL_PID"
			wait "$CTL_PID" 2>/dev/null
			wait_for 20 nobody_writes || fail "$1: the session stays"
			# Killed behind the commit: whoever opens the pool next brings it in.
			if ctl info --json "$T/p" | grep -q '"journal": *"committed"'; then
				ctl verify pool "$T/p" >/dev/null || lost "$1: a sync that was committed is not there"
			fi
			cmp -s old "$pools/p" && return
			cmp -s pool "$pools/p" || lost "$1: a part of a sync is in the replica"
		fi
		# What is left of one is of another file than the next one's.
		wait "$CTL_PID" 2>/dev/null
		ctl sync pool "$T/p" >/dev/null || fail "$1: the sync after one that was not cut off"
	done
	fail "$1: each sync was faster than its end"
}

# resumed WHAT AT-LEAST: the next sync is of the rest.
resumed() {
	ctl sync --json pool "$T/p" >out 2>err || fail "$1: the sync behind it: $(cat err)"
	cmp -s pool "$pools/p" || lost "$1: not equal"
	moved=$(member moved <out)
	before=$(member moved_before <out)
	[ "$before" -ge "$2" ] || fail "$1: only $before bytes of $2 were gone on with"
	[ $((moved + before)) -ge "$size" ] || lost "$1: $moved and $before bytes moved of $size that differ"
	[ "$moved" -le $((size - $2)) ] || fail "$1: $moved bytes were moved again"
	[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "$1: the replica's state"
	ctl verify pool "$T/p" >/dev/null || lost "$1: verify"
	[ "$(taken)" -lt $((1024 * 1024)) ] || fail "$1: $(taken) bytes are left of the journal"
}

head -c "$size" /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "the first sync"

cut_off replctl
# Who looks is no writer.
ctl info "$T/p" >/dev/null || fail "info"
ctl verify pool "$T/p" >/dev/null && lost "equal before it is committed"
resumed replctl $((enough / 2))

# What is lost with the session's process is what it had not yet taken.
cut_off session
resumed session $((enough / 2))

cut_off interrupt
grep -q "goes on where this ended" bg.err || fail "$(cat bg.err)"
# The file goes on, too: all of it that was staged first, and one page of the rest.
head -c 1000000 /dev/urandom | dd of=pool bs=4096 conv=notrunc status=none
change pool $((size - 8192))
resumed interrupt $((enough / 4))

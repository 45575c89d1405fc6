# SPDX-License-Identifier: BSD-3-Clause
# A sync killed at any moment leaves no false "up-to-date", and the next one goes on.
# A replica that had been whole stays so: it has the old data or the new.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c $((96 * 1024 * 1024)) /dev/urandom >pool
nobody_writes() {
	! ctl list --json "$T" | grep -q '"writer_open": true'
}

caught=0
for delay in 0 0.05 0.15 0.3; do
	ctl_kill "$delay" sync pool "$T/p"
	# Its session may still be closing.
	wait_for 10 nobody_writes || fail "the session stays"
	ctl info --json "$T/p" >info 2>/dev/null || continue
	if [ "$(member state <info)" = inconsistent ]; then
		caught=1
		ctl_fails 4 "inconsistent.*begun" restore "$T/p" broken
	elif [ "$(member generation <info)" != 00000000-0000-0000-0000-000000000000 ]; then
		cmp -s pool serve/pools/p || lost "not equal, and $(member state <info)"
	fi
done
[ "$caught" = 1 ] || fail "no kill came while data moved"
ctl sync pool "$T/p" >/dev/null || fail "the sync after the kills"
cmp -s pool serve/pools/p || lost "not equal after all"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "state"

cp pool old
head -c $((96 * 1024 * 1024)) /dev/urandom >pool
both=
for delay in 0.02 0.1 0.2 0.4 0.6; do
	ctl_kill "$delay" sync pool "$T/p"
	wait_for 10 nobody_writes || fail "the session stays"
	[ "$(ctl info --json "$T/p" | member state)" != inconsistent ] || lost "torn by a kill"
	if cmp -s old serve/pools/p; then
		both="$both old"
	else
		cmp -s pool serve/pools/p || lost "a replica of which a part is new"
		both="$both new"
		cp pool old
		head -c $((96 * 1024 * 1024)) /dev/urandom >pool
	fi
done
case $both in
*old*) ;;
*) fail "no kill came before the commit" ;;
esac
ctl sync pool "$T/p" >/dev/null || fail "the sync after the kills of a whole replica"

# An interrupt is told, with the way on. How long a sync takes is the machine's affair.
status=0
for delay in 0.1 0.05 0.02 0.01 0; do
	head -c $((96 * 1024 * 1024)) /dev/urandom >pool
	lanes=$(lanes_opened)
	ctl_start sync pool "$T/p"
	wait_for 20 more_lanes "$lanes" || fail "no lanes are opened: $(cat bg.err)"
	sleep "$delay"
	kill -TERM "$CTL_PID" 2>/dev/null
	wait "$CTL_PID"
	status=$?
	[ "$status" -eq 0 ] || break
done
[ "$status" -eq 1 ] || fail "an interrupted sync exits with $status: $(cat bg.err)"
grep -q "next: replctl sync pool $T/p" bg.err || fail "$(cat bg.err)"
for delay in 0 0.02 0.04; do
	lanes=$(lanes_opened)
	ctl_start sync pool "$T/p"
	wait_for 20 more_lanes "$lanes" || fail "no lanes are opened: $(cat bg.err)"
	sleep "$delay"
	kill -TERM "$CTL_PID" 2>/dev/null
	wait_for 20 gone "$CTL_PID" || fail "an interrupt while lanes are opened hangs"
done
ctl sync pool "$T/p" >/dev/null || fail "the sync after an interrupt"
cmp -s pool serve/pools/p || lost "not equal after an interrupt"

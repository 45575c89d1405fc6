# SPDX-License-Identifier: BSD-3-Clause
# A promoted pool that a program of PMDK's has open where it lies, and has locked as these do, is not taken from under it: a
# restore would be a mixture, a replica again it would be overwritten.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools

head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl promote "$T/p" >/dev/null || fail "promote"
(exec 5<"$P/p" && flock -x 5 && exec sleep 600) &
holder=$!
PIDS="$PIDS $holder"
locked() {
	! flock -n -s "$P/p" true
}
wait_for 20 locked || fail "no lock"

ctl_fails 4 "'p'.*a program .*has it open" restore "$T/p" copy
[ ! -e copy ] && [ ! -e copy.restoring ] || fail "restored what is being written"
ctl_fails 4 "'p'.*a program .*has it open" demote "$T/p"
[ "$(ctl info --json "$T/p" | member primary)" = True ] || fail "demoted"
ctl_fails 4 "'p'.*a program .*has it open" remove --force "$T/p"
[ -e "$P/p" ] && [ -e "$P/p.repl" ] || fail "removed"
grep -q "^next: " err || fail "no next step: $(cat err)"

# Looking is not taking.
ctl verify pool "$T/p" >/dev/null || lost "verify"
ctl info "$T/p" >/dev/null || fail "info"

# Nor are its files that stand beside it pools, as damaged as they would be. Beside no pool they are told.
beside=".running .restoring .repl-missed .repl-taken .repl-missed-taken"
for suffix in $beside; do
	: >"$P/p$suffix"
done
[ "$(ctl list --json "$T" | python3 -c 'import json, sys
print([p["name"] for p in json.load(sys.stdin)["pools"]])')" = "['p']" ] || fail "list: $(ctl list "$T")"
for suffix in $beside; do
	ctl_fails 3 "'p$suffix': not found: .* belongs to pool 'p'" remove --force "$T/p$suffix"
	[ -e "$P/p$suffix" ] || lost "p$suffix is gone"
	mv "$P/p$suffix" "$P/other$suffix"
done
ctl_fails 1 "sidecar 'other.running.repl' is missing" info "$T/other.running"
rm "$P"/other.*

kill "$holder"
wait "$holder" 2>/dev/null
ctl restore "$T/p" copy >/dev/null || fail "restore when it has ended"
ctl demote "$T/p" >/dev/null || fail "demote when it has ended"
ctl remove --force "$T/p" >/dev/null || fail "remove when it has ended"

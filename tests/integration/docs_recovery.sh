# SPDX-License-Identifier: BSD-3-Clause
# The commands of docs/RECOVERY.md: fail over to a replica, work there, come back with nothing lost; what a unit of
# systemd(1) has around the program tells of a power cut, and of no start that failed, be it before there is a pool.
. "$(dirname "$0")/lib.sh"
page=$(readlink -f "$(dirname "$0")/../../docs/RECOVERY.md")
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl promote --force "$T/p" >/dev/null || fail "promote"
ctl_fails 4 "was promoted .*primary now" sync pool "$T/p"
# Its program goes on in place, with a replica of its own.
head -c 64 /dev/urandom | dd of=serve/pools/p bs=1 seek=4096 conv=notrunc status=none
ctl sync serve/pools/p "$T/second" >/dev/null || fail "the primary replicates on"
[ "$(ctl info --json "$T/p" | member primary)" = True ] || fail "no primary any more"
ctl resolve --dry-run --discard local pool "$T/p" >out || fail "look"
# Taken too early it is found out: what the program there wrote since would be undone.
cp pool early && cp pool.repl early.repl
ctl resolve --force --discard local early "$T/p" >/dev/null || fail "a copy of the primary"
head -c 64 /dev/urandom | dd of=serve/pools/p bs=1 seek=4096 conv=notrunc status=none
ctl demote "$T/p" >/dev/null || fail "demote"
cp serve/pools/p before
ctl_fails 4 "newer" sync early "$T/p"
cmp -s before serve/pools/p || lost "what the primary's program wrote is undone"
ctl resolve --force --discard local pool "$T/p" >/dev/null || fail "the old primary takes it"
cmp -s pool serve/pools/p || lost "not what the primary has"
head -c 64 /dev/urandom | dd of=pool bs=1 seek=8192 conv=notrunc status=none
ctl sync pool "$T/p" >/dev/null || fail "back at the old primary"
cmp -s pool serve/pools/p || lost "they differ"
# The other choice: what the old primary has is kept.
ctl promote --force "$T/p" >/dev/null || fail "promote again"
head -c 64 /dev/urandom | dd of=serve/pools/p bs=1 seek=4096 conv=notrunc status=none
cp pool kept
ctl_fails 4 "demote" resolve --force --discard replica pool "$T/p"
ctl demote "$T/p" >/dev/null || fail "demote again"
ctl resolve --force --discard replica pool "$T/p" >/dev/null || fail "the old primary's is kept"
cmp -s pool kept || lost "the old primary has changed"
cmp -s pool serve/pools/p || lost "the replica is not equal"
ctl sync pool "$T/p" >/dev/null || fail "it is a replica again"

# unit KEY: what the unit has there is done with files of ours.
unit() {
	sed -n "s|^    $1=||p" "$page" | sed "s|/srv|$TMP/srv|g" >command
	[ "$(grep -c "$TMP/srv/orders.pool.running" command)" -eq 1 ] || fail "the page has changed: $(cat command)"
	sh command 2>out
}

mkdir srv
for file in none pool; do
	[ $file = none ] || cp pool srv/orders.pool
	unit ExecStartPre || fail "it does not start: $(cat out)"
	[ -e srv/orders.pool.running ] || fail "nothing would tell of a power cut"
	unit ExecStopPost || fail "its end, with $file: $(cat out)"
	[ ! -e srv/orders.pool.running ] || fail "the next start is refused, with $file"
done
# While its data can't be brought to the disk it stays.
unit ExecStartPre || fail "it does not start: $(cat out)"
ln -sf "$TMP/away/pool" srv/orders.pool
! unit ExecStopPost || fail "its end is one in order"
[ -e srv/orders.pool.running ] || lost "nothing tells of a power cut"

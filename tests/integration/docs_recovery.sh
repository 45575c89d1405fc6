# SPDX-License-Identifier: BSD-3-Clause
# The commands of docs/RECOVERY.md: fail over to a replica, work there, come back with nothing lost.
. "$(dirname "$0")/lib.sh"
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

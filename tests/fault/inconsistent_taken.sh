# SPDX-License-Identifier: BSD-3-Clause
# What was promoted in the middle of a copy, for want of another, can be taken back by force when it is demoted, and the
# look at it before says so.
. "$(dirname "$0")/fault.sh"
start_target
T=$target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >file
ctl sync file "$T/p" >/dev/null || fail "sync"
{
	hello
	request pool.open '{"name":"p","mode":"write"}'
	request pool.mark '{"state":"inconsistent"}'
	request pool.close
	request bye
} | raw_session >out || fail "the session failed"
ctl promote --force "$T/p" >out 2>err || fail "promote: $(cat err)"
printf '\001' | dd of=serve/pools/p bs=1 seek=9000 conv=notrunc status=none

ctl resolve --dry-run --discard local file "$T/p" >out 2>err || fail "look: $(cat err)"
grep -q "is inconsistent: when it is demoted --force" out || fail "it does not say how: $(cat out)"
ctl demote "$T/p" >out 2>err || fail "demote: $(cat err)"
[ "$(ctl info --json "$T/p" | member state)" = inconsistent ] || fail "it is $(ctl info "$T/p")"
cp file before
ctl_fails 4 "is inconsistent" resolve --discard local file "$T/p"
cmp -s file before || lost "the file is not as it was"
next=$(sed -n 's/^next: .*; replctl \(resolve --force .*\) (take it as it is)$/\1/p' err)
[ -n "$next" ] || fail "no next step: $(cat err)"
cp -a file other
cp -a file.repl other.repl
# shellcheck disable=SC2086
ctl $next >out 2>err || fail "$next: $(cat err)"
grep -q "^file has no record: what is synced from it is compared first" out || fail "it does not say so: $(cat out)"
ctl resolve --json --force --discard local other "$T/p" >out 2>err || fail "resolve --json: $(cat err)"
grep -q "^other has no record" err || fail "it does not say so: $(cat err)"
[ "$(member discard <out)" = local ] || fail "no answer: $(cat out)"
! grep -q '"generation"' out || fail "a generation of what has none: $(cat out)"
cmp -s file serve/pools/p || lost "the file has not what was gone on with"

# It is the primary's again, and its replica follows.
ctl sync file "$T/p" >out 2>err || fail "sync: $(cat err)"
printf '\002' | dd of=file bs=1 seek=9001 conv=notrunc status=none
ctl sync file "$T/p" >out 2>err || fail "the replica does not follow: $(cat err)"
cmp -s file serve/pools/p || lost "they differ"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "it is $(ctl info "$T/p")"

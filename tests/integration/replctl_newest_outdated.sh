# SPDX-License-Identifier: BSD-3-Clause
# Of replicas of which an outdated one has the most, as newest says, the commands that it advises take that one; who
# begins with another command is sent to newest, and not to a replica that has less.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/q" >/dev/null || fail "sync to q"
head -c 4096 /dev/urandom | dd of=pool bs=4096 seek=3 conv=notrunc status=none
ctl sync pool "$T/p" >/dev/null || fail "sync to p"
# As a copy that was cut off between two of its journals leaves it.
{
	echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
	echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"p","mode":"write"}}'
	echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"outdated"}}'
	sleep 0.5
} | client cat "$T" >out || fail "no session: $(cat out)"

for command in "restore $T/p file" "promote $T/p"; do
	# shellcheck disable=SC2086
	ctl_fails 4 "outdated" $command
	grep -q "^next: replctl newest $T/p, .* has more; replctl ${command%% *} --force $T/p" err || fail "$(cat err)"
done
ctl newest "$T/q" "$T/p" >out || fail "newest: $(cat out)"
grep -q "^newest  *$T/p$" out || fail "$(cat out)"
grep -A 1 "^$T/p  *outdated .* ? " out | grep -q "it misses updates" || fail "nothing says what it is: $(cat out)"
restore=$(sed -n 's/^next  *replctl //p' out)
promote=$(sed -n 's/.*or, to go on at its target: replctl //p' out)
# shellcheck disable=SC2086
ctl ${restore%FILE} file >out 2>err || fail "$restore: $(cat err)"
cmp -s file $P/p || fail "it is not what p has"
ctl sync file "$T/q" >/dev/null 2>err || fail "the other one does not follow: $(cat err)"
# shellcheck disable=SC2086
ctl $promote >out 2>err || fail "$promote: $(cat err)"

# SPDX-License-Identifier: BSD-3-Clause
# No older replica takes the place of a file that had more by the record or the mark beside it, also where that was cut or
# is gone.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
head -c 1048576 /dev/urandom >own
ctl sync own "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
change own 500000
ctl sync own "$T/q" >/dev/null 2>err || fail "sync: $(cat err)"
cp own whole
cp own.repl record

# What is left of one that was cut may be all that there is of it.
truncate -s 64K own
cp own cut
for dry in "" --dry-run; do
	# shellcheck disable=SC2086
	ctl restore $dry --force "$T/p" own >out 2>err
	status=$?
	cmp -s own cut || lost "what was left is replaced"
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	grep -q "own is not replaced by .*it lacks what the file" err || fail "$(cat err)"
	grep -q "^next: replctl newest $T/p.* mv own.repl own.old.repl" err || fail "$(cat err)"
	! grep -q "replctl sync" err || fail "what was cut is to be copied: $(cat err)"
done

rm own
for dry in "" --dry-run; do
	# shellcheck disable=SC2086
	ctl restore $dry "$T/p" own >out 2>err
	status=$?
	[ ! -e own ] || lost "the older one is taken"
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	grep -q "own is gone, and own.repl tells of a later generation" err || fail "$(cat err)"
	grep -q "^next: replctl newest $T/p.*replctl restore --force $T/p own" err || fail "$(cat err)"
done
cmp -s own.repl record || lost "its record has changed"
ctl restore "$T/q" own >/dev/null 2>err || fail "the one that has all: $(cat err)"
cmp -s own whole || lost "it is not what the file was"
rm own
cp record own.repl
ctl restore --force "$T/p" own >/dev/null 2>err || fail "by force: $(cat err)"
cmp -s own serve/pools/p || lost "it is not restored by force"

# A program has made bytes of it durable that no replica has got; the mark goes with the file.
for mark in own.repl-missed own.repl-missed-taken; do
	: >$mark
	change own 700000
	cp own whole
	ctl restore --force "$T/p" own >out 2>err
	status=$?
	cmp -s own whole || lost "what no replica has is replaced"
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	next=$(sed -n 's/^next: .*to keep it: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' err)
	eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
	[ ! -s err ] || fail "$next: $(cat err)"
	cmp -s own.old whole || lost "the file is not kept"
	[ -e "own.old${mark#own}" ] && [ ! -e $mark ] || fail "the mark is not moved"
	cmp -s own serve/pools/p || lost "it is not restored"
done

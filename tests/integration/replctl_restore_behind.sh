# SPDX-License-Identifier: BSD-3-Clause
# No replica takes the place of a file that had more, or other data, by the record or the mark beside it, also where that was
# cut or is gone. Nor is one made of what a file has behind its pool, which its program could not open again.
. "$(dirname "$0")/api_lib.sh"
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
	grep -q "^next: replctl newest $T/p.* mv -n own.repl own.old.repl" err || fail "$(cat err)"
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

# A program has made bytes of it durable that no replica has got; the mark goes with the file, and nothing that was kept
# before is replaced.
old=own.old n=1
for mark in own.repl-missed own.repl-taken own.repl-missed-taken; do
	: >$mark
	change own 700000
	cp own whole
	cp own.repl record
	ctl restore --force "$T/p" own >out 2>err
	status=$?
	cmp -s own whole || lost "what no replica has is replaced"
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	next=$(sed -n 's/^next: .*to keep it: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' err)
	eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
	[ ! -s err ] || fail "$next: $(cat err)"
	# Once more, as a shell's history has it.
	eval "$next" >/dev/null 2>&1
	cmp -s $old whole && cmp -s $old.repl record || lost "the file is not kept"
	[ -e "$old${mark#own}" ] && [ ! -e $mark ] || fail "the mark is not moved"
	[ $old = own.old ] || cmp -s own.old first || lost "what was kept first is gone"
	[ $old != own.old ] || cp whole first
	n=$((n + 1))
	old=own.old$n
	cmp -s own serve/pools/p || lost "it is not restored"
done

# Both have gone on since they were the same: which data go is decided by a look at them.
head -c 1048576 /dev/urandom >both
ctl sync both "$T/b" >/dev/null 2>err || fail "sync: $(cat err)"
ctl restore "$T/b" other >/dev/null 2>err || fail "restore: $(cat err)"
change other 5000
ctl sync other "$T/b" >/dev/null 2>err || fail "sync: $(cat err)"
change both 9000
ctl sync both "$T/c" >/dev/null 2>err || fail "sync: $(cat err)"
# Nor is a pool that was named by mistake.
head -c 1048576 /dev/urandom >stranger
ctl sync stranger "$T/s" >/dev/null 2>err || fail "sync: $(cat err)"
cp both whole
cp both.repl record

# stays POOL WHY NEXT: both, and when it is gone its record, is refused.
stays() {
	local dry

	for dry in "" --dry-run; do
		# shellcheck disable=SC2086
		ctl_fails 4 "both is not replaced by .*not by force either: $2" restore $dry --force "$T/$1" both
		cmp -s both whole && cmp -s both.repl record || lost "$1: the file is replaced"
		grep -q "^next: $3" err || fail "$(cat err)"
	done
	mv both away
	for dry in "" --dry-run; do
		# shellcheck disable=SC2086
		ctl_fails 4 "both is gone, and both.repl tells of a generation that $4" restore $dry "$T/$1" both
		[ ! -e both ] && cmp -s both.repl record || lost "$1: it takes the file's place"
		grep -q "^next: $5" err || fail "$(cat err)"
	done
	mv away both
}

# Nor does what was kept before get a record that is not its own.
: >both.old
stays s "no generation is in common" "if .*: mv -n both both.old2; mv -n both.repl both.old2.repl; replctl restore $T/s both$" \
	"has nothing in common" "if .*: mv -n both.repl both.old2.repl; replctl restore $T/s both$"
rm both.old
stays b "it lacks what the file has been given since they were the same" "replctl resolve --discard local both $T/b " \
	"went another way" "replctl newest $T/b.*replctl restore --force $T/b both"
stays s "no generation is in common" "if .*: mv -n both both.old; mv -n both.repl both.old.repl; replctl restore $T/s both$" \
	"has nothing in common" "if .*: mv -n both.repl both.old.repl; replctl restore $T/s both$"
ctl resolve --force --discard local both "$T/b" >/dev/null 2>err || fail "as it says: $(cat err)"
cmp -s both other || lost "not the replica's data"
cp whole both
cp record both.repl
ctl_fails 4 "not replaced" restore --force "$T/s" both
next=$(sed -n 's/^next: if .*: \(mv .*\); replctl \(restore .*\)/\1; ctl \2/p' err)
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s both stranger || lost "it is not restored"
cmp -s both.old whole && cmp -s both.old.repl record || lost "file and record are not kept"

# A record of what was never written speaks against nothing.
ctl create "$T/never" --size 1M >/dev/null || fail "create"
ctl restore --force "$T/never" zeros >/dev/null 2>err || fail "$(cat err)"
ctl restore --force "$T/s" zeros >/dev/null 2>err || fail "$(cat err)"
cmp -s zeros stranger || lost "it is not restored"

# Nor has a replica what a file has behind its pool, be that another pool, or what it has grown by.
head -c 65536 /dev/urandom >two
ctl sync two "$T/two" >/dev/null 2>err || fail "sync: $(cat err)"
head -c 65536 /dev/urandom >>two
cp two whole
for dry in "" --dry-run; do
	# shellcheck disable=SC2086
	ctl restore $dry --force "$T/two" two >out 2>err
	status=$?
	cmp -s two whole || lost "what it has behind the pool is cut off"
	[ "$status" -eq 4 ] || fail "exit $status: $(cat out err)"
	grep -q "two is not replaced by .*it has fewer bytes than the file" err || fail "$(cat err)"
done
next=$(sed -n 's/^next: to keep it: \(mv .*\); replctl \(restore [^(]*\) (.*/\1; ctl \2/p' err)
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s two serve/pools/two && cmp -s two.old whole || lost "not restored, or not kept"
cp whole two
ctl_fails 4 "^next: .*; where the pool is but the first 65536 bytes of the file: start its program" sync two "$T/two"

# What stands behind the pool by the record is made no part of it unless somebody says so: its program opens it again.
cp two.repl record
ctl restore "$T/two" gone-on >/dev/null 2>err && change gone-on 100 &&
	ctl sync gone-on "$T/two" >/dev/null 2>err || fail "a replica that has gone on: $(cat err)"
for command in "sync two $T/new" "sync --dry-run two $T/new" "create $T/new --from two" \
	"resolve --discard replica two $T/two" "resolve --dry-run --discard replica two $T/two"; do
	# shellcheck disable=SC2086
	ctl_fails 4 "^next: .*the first 65536 bytes of the file: .*start its program, which makes and fills it" $command
	cmp -s two.repl record || lost "$command: the record is changed"
done
ctl_fails 3 "not found" info "$T/new"
ctl_fails 4 "^next: .*remove $T/two, then start its program" resolve --discard replica two "$T/two"
ctl remove --force "$T/two" >/dev/null || fail "remove"
start_api
configure "$(pool two)" "$(pool new)"
ok map two 65536
cp whole two
ok open 1
ok compare 0
same
ok compare 1
same
ok close
stop_api
ctl sync --force two "$T/all" >/dev/null 2>err || fail "by force: $(cat err)"
cmp -s two serve/pools/all || lost "not all of the file"

# What has more may be a primary: with its record it would no longer be one, and its old program be let in beside that which
# uses it where it lies.
F=serve/pools/w
ctl sync stranger "$T/w" >/dev/null 2>err && ctl promote "$T/w" >/dev/null 2>err || fail "promote: $(cat err)"
ctl sync $F "$T/x" >/dev/null 2>err || fail "sync: $(cat err)"
change $F 5000
ctl sync $F "$T/y" >/dev/null 2>err || fail "sync: $(cat err)"
cp $F whole
cp $F.repl record
promote='; then replctl promote TARGET/POOL (by its own target: it was a primary)$'
# keeps NEXT COMMAND ARG...: refused, with that next step and the promotion behind it.
keeps() {
	local next=$1

	shift
	ctl_fails 4 "" "$@"
	cmp -s $F.repl record || lost "$*: the record is changed"
	sed "s,$TMP/,,g" err | grep -q "^next: $next$promote" || fail "$*: $(cat err)"
}
keeps "replctl sync $F $T/x .*: mv -n $F $F.old; .*; replctl restore --force $T/x $F" restore --force "$T/x" $F
keeps "replctl verify .*; mv -n $F $F.old; .*; replctl restore $T/x $F (.*)" resolve --force --discard local $F "$T/x"
keeps "if it is .*: mv -n $F $F.old; .*; replctl restore $T/b $F" restore --force "$T/b" $F
truncate -s 64K $F
keeps "replctl newest .*: mv -n $F $F.old; .*; replctl restore --force $T/x $F" restore --force "$T/x" $F
rm $F
keeps "if it is .*: mv -n $F.repl $F.old.repl; replctl restore $T/b $F" restore "$T/b" $F
cp whole $F
ctl_fails 4 "" restore --force "$T/x" $F
next=$(sed -n 's/^next: .*to keep it: \(mv .*\); replctl \(restore .*\); then replctl \(promote\) TARGET.*/\1; ctl \2; chown "$SERVE_USER" $F*; ctl \3 "$T\/w"/p' err)
eval "$next" >/dev/null 2>err || fail "$next: $(cat err)"
cmp -s $F stranger && cmp -s $F.old whole || lost "not restored, or not kept"
[ "$(ctl info --json "$T/w" | member primary)" = True ] || lost "it is a replica, into which others may write"

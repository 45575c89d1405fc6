# SPDX-License-Identifier: BSD-3-Clause
# What diverged is never merged by itself: resolve says what goes, gives up one side, and a third replica is judged rightly.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools

gen() {
	ctl info --json "$T/$1" | member generation
}

# settled: no session of the target is left, and what it had to write is written.
settled() {
	for pid in $(children "$SERVE_PID"); do
		[ -z "$(children "$pid")" ] || return 1
	done
}

# diverge: pool and replica p went on from the same generation; q has the file's history, r the replica's.
# Made once by commands, later put back as it was.
diverge() {
	wait_for 10 settled || fail "a session stays"
	rm -f pool pool.repl other other.repl
	if [ -d begin ]; then
		rm -f $P/*
		cp -a begin/. $P && cp -a files/. . || fail "cannot put back"
		return
	fi
	head -c 1048576 /dev/urandom >pool
	chmod 640 pool
	ctl sync pool "$T/p" >/dev/null || fail "sync"
	ctl restore "$T/p" other >/dev/null || fail "restore"
	change other 5000
	change other 700000
	ctl sync other "$T/p" >/dev/null || fail "the other one goes on"
	ctl sync other "$T/r" >/dev/null || fail "a third one of the same history"
	change pool 9000
	ctl sync pool "$T/q" >/dev/null || fail "the file goes on"
	cp $P/p saved
	cp pool saved.pool
	wait_for 10 settled || fail "a session stays"
	cp -a $P begin
	mkdir files
	cp -a pool pool.repl other other.repl files
}

# Neither before it is decided, nor by looking, does a byte change.
diverge
ctl_fails 6 "diverged" sync pool "$T/p"
ctl resolve --dry-run --discard replica pool "$T/p" >out 2>err || fail "dry run: $(cat err)"
grep -q "both went on" out && grep -q "in 3 ranges" out && grep -q "offset 4992, 64 bytes" out ||
	fail "told: $(cat out)"
[ "$(ctl resolve --json --dry-run --discard local pool "$T/p" 2>err | member range_count)" = 3 ] ||
	fail "JSON: $(cat err)"
ctl_fails 4 "no terminal to confirm" resolve --discard replica pool "$T/p"
grep -q "next: replctl resolve --dry-run" err || fail "$(cat err)"
cmp -s saved $P/p && cmp -s saved.pool pool || lost "looking has changed something"

# The replica's part goes.
lost=$(gen p)
ctl resolve --json --force --discard replica pool "$T/p" >out 2>err || fail "$(cat err)"
cmp -s saved.pool pool && cmp -s pool $P/p || lost "not the file's data"
[ "$(gen p)" = "$(member generation <out)" ] || fail "generations differ: $(cat out)"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "state"
ctl info --json "$T/p" | member history | grep -q "$lost" && lost "what was discarded is an ancestor"
ctl sync pool "$T/q" >/dev/null || fail "the third one of the file's history follows"
ctl_fails 6 "diverged" sync pool "$T/r"
ctl_fails 4 "nothing to resolve.*same generation" resolve --force --discard local pool "$T/p"

# The next step takes the side that was asked for: a file that has lost something is of the same generation.
cp $P/p whole
change pool 40000
ctl_fails 4 "nothing to resolve.*same generation" resolve --force --discard replica pool "$T/p"
grep -q "^next: replctl sync pool" err || fail "$(cat err)"
ctl_fails 4 "nothing to resolve.*same generation" resolve --force --discard local pool "$T/p"
next=$(sed -n 's/^next: //; s/ ([^)]*)//g; p' err | tail -n 1)
(eval "$(echo "$next" | sed 's/replctl /ctl /g')") >out 2>&1 || fail "$next: $(cat out)"
cmp -s whole $P/p || lost "the next step has overwritten the replica"
cmp -s whole pool || lost "not the replica's data"
[ -e pool.old ] || lost "the file is not kept"
rm pool.old pool.old.repl

# The file's part goes; mode and history are as they should be.
diverge
ctl resolve --force --discard local pool "$T/p" >out 2>err || fail "$(cat err)"
cmp -s saved pool && cmp -s saved $P/p || lost "not the replica's data"
[ "$(stat -c %a pool)" = 640 ] || fail "mode"
ctl sync --json pool "$T/p" >out || fail "sync after it"
[ "$(member moved <out)" = 0 ] || fail "they differ: $(cat out)"
ctl sync pool "$T/r" >/dev/null || fail "the third one of the replica's history"
ctl_fails 6 "diverged" sync pool "$T/q"

# By a link it is the file that goes, and the link stays.
mkdir links
ln -s ../pool links/link
for loser in local replica; do
	diverge
	ctl resolve --force --discard $loser links/link "$T/p" >out 2>err || fail "by a link: $(cat err)"
	[ "$(readlink links/link)" = ../pool ] && [ ! -L pool ] || fail "$loser: the link is replaced"
	cmp -s pool $P/p || lost "$loser: not resolved"
	[ $loser = replica ] || cmp -s saved pool || lost "not the replica's data"
	ctl sync --json pool "$T/p" >out || fail "$loser: sync after it"
	[ "$(member moved <out)" = 0 ] || fail "$loser: they differ: $(cat out)"
	[ ! -e links/link.repl ] || fail "$loser: a record beside the link"
done

# Killed between the removal of the old record and the new one: what is said next takes the side that was asked for, too.
for loser in local replica; do
	diverge
	rm pool.repl
	ctl_fails 4 "nothing is known" resolve --force --discard $loser pool "$T/p"
	next=$(sed -n 's/^next: .*; replctl \([^(]*\) (.*/\1/p' err)
	[ -n "$next" ] || fail "$loser: $(cat err)"
	# shellcheck disable=SC2086 # the words of a command line
	ctl $next >out 2>err || fail "$next: $(cat err)"
	cmp -s pool $P/p || lost "$loser: not resolved"
	[ $loser = replica ] || cmp -s saved pool || lost "not the replica's data"
	[ $loser = local ] || cmp -s saved.pool pool || lost "not the file's data"
done

# Only behind: the replica was written through another file.
diverge
rm pool pool.repl
ctl restore "$T/p" pool >/dev/null || fail "restore"
change other 30000
ctl sync other "$T/p" >/dev/null || fail "sync of the newer"
newer=$(gen p)
change pool 12345
ctl_fails 4 "newer" sync pool "$T/p"
ctl resolve --force --discard replica pool "$T/p" >/dev/null 2>err || fail "$(cat err)"
cmp -s pool $P/p || lost "not the file's data"
ctl info --json "$T/p" | member history | grep -q "$newer" && fail "an ancestor by mistake"
ctl_fails 6 "diverged" sync other "$T/p"

# What it is not for.
ctl_fails 2 "--discard local or --discard replica" resolve pool "$T/p"
ctl_fails 2 "--discard" resolve --discard both pool "$T/p"
change pool 50
ctl sync pool "$T/p" >/dev/null || fail "sync"
ctl create "$T/s" --size 1M >/dev/null || fail "create"
ctl_fails 4 "only behind" resolve --force --discard local pool "$T/s"
head -c 1048576 /dev/urandom >stranger
ctl_fails 4 "nothing is known" resolve --force --discard local stranger "$T/p"
ctl sync stranger "$T/s" >/dev/null || fail "sync"
ctl_fails 4 "another pool" resolve --force --discard local pool "$T/s"

# One that was made before its program has a UUID of its own, and is a replica of the pool by its generations.
ctl create "$T/u" --size 1M >/dev/null && ctl create "$T/v" --size 1M >/dev/null || fail "create"
head -c 1048576 /dev/urandom >late
ctl sync late "$T/u" >/dev/null && ctl sync late "$T/v" >/dev/null || fail "sync"
ctl promote "$T/v" >/dev/null && ctl demote "$T/v" >/dev/null || fail "promote"
change $P/v 700
change late 60
ctl_fails 4 "newer" sync late "$T/v"
ctl resolve --force --discard local late "$T/v" >/dev/null 2>err || fail "$(cat err)"
cmp -s late $P/v || lost "not the replica's data"

# A kill in the middle leaves what can be resolved again, never two that seem equal.
for delay in 0 0.05 0.2; do
	diverge
	ctl_kill "$delay" resolve --force --discard replica pool "$T/p"
	wait_for 10 settled || fail "the session stays"
	cmp -s pool saved.pool || lost "a discard of the replica has changed the file"
	cmp -s pool $P/p || [ "$(ctl info --json "$T/p" | member state)" = inconsistent ] ||
		cmp -s saved $P/p || lost "a mixture that is not told"
	ctl resolve --force --discard replica pool "$T/p" >/dev/null 2>err ||
		grep -q "nothing to resolve" err || fail "again: $(cat err)"
	cmp -s pool $P/p || lost "not resolved by the second one"
	ctl_fails 6 "diverged" sync pool "$T/r"
done

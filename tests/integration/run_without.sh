#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Without a target, or when it is lost, an unmodified program runs on, or is ended with on-loss = fail; with no pool
# it connects to nobody, and it is told that what it has is replicated nowhere.
. "$(dirname "$0")/run_lib.sh"
WRITE=$BUILD/tests/integration/pmem_write
start_target

# Of one that goes on and on it is told meanwhile; its end is below.
(run "$TMP/on" on "$WRITE" slow "$TMP/goes") >"$TMP/on.out" 2>&1 &
on=$!

# No pool is flushed: nobody connects. The file that is, is named, once; that is the program's own doing, not its shell's.
(run "$TMP/none" none sh -c '"$@" && true' sh "$WRITE" other "$TMP/none") >"$TMP/out" 2>&1 || fail "other: $(cat "$TMP/out")"
grep -q "NOTHING REPLICATED: $TMP/none.2 is made durable.* no --pool .*; $TMP/none is not mapped" "$TMP/out" ||
	fail "a program without a pool hears: $(cat "$TMP/out")"
[ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "more than a line: $(cat "$TMP/out")"
ctl_fails 3 "not found" info "$T/none"
(run "$TMP/none" none true) >"$TMP/out" 2>&1 || fail "true: $(cat "$TMP/out")"
[ ! -s "$TMP/out" ] || fail "a program without a file hears: $(cat "$TMP/out")"

# The target is not there: one line tells, the program does its work.
free=$(free_port)
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/alone" \
	--replica "nobody@127.0.0.1:$free/alone" -- "$WRITE" pmem "$TMP/alone" >"$TMP/out" 2>&1 ||
	fail "without a target: $(cat "$TMP/out")"
grep -q "alone: NOT REPLICATED: .*127.0.0.1" "$TMP/out" || fail "not told: $(cat "$TMP/out")"
[ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "more than a line: $(cat "$TMP/out")"

# However long the name of the file is, it tells what is the matter, in one piece; also one of which a pipe does not take
# all at once has its beginning and its end.
deep=$TMP
for n in $(seq 16); do
	deep=$deep/$(printf %0248d "$n")
	(cd / && mkdir "$deep") || fail "no directory $n"
	[ $((n % 8)) -eq 0 ] || continue
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$deep/alone" \
		--replica "nobody@127.0.0.1:$free/alone" -- "$WRITE" pmem "$deep/alone" >"$TMP/out" 2>&1 ||
		fail "with a name of ${#deep}: $(cat "$TMP/out")"
	grep -Eqx "librepl-preload\[[0-9]+\]: $TMP/.*/alone: NOT REPLICATED: .*: Connection refused" "$TMP/out" ||
		fail "with a name of ${#deep} it is told: $(cat "$TMP/out")"
	[ "$(wc -l <"$TMP/out")" -eq 1 ] || fail "more than a line: $(cat "$TMP/out")"
done
[ "$(wc -c <"$TMP/out")" -eq 4096 ] || fail "no line that is cut: $(wc -c "$TMP/out")"

# The line has a pipe that nobody reads, and a file that may get no longer: the program is not held up or ended by it.
alone() {
	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/alone" \
		--replica "nobody@127.0.0.1:$free/alone" -- timeout -k 1 5 "$WRITE" pmem "$TMP/alone"
}
mkfifo "$TMP/pipe"
exec 7<>"$TMP/pipe" 8>"$TMP/pipe"
head -c 65536 /dev/zero >&8
(alone 2>&8) || fail "with a pipe that is full it ends with $?"
exec 7<&-
(alone 2>&8) || fail "with a pipe that nobody reads it ends with $?"
exec 8>&-
head -c 1048576 /dev/zero >"$TMP/errors"
(ulimit -f 1024 && alone 2>>"$TMP/errors") || fail "with a file for errors that is full it ends with $?"
[ "$(stat -c %s "$TMP/errors")" = 1048576 ] || fail "the file was not full"

# A file without a name is one all the same.
exec 8<>"$TMP/nameless"
rm "$TMP/nameless"
(alone 2>&8) || fail "with a file without a name for errors it ends with $?"
grep -q "NOT REPLICATED" /dev/fd/8 || fail "nothing is told to a file without a name"
exec 8>&-

# What has its number meanwhile is the program's own, and none of it is for our words.
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/number" \
	--replica "nobody@127.0.0.1:$free/alone" -- "$BUILD/tests/integration/pmem_odd" number "$TMP/number" ||
	fail "what is told is in a file or connection of the program's: $?"

# Nor is there room for the library: it is said what is wrong with that one. Sanitizers need some themselves.
if ! sanitized; then
	(ON_LOSS=degrade run "$TMP/narrow" narrow "$BUILD/tests/integration/pmem_odd" narrow "$TMP/narrow") >"$TMP/out" 2>&1 ||
		fail "narrow: $(cat "$TMP/out")"
	grep -q "narrow: NOT REPLICATED: .*librepl.so.0: failed to map" "$TMP/out" || fail "narrow says: $(cat "$TMP/out")"
fi

# With on-loss = fail it does none that is not replicated, whatever the reason and wherever that is said.
stopped() {
	local status=0

	"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@" -- "$WRITE" pmem "$TMP/alone" \
		>"$TMP/out" 2>&1 || status=$?
	[ $status -eq 134 ] || fail "$*: ends with $status: $(cat "$TMP/out")"
	grep -q "alone: NOT REPLICATED: " "$TMP/out" || fail "$*: not told: $(cat "$TMP/out")"
}
stopped run --set on-loss=fail --pool "$TMP/alone" --replica "nobody@127.0.0.1:$free/alone"
printf '[repl]\non-loss = fail\n' >"$TMP/fail.conf"
stopped --config "$TMP/fail.conf" run --pool "$TMP/alone" --replica "nobody@127.0.0.1:$free/alone"
# The target is lost while the program writes: it goes on, to its end.
(ON_LOSS=degrade run "$TMP/lost" lost "$WRITE" slow "$TMP/lost") >"$TMP/out" 2>&1 &
pid=$!
wait_for 20 grep -q '^20$' "$TMP/out" || fail "does not begin: $(cat "$TMP/out")"
session=$(sed -n 's/.*repld\[\([0-9]*\)\].* lanes open on .*/\1/p' "$TMP/serve.log" | tail -n 1)
signalled KILL "$session"
wait_for 30 grep -q '^199$' "$TMP/out" || fail "stopped: $(tail -n 3 "$TMP/out")"
wait "$pid" || fail "the program ended with $?"
grep -q "lost: REPLICA .* LOST: " "$TMP/out" || fail "the loss is not told: $(head -c 2000 "$TMP/out")"

wait "$on" || fail "the one that goes on ended with $?"
grep -q "NOTHING REPLICATED: $TMP/goes is made durable" "$TMP/on.out" || fail "it hears: $(cat "$TMP/on.out")"
[ "$(grep -c preload "$TMP/on.out")" -eq 1 ] || fail "more than a line: $(cat "$TMP/on.out")"
[ "$(tail -n 1 "$TMP/on.out")" = 199 ] || fail "it hears only at its end: $(tail -n 3 "$TMP/on.out")"

# What can't be followed is refused before it runs.
printf 'int main(void) { return 0; }\n' >"$TMP/s.c"
if gcc -static -o "$TMP/static" "$TMP/s.c" 2>/dev/null; then
	ctl_fails 4 "statically linked" run --replica "$T/s" --pool "$TMP/s" -- "$TMP/static"
fi
printf '\177ELF\001\001\001\0\0\0\0\0\0\0\0\0' >"$TMP/small"
chmod +x "$TMP/small"
ctl_fails 4 "of 32 bits" run --replica "$T/s" --pool "$TMP/s" -- "$TMP/small"
mkdir "$TMP/a place"
cp "$REPLCTL" "$BUILD/librepl-preload.so" "$TMP/a place"
LD_LIBRARY_PATH=$BUILD REPLCTL="$TMP/a place/replctl" \
	ctl_fails 4 "space or colon" run --replica "$T/s" --pool "$TMP/s" -- true
cp /bin/true "$TMP/setuid"
chmod u+s "$TMP/setuid"
ctl_fails 4 "another user's rights" run --replica "$T/s" --pool "$TMP/s" -- "$TMP/setuid"
ctl_fails 2 "has no replica" run --pool "$TMP/s" -- true
ctl_fails 2 "no --pool" run --replica "$T/s" -- true
ctl_fails 2 "'$T/s' is named twice" run --replica "$T/s" --replica "$T/s" --pool "$TMP/s" -- true
ctl_fails 2 "'$T/s' is named twice" run --replica "$T/s" --pool "$TMP/s" --replica "$T/s" --pool "$TMP/r" -- true
ctl_fails 2 "names no pool" run --replica host --pool "$TMP/s" -- true
ctl_fails 3 "no program 'no-such-program'" run --replica "$T/s" --pool "$TMP/s" -- no-such-program
ctl_fails 3 "pool '/no/such/dir/p'" run --replica "$T/s" --pool /no/such/dir/p -- true
# What names one file, or one replica, is not for two pools; for one it is, however often that is named.
for set in "metrics-file=$TMP/m" "pool-file=$TMP/f" "status-socket=$TMP/sock" "target=$T/t" "async-target=$T/t"; do
	ctl_fails 10 "key '${set%%=*}' is for one pool, and several" run --set "$set" --replica "$T/s" --pool "$TMP/s" \
		--replica "$T/r" --pool "$TMP/r" -- true
	ctl run --set "$set" --replica "$T/s" --pool "$TMP/s" --replica "$T/r" --pool "$TMP/s" -- true || fail "$set"
done
ctl_fails 10 "lanes" run --set lanes=0 --replica "$T/s" --pool "$TMP/s" -- true

# Lanes are refused, since the only port for them is the first daemon's.
taken=$SERVE_PORT
start_serve "data-ports = $taken"
stopped run --set on-loss=fail --pool "$TMP/alone" --replica "$SERVE_USER@127.0.0.1:$SERVE_PORT/alone"
"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run --pool "$TMP/alone" \
	--replica "$SERVE_USER@127.0.0.1:$SERVE_PORT/alone" -- "$WRITE" pmem "$TMP/alone" >"$TMP/out" 2>&1 ||
	fail "by default: $(cat "$TMP/out")"
grep -q "alone: NOT REPLICATED: .*data port" "$TMP/out" || fail "not told why: $(cat "$TMP/out")"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool's file that gets shorter while its replica is away: the replica comes back, has all that is left, and keeps what
# was behind; the program lives. Whether the map tells what it lacks or a comparison, with a journal or without.
. "$(dirname "$0")/run_lib.sh"
start_target "journal-max = 2M"
ODD=$BUILD/tests/integration/pmem_odd
pools=$TMP/serve/pools
MIB=1048576

# shorter POOL MIB LETTER [OLD]: what the replica has behind; OLD: it is an older one when it is back.
shorter() {
	name=$1
	file=$TMP/$name
	half=$(($2 * MIB / 2))
	rm -f "$TMP/out"
	(ON_LOSS=degrade run "$file" "$name" timeout -k 5 40 "$ODD" shorter "$file") >"$TMP/out" 2>&1 &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 grep -q begun "$TMP/out" || fail "$name does not begin: $(cat "$TMP/out")"
	ctl pause "$file" >"$TMP/pause.log" 2>&1 || fail "$name: pause"
	: >"$file.away"
	wait_for 10 grep -q shorter "$TMP/out" || fail "$name: $(cat "$TMP/out")"
	[ -z "${4-}" ] || cp "$4" "$4.repl" "$pools/" || fail "$name: an older one"
	ctl resume "$file" >"$TMP/resume.log" 2>&1 || fail "$name: resume: $(cat "$TMP/resume.log" "$TMP/out")"
	wait_for 10 is_back || fail "$name does not come back: $(ctl why "$file" 2>&1; cat "$TMP/out")"
	: >"$file.enough"
	wait $pid || fail "$name ends with $?: $(cat "$TMP/out")"
	grep -q "$name: it was made shorter than $((2 * half)) bytes" "$TMP/out" || fail "$name says: $(cat "$TMP/out")"
	wait_for 10 pool_idle "$name" || fail "$name is still open"
	[ "$(stat -c %s "$file")" = $half ] || fail "$name: it is not shorter"
	cmp -n $half "$file" "$pools/$name" >&2 || lost "$name: what is left differs"
	tail -c $half "$pools/$name" | tr -d "$3" | cmp - /dev/null >&2 || lost "$name: what was behind is not kept"
	ctl info "$T/$name" | grep -q '^state *up-to-date' || fail "$(ctl info "$T/$name")"
}

is_back() {
	gone $pid || ctl status "$file" | grep -q '^state.* established' && ! gone $pid
}

# make POOL MIB LETTER: of these no byte is a hole.
make() {
	tr '\0' "$3" </dev/zero | head -c $(($2 * MIB)) >"$TMP/$1"
}

make journal 1 z
shorter journal 1 z
# Of a file that it has locked there is no other descriptor, and hence nothing but the mapping.
make locked 8 z
shorter locked 8 z
truncate -s 8M "$TMP/holes"
shorter holes 8 '\0'

# It is of another generation: what it lacks only a comparison can tell.
make compared 8 y
ctl sync "$TMP/compared" "$T/compared" >"$TMP/sync.log" 2>&1 || fail "sync: $(cat "$TMP/sync.log")"
mkdir "$TMP/old"
wait_for 10 pool_idle compared && cp -p "$pools/compared" "$pools/compared.repl" "$TMP/old/"
make compared 8 z
shorter compared 8 y "$TMP/old/compared"

# Opened once more it is refused: no replica gets shorter. What is to be removed where it was made anew is named, and that helps.
name=journal
file=$TMP/journal
goes_on() {
	rm -f "$file.enough"
	: >"$TMP/out"
	(ON_LOSS=degrade run "$file" "$name" timeout -k 5 40 "$ODD" goeson "$file") >"$TMP/out" 2>&1 &
	pid=$!
	PIDS="$PIDS $pid"
}
end() {
	: >"$file.enough"
	wait $pid || fail "$name ends with $?: $(cat "$TMP/out")"
}
goes_on
wait_for 10 grep -q "NOT REPLICATED: $file.repl is of a pool of $MIB bytes, the pool has $((MIB / 2)), .*remove $file.repl and the replica (replctl remove TARGET/POOL)" \
	"$TMP/out" || fail "$name says: $(cat "$TMP/out")"
end
ctl why "$file" >"$TMP/why" 2>&1
grep -q "made anew: rm $file.repl; replctl remove TARGET/POOL;" "$TMP/why" || fail "why: $(cat "$TMP/why")"
rm "$file.repl"
ctl remove "$T/$name" --force >"$TMP/remove.log" 2>&1 || fail "remove: $(cat "$TMP/remove.log")"
goes_on
wait_for 10 ctl info "$T/$name" || fail "it is not made anew: $(cat "$TMP/out")"
end
wait_for 10 pool_idle "$name" || fail "$name is still open"
[ ! -s "$TMP/out" ] || fail "$name says: $(cat "$TMP/out")"
cmp "$file" "$pools/$name" >&2 || lost "$name: it differs"

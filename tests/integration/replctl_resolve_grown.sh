# SPDX-License-Identifier: BSD-3-Clause
# Where one side has grown since the other side went on resolve names what brings them together, whichever is given up.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools

# step N: the Nth command that the last refusal has named.
step() {
	sed -n 's/^next: //p' err | tr ';,' '\n\n' | sed 's/^ *then//; s/ *(.*//; s/^ *//' | grep '^replctl ' |
		sed -n "$1s/^replctl //p"
}

typed() {
	# shellcheck disable=SC2046
	ctl $(step "$1") >out 2>&1 || fail "replctl $(step "$1"): $(cat out)"
}

# look DISCARD FILE POOL: refused for the sizes.
look() {
	ctl resolve --dry-run --discard "$1" "$2" "$T/$3" >out 2>err && fail "resolved: $(cat out)"
	grep -q "bytes, the replica" err || fail "$(cat err)"
}

same() {
	cmp -s "$1" "$P/$2" || lost "$1 and $2 differ"
	ctl sync --json "$1" "$T/$2" >out 2>err || fail "sync: $(cat err)"
	[ "$(member moved <out)" = 0 ] || fail "$1 and $2 differed"
}

# Others have gone on from p, and have let it grow; q is of the old size.
head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/p" >out 2>&1 || fail "sync: $(cat out)"
ctl sync pool "$T/q" >out 2>&1 || fail "sync: $(cat out)"
ctl restore "$T/p" other >out 2>&1 || fail "restore: $(cat out)"
change other 5000
truncate -s 2M other
change other 1500000
ctl grow "$T/p" --size 2M >out 2>&1 || fail "grow: $(cat out)"
ctl sync other "$T/p" >out 2>&1 || fail "sync: $(cat out)"
change pool 9000
ctl sync pool "$T/q" >out 2>&1 || fail "sync: $(cat out)"
for f in pool pool.repl other other.repl; do
	cp $f kept-$f
done

# The old file, of which nothing is wanted.
look local pool p
keep=$(sed -n 's/^next: [^;]*; \(mv .*\); replctl restore .*/\1/p' err)
eval "$keep" || fail "$keep: $(cat err)"
cmp -s pool.old kept-pool && cmp -s pool.old.repl kept-pool.repl || lost "file and record are not kept"
typed 2
cmp -s other pool || lost "not what was there"
same pool p

# The replica of the old file follows what has become of the pool.
look replica pool q
typed 1
ctl resolve --force --discard replica pool "$T/q" >out 2>&1 || fail "resolve: $(cat out)"
same pool q

# The old file, which is to count: what has grown can only be made anew.
rm pool pool.repl
cp kept-pool pool
cp kept-pool.repl pool.repl
look replica pool p
grep -q "replctl remove $T/p, then replctl sync pool $T/p " err || fail "$(cat err)"
ctl remove --force "$T/p" >out 2>&1 || fail "remove: $(cat out)"
typed 3
same pool p

# SPDX-License-Identifier: BSD-3-Clause
# A sync that ends what another one began gives the replica a generation of its own: the one that it had is of other
# bytes, which another replica still has.
. "$(dirname "$0")/lib.sh"
start_target
cd "$TMP" || exit 1
P=serve/pools

gen() {
	ctl info --json "$T/$1" | member generation
}

# mark POOL STATE: in the generation that it has, with the file's bytes: "inconsistent" as after a sync that copied all
# of the file directly and was killed before it told.
mark() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"'"$1"'","mode":"write"}}'
		echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"'"$2"'"}}'
		sleep 1
	} | client cat "$T" >answers || fail "no session: $(cat answers)"
	grep -q '"id": *3.*"result"' answers || fail "pool.mark: $(cat answers)"
	cat pool >"$P/$1"
	[ "$(ctl info --json "$T/$1" | member state)" = "$2" ] || fail "not $2"
}

head -c 1048576 /dev/urandom >pool
ctl sync pool "$T/q" >/dev/null && ctl sync pool "$T/p" >/dev/null &&
	ctl sync pool "$T/q" >/dev/null || fail "sync"
[ "$(gen p)" = "$(gen q)" ] || fail "equal replicas are not of one generation"

# By the file with its record.
change pool 5000
mark p inconsistent
ctl sync --json pool "$T/p" >out 2>err || fail "$(cat err)"
[ "$(member moved <out)" = 0 ] || fail "something was left to move: $(cat out)"
[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "not up to date"
cmp -s pool $P/p && ! cmp -s pool $P/q || lost "contents"
[ "$(gen p)" != "$(gen q)" ] || fail "one generation, and other bytes"
ctl sync pool "$T/q" >/dev/null 2>err || fail "the other one follows: $(cat err)"
cmp -s pool $P/q || lost "it has not followed"

# By a file of which nothing is known, and whose contents are those of the replica: part of a copy, or known to miss
# updates.
for state in inconsistent outdated; do
	ctl sync pool "$T/p" >/dev/null && ctl sync pool "$T/q" >/dev/null || fail "sync"
	[ "$(gen p)" = "$(gen q)" ] || fail "not of one generation again"
	change pool 9000
	mark p "$state"
	rm pool.repl
	ctl sync --json pool "$T/p" >out 2>err || fail "$(cat err)"
	cmp -s pool $P/p && ! cmp -s pool $P/q || lost "contents"
	[ "$(ctl info --json "$T/p" | member state)" = up-to-date ] || fail "not up to date"
	[ "$(gen p)" != "$(gen q)" ] || fail "$state, no record: one generation, and other bytes"
	ctl sync --force pool "$T/q" >/dev/null || fail "sync by force"
done

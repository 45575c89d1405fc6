# SPDX-License-Identifier: BSD-3-Clause
# A file that has a part of a generation has left that when its sync is cut off at the last word, and its replica has not:
# the commands that are advised go on all the same, and others that have more of that generation keep it.
. "$(dirname "$0")/../integration/api_lib.sh"
. "$(dirname "$0")/liar.sh"
cd "$TMP" || exit 1
P=serve/pools
head -c 1048576 /dev/urandom >all
generation=
for n in 1 2; do
	before=$generation
	change all "$n"
	ctl sync all "$T/a" >/dev/null 2>err || fail "sync: $(cat err)"
	generation=$(ctl info --json "$T/a" | member generation)
done

# lags POOL: it has the first 8 drains of that generation.
lags() {
	for part in "" .repl; do
		cp -p "$P/a$part" "$P/$1$part"
	done
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"'"$1"'","mode":"write"}}'
		echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"outdated","position":8,' \
			'"generation":"'"$generation"'","history":["'"$before"'"]}}'
		echo '{"jsonrpc":"2.0","id":4,"method":"pool.close","params":{}}'
	} | client cat "$T" >out || fail "no session: $(cat out)"
	[ "$(ctl info --json "$T/$1" | member state)" = unknown ] || fail "$1: $(cat out)"
}

lags b
ctl restore "$T/b" file >out 2>err || fail "restore of b: $(cat err)"
change file 5000
cp $P/b was
lie '{"method": "journal.commit", "do": "cut"}'
ctl sync file "$T/b" >out 2>err && fail "it is not cut off"
cmp -s was $P/b || lost "it is not cut off before the target has done it"
lie ''
repeat=$(sed -n 's/^next: replctl \(sync .*\) (goes on where this ended); .*/\1/p' err)
resolve=$(sed -n 's/^next: .*: replctl \(resolve --discard replica .*\)/\1/p' err)
[ "$repeat" = "sync file $T/b" ] && [ "$resolve" = "resolve --discard replica file $T/b" ] || fail "$(cat err)"
# shellcheck disable=SC2086
ctl_fails 6 "diverged" $repeat
# shellcheck disable=SC2086
ctl ${resolve/resolve/resolve --force} >out 2>err || fail "$resolve: $(cat err)"
cmp -s file $P/b || lost "it is not what the file is"
ctl_fails 6 "diverged" sync file "$T/a"
cmp -s all $P/a || lost "a is not what it was"

# SPDX-License-Identifier: BSD-3-Clause
# Replicas that sync has made equal are told to have all, but for one of a file whose program was killed: that may have had
# more acknowledged than the file has.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
cd "$TMP" || exit 1

# newest WANTED POOL...
newest() {
	local wanted=$T/$1

	shift
	ctl newest "${@/#/$T/}" >out 2>err || fail "newest $*: $? $(cat out err)"
	grep -q "^newest *$wanted$" out || lost "newest $*: not $wanted: $(cat out)"
}

head -c $MIB /dev/urandom >f
for pool in b c b; do
	ctl sync f "$T/$pool" >/dev/null 2>err || fail "sync to $pool: $(cat err)"
done
ctl newest "$T/b" "$T/c" >out 2>err || fail "of equal ones: $(cat out err)"
newest b b c
newest c c b

# What the file loses with the power was acknowledged by a alone; b is made equal to the file.
cp f before
start_api
configure "$(pool a)"
ok map "$TMP/f" $MIB
ok open 1
ok put 0 4096 7
ok persist 0 0 4096
kill -KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
exec {API_IN}>&-
gone_writer() {
	[ "$(ctl info --json "$T/a" | member writer_open)" = False ]
}
wait_for 20 gone_writer || fail "a is still open"
dd if=before of=f conv=notrunc status=none
ctl sync f "$T/b" >/dev/null 2>err || fail "sync to b: $(cat err)"
cmp -s serve/pools/b before || lost "b is not the file"
newest a b a

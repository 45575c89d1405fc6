# SPDX-License-Identifier: BSD-3-Clause
# Replicas that sync has made equal are told to have all, but for one of a file whose machine was started anew since its program
# was lost: what the file has not then another replica may have, which is neither called the older one nor overwritten.
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

# The machine runs on, as if it had been started anew once the file is there.
P=$BUILD/tests/integration
printf '#!/bin/sh\nOTHER_BOOT=%s LD_PRELOAD=%s exec "%s" "$@"\n' "$TMP/boot" "$P/other_boot.so" "$REPLCTL" >replctl
chmod 755 replctl
REPLCTL=$TMP/replctl
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS

gone_writer() {
	[ "$(ctl info --json "$T/a" | member writer_open)" = False ]
}

# killed VALUE: a program that replicates f to a is, when two pages have been acknowledged.
killed() {
	start_api
	configure "$(pool a)"
	ok map "$TMP/f" $MIB
	ok open 1
	ok put 0 4096 "$1"
	ok put 8192 4096 "$1"
	ok persist 0 0 12288
	kill -KILL "$(api_child)"
	wait "$api_pid" 2>/dev/null
	exec {API_IN}>&-
	wait_for 20 gone_writer || fail "a is still open"
}

# Of a process that is killed the kernel has all.
killed 7
ctl sync --dry-run f "$T/a" >/dev/null 2>err || fail "sync to a, dry: $(cat err)"
ctl sync f "$T/b" >/dev/null 2>err || fail "sync to b: $(cat err)"
[ ! -s err ] || fail "sync to b: $(cat err)"
newest b b a
ctl sync f "$T/a" >/dev/null 2>err || fail "sync to a: $(cat err)"
ctl newest "$T/a" "$T/b" >/dev/null 2>err || fail "of equal ones: $(cat err)"

# What the file loses with the power was acknowledged by a alone; b is behind, is made equal to the file, and then equal before.
cp f before
killed 8
cp serve/pools/a acknowledged
equal f acknowledged
dd if=before of=f bs=4096 count=1 conv=notrunc status=none
echo 01234567-89ab-cdef-0123-456789abcdef >boot
for i in 1 2; do
	ctl sync f "$T/b" >/dev/null 2>err || fail "sync to b: $(cat err)"
	equal serve/pools/b f
	grep -q "it may lack what other replicas have.*replctl newest $T/b" err || fail "not told: $(cat err)"
	newest a b a
	newest a a b
done

# Nor does a get what the file has, where they differ, but by force.
for dry in --dry-run ""; do
	# shellcheck disable=SC2086
	ctl_fails 4 "was started anew since" sync $dry f "$T/a"
	grep -q "^next: replctl newest $T/a, .*replctl sync --force f $T/a" "$TMP/err" || fail "no next step: $(cat "$TMP/err")"
	equal serve/pools/a acknowledged
	newest a b a
done

# What is discarded for the file is not called newer either.
ctl promote "$T/c" >/dev/null 2>err && ctl demote "$T/c" >/dev/null 2>err || fail "c: $(cat err)"
ctl resolve --force --discard replica f "$T/c" >/dev/null 2>err || fail "resolve: $(cat err)"
equal serve/pools/c f
ctl newest "$T/a" "$T/c" >out 2>err && lost "one of them is newer: $(cat out)"
grep -q "neither names the other's generation" err || fail "newest: $(cat err)"
ctl_fails 6 "diverged" sync f "$T/a"
equal serve/pools/a acknowledged

ctl sync --force f "$T/a" >/dev/null 2>err || fail "sync by force: $(cat err)"
equal serve/pools/a f

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program changes its file in ways that are not followed: each time that the pool is opened it is compared, though
# repl.conf says after-crash = dirty-map for programs that write by librepl alone.
. "$(dirname "$0")/run_lib.sh"
WRITE=$BUILD/tests/integration/pmem_write
start_target
cat >"$TMP/repl.conf" <<END
[repl]
after-crash = dirty-map
identity = $TMP/key
known-hosts = $TMP/known_hosts
END
pool=$TMP/pool

# write MODE: the program runs, and says nothing.
write() {
	"$REPLCTL" --config "$TMP/repl.conf" run --replica "$T/pool" --pool "$pool" -- "$WRITE" "$1" "$pool" \
		>"$TMP/out" 2>&1 || fail "$1: $(cat "$TMP/out")"
	[ ! -s "$TMP/out" ] || fail "$1 says: $(cat "$TMP/out")"
	wait_for 10 pool_idle pool || fail "the pool is still open"
	ctl verify "$pool" "$T/pool" >"$TMP/verify.log" 2>&1 || lost "$1: $(cat "$TMP/verify.log")"
}
write pmem
change "$pool" 70000
write msync
# Another file has its name.
cp "$pool" "$TMP/other"
change "$TMP/other" 80000
mv "$TMP/other" "$pool"
write msync

ctl run --set after-crash=dirty-map --replica "$T/pool" --pool "$pool" -- "$WRITE" pmem "$pool" >"$TMP/out" 2>&1 &&
	fail "it is taken"
grep -q "after-crash=dirty-map.*compared" "$TMP/out" || fail "it says: $(cat "$TMP/out")"
grep -q "^next: " "$TMP/out" || fail "it says: $(cat "$TMP/out")"

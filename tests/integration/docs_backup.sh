# SPDX-License-Identifier: BSD-3-Clause
# The nightly backup of replctl(1), as it stands there: it has what was durable when it began, or it fails; the program
# goes on with its replica in either case.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
man=$(cd "$(dirname "$0")/../../docs/man" && pwd)/replctl.1 && cd "$TMP" || exit 1
sed -n '/^replctl pause POOL/,/^\.Ed/p' "$man" | sed "/^\.Ed/d
	s|POOL TARGET/pool|$TMP/p $(pool p)|g; s|TARGET/pool|$(pool p)|; s|BACKUP|$TMP/backup|g" >nightly
grep -q "$(pool p)" nightly || fail "not what was looked for: $(cat nightly)"

nightly() {
	PATH=$BUILD:$PATH REPL_CONFIG=$TMP/login.conf sh nightly >out 2>err </dev/null
}

# day SEED: what the program has made durable.
day() {
	ctl wait "$TMP/p" --timeout 20 || fail "the replica does not come back"
	ok put 0 $MIB "$1"
	ok persist 0 0 $MIB
}

configure "$(pool p)"
ok set reconnect-min 100
ok set reconnect-max 200
ok map "$TMP/p" $MIB
ok open 1
for seed in 1 2; do
	day "$seed"
	wait_for 20 nightly || fail "$(cat out err)"
	equal p backup
done

# The target takes its time to close what was paused.
day 3
session=$(session_of p)
signalled STOP "$session"
if nightly; then
	equal p backup
fi
kill -CONT "$session"
wait_for 20 nightly || fail "$(cat out err)"
equal p backup
ok close

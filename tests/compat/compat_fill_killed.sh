# SPDX-License-Identifier: BSD-3-Clause
# A replica that pmempool transform was filling when it was killed is none to restore from; filled, it is.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
start_compat
target_set rem.set "256M rem.part"
printf 'PMEMPOOLSET\n256M %s\n' "$TMP/part0" >"$TMP/alone.set"
printf 'PMEMPOOLSET\n256M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$T" >"$TMP/local.set"
pmdk pmempool create obj --layout=test "$TMP/alone.set" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
filled=$(pmdk "$FILL" fill "$TMP/alone.set" test 50 2>"$TMP/err") || fail "fill: $(cat "$TMP/err")"

state() {
	ctl info "$T/rem.set" | sed -n 's/^state *\([^ ]*\).*/\1/p'
}

opened() {
	[ "$(lanes_opened)" -gt "$lanes" ] || gone "$pid"
}

idle() {
	! ctl info "$T/rem.set" | grep -q '^writer .*(has it open)'
}

lanes=$(lanes_opened)
REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD pmempool transform "$TMP/alone.set" "$TMP/local.set" \
	>"$TMP/out" 2>&1 </dev/null &
pid=$!
PIDS="$PIDS $pid"
until opened; do
	:
done
# Marked so when it is made, before anything is copied.
kill -STOP "$pid" || fail "transform: $(cat "$TMP/out")"
until [ "$(state)" = inconsistent ]; do
	kill -CONT "$pid" && sleep 0.01 && kill -STOP "$pid" || fail "it is $(state): $(cat "$TMP/out")"
done
kill -KILL "$pid"
wait "$pid" 2>/dev/null
wait_for 15 idle || fail "its session does not end"
[ "$(state)" = inconsistent ] || fail "it is $(state)"
mv "$TMP/part0" "$TMP/saved"
pmdk_fails "was begun and not finished" pmempool sync "$TMP/local.set"
mv "$TMP/saved" "$TMP/part0"
ctl remove --force "$T/rem.set" >"$TMP/out" 2>&1 || fail "remove: $(cat "$TMP/out")"
pmdk pmempool transform "$TMP/alone.set" "$TMP/local.set" >"$TMP/out" 2>&1 || fail "transform: $(cat "$TMP/out")"
[ "$(state)" = up-to-date ] || fail "filled it is $(state)"
lose_and_sync "$filled"

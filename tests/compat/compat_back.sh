# SPDX-License-Identifier: BSD-3-Clause
# A replica that is lost while a program runs is told of at once, comes back while it runs, and has all that was acknowledged.
. "$(dirname "$0")/compat_lib.sh"
start_compat
echo "reconnect-max = 1000" >>"$TMP/repl.conf"
target_set rem.set "64M rem.part"
printf 'PMEMPOOLSET\n64M %s\nREPLICA %s rem.set\n' "$TMP/part0" "$T" >"$TMP/local.set"
make_pool
fill 20 >/dev/null

told_count() {
	grep -c "$1" "$TMP/err"
}

is_told() {
	[ "$(told_count "$1")" -ge "$2" ]
}

paced_start
for round in 1 2 3; do
	sessions_kill
	wait_for 20 is_told "^librpmem: .*rem.set: REPLICA LOST: .*next: replctl why" $round || fail "no word of the loss: $(cat "$TMP/err")"
	wait_for 30 is_told "^librpmem: .*rem.set: the replica is back" $round || fail "it is not back: $(cat "$TMP/err")"
done
# What it is refused by is mended: it is not given up for that.
mv "$POOLS/rem.set.repl" "$TMP/rem.set.repl"
mkdir "$POOLS/rem.set.repl"
sessions_kill
wait_for 20 is_told "^librpmem: .*REPLICA LOST: " 4 || fail "no word of the loss: $(cat "$TMP/err")"
wait_for 20 grep -q "pool.open refused: refused: .*regular file" "$TMP/serve.log" || fail "it is not refused"
rmdir "$POOLS/rem.set.repl"
mv "$TMP/rem.set.repl" "$POOLS/rem.set.repl"
wait_for 30 is_told "the replica is back" 4 || fail "it does not come back: $(cat "$TMP/err")"
! gone "$pid" || fail "it has ended: $(cat "$TMP/err")"
[ "$(told_count .)" -eq 8 ] || fail "more than a line each: $(cat "$TMP/err")"
paced_kill
ctl info "$T/rem.set" >"$TMP/out" 2>&1 || fail "info: $(cat "$TMP/out")"
cp "$TMP/part0" "$TMP/saved"
rm "$TMP/part0"
wait_for 15 pmdk pmempool sync "$TMP/local.set" || fail "sync: $(pmdk pmempool sync "$TMP/local.set" 2>&1; cat "$TMP/rpmem.log")"
found=$(walk) || exit 1
[ "${found%% *}" -ge "$told" ] || lost "$found objects, $told were told"

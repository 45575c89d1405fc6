# SPDX-License-Identifier: BSD-3-Clause
# A pool's file that repld may not open, as after a copy by another user: whose it is, with which mode,
# and who would have to read it is told, and when that is mended all is as before.
. "$(dirname "$0")/lib.sh"
start_target
ctl create "$T/p" --size 64K >"$TMP/out" || fail "create: $(cat "$TMP/out")"
uid=$(stat -c %u "$TMP/serve/pools/p")
chmod 000 "$TMP/serve/pools/p"
ctl_fails 4 "'p' is user $uid's with mode 0000, repld runs as user $uid: chown and chmod it" probe "$T/p"
# Force is no help against it.
ctl_fails 4 "chown and chmod it" promote --force "$T/p"
grep -q "promote --force" "$TMP/err" && fail "force is advised: $(cat "$TMP/err")"
ctl_fails 4 "chown and chmod it" promote "$T/p"
grep -q "promote --force" "$TMP/err" && fail "force is advised: $(cat "$TMP/err")"
# Nor of one that can be read and not written, whatever it holds.
chmod 600 "$TMP/serve/pools/p"
head -c 65536 /dev/urandom >"$TMP/own"
ctl sync "$TMP/own" "$T/q" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
chmod 444 "$TMP/serve/pools/q"
ctl_fails 4 "'q' is user $uid's with mode 0444.*chown and chmod it" promote "$T/q"
grep -q "promote --force" "$TMP/err" && fail "force is advised: $(cat "$TMP/err")"
chmod 600 "$TMP/serve/pools/q"
mark_pool q inconsistent
ctl_fails 4 "^next: .*replctl promote --force $T/q" promote "$T/q"
ctl probe "$T/p" >"$TMP/out" 2>&1 || fail "probe: $(cat "$TMP/out")"

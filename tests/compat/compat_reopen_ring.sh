# SPDX-License-Identifier: BSD-3-Clause
# A set whose method wants a receive ring is brought up by its journal, which is none beside a ring, and has its ring
# afterwards.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/compat_lib.sh"
start_compat "rqwrb = pm" "log-level = debug"
target_set rem.set "16M rem.part"
local_set rem.set
echo "method = deposit" >>"$TMP/repl.conf"
make_pool

idle() {
	! ctl info "$T/rem.set" | grep -q '^writer .*(has it open)'
}

REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD \
	"$FILL" stream "$TMP/local.set" test 4000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
pid=$!
PIDS="$PIDS $pid"
wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
wait_for 15 idle || fail "its session does not end"

opened=$(lanes_opened)
rings=$(grep -c "with a receive ring" "$TMP/serve.log")
filled=$(fill 50) || exit 1
[ "$(lanes_opened)" -eq $((opened + 2)) ] || fail "the lanes are not opened once more"
[ "$(grep -c "with a receive ring" "$TMP/serve.log")" -eq $((rings + 1)) ] || fail "not with a ring"
ctl info "$T/rem.set" | grep -q "^state *up-to-date" || fail "$(ctl info "$T/rem.set")"
lose_and_sync "$filled"

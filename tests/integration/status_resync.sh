# SPDX-License-Identifier: BSD-3-Clause
# Of a replica that has been reached and is getting what it has missed nobody is told that it can't be reached, and its
# target tells of that, and not of a stranger who writes to it and is to be ended.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve "heartbeat = 100"
start_api
configure "$(pool p)"
ok set lanes 1
ok set reconnect-min 50
ok set reconnect-max 100
# So that it can be looked at.
ok set resync-rate 64K
ok map "$TMP/p" $((4 * MIB))
ok open 1
port=$SERVE_PORT
hurt serve
ok put 0 $((2 * MIB)) 1
ok persist 0 0 $((2 * MIB))

unreachable() {
	api stat 0
	[[ $TEXT == *"cannot connect"* ]]
}
resyncing() {
	api stat 0
	[ "$(field replication)" = 1 ]
}
wait_for 10 unreachable || fail "no try has failed: $TEXT"
SERVE_AT=$port
start_serve "heartbeat = 100"
wait_for 10 resyncing || fail "no resync: $TEXT"
ctl status "$TMP/p" >"$TMP/status"
[ $? -eq 5 ] || fail "not 5: $(cat "$TMP/status")"
grep -q "^reason *resyncing" "$TMP/status" || fail "$(cat "$TMP/status")"
! grep -q "cannot connect" "$TMP/status" || fail "$(cat "$TMP/status")"
[[ $TEXT != *"cannot connect"* ]] || fail "repl_stat(): $TEXT"
[[ $TEXT == *reason=?* ]] || fail "no reason: $TEXT"

resyncing_there() {
	ctl why "$(pool p)" >"$TMP/why" && grep -q "^reason *resyncing" "$TMP/why"
}
wait_for 10 resyncing_there || fail "$(cat "$TMP/why")"
grep -q "it says: connected, resyncing, outdated" "$TMP/why" || fail "$(cat "$TMP/why")"
# Later words have how far it is.
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
goes_on() {
	ctl status --json "$T" >"$TMP/status" &&
		[ "$(member sessions.0.report.resync_total <"$TMP/status")" -ge $((2 * MIB)) ]
}
wait_for 10 goes_on || fail "$(cat "$TMP/status")"
ok close

# How far one was is not told of the next one, which begins.
stop "$SERVE_PID"
start_serve "heartbeat = 100" "journal-max = 1M"
configure "$(pool p)"
ok set resync-rate 1M
ok open 0
ctl_start events --json "$TMP/p"
wait_for 20 grep -q up-to-date "$TMP/bg.out" || fail "no snapshot: $(cat "$TMP/bg.err")"
for len in $((2 * MIB)) 4096; do
	ctl pause "$TMP/p" >/dev/null || fail "pause"
	ok put 0 "$len" "$len"
	ok persist 0 0 "$len"
	ctl resume "$TMP/p" >/dev/null || fail "resume"
	ctl wait "$TMP/p" --timeout 20 >/dev/null || fail "$(ctl why "$TMP/p")"
done
ok close
wait "$CTL_PID" || fail "events: $(cat "$TMP/bg.err")"
python3 - "$TMP/bg.out" <<END || fail "$(cat "$TMP/bg.out")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])][1:]
back = [i for i, e in enumerate(events) if e['replication'] == 'established']
sys.exit(len(back) != 2 or any(e['resync_total'] > 65536 for e in events[back[0]:]))
END
# That it is no consistent pool while it is copied, since the journal does not take that much, is a change of its own.
python3 - "$TMP/bg.out" <<END || fail "inconsistent is not told: $(cat "$TMP/bg.out")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])][1:]
sys.exit(not any(e["event"] == "state" and e["data"] == "inconsistent" and e["resync_done"] < e["resync_total"]
	     for e in events))
END
# What the journal takes, if with no room beside it, is copied by that, also if more comes meanwhile.
ok open 0
ctl_start events --json "$TMP/p"
wait_for 20 grep -q up-to-date "$TMP/bg.out" || fail "no snapshot: $(cat "$TMP/bg.err")"
ctl pause "$TMP/p" >/dev/null || fail "pause"
ok put 0 $((996 * 1024)) 3
ok persist 0 0 $((996 * 1024))
ctl resume "$TMP/p" >/dev/null || fail "resume"
ok put 0 4096 4
ok persist 0 0 4096
ctl wait "$TMP/p" --timeout 20 >/dev/null || fail "$(ctl why "$TMP/p")"
ok compare 0
same
ok close
wait "$CTL_PID" || fail "events: $(cat "$TMP/bg.err")"
grep -q '"replication":"resyncing"' "$TMP/bg.out" || fail "no resync is told: $(cat "$TMP/bg.out")"
! grep inconsistent "$TMP/bg.out" || fail "a copy that is whole was given up"
stop_api

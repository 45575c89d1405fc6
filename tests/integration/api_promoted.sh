# SPDX-License-Identifier: BSD-3-Clause
# A program whose replica is promoted goes on without it, is told so, and tries again only when an operator says; what was
# promoted is opened in place and replicates on.
. "$(dirname "$0")/api_lib.sh"
start_target
start_api
FILE=$TMP/p
size=$((4 * MIB))
configure "$(pool p)"
ok set reconnect-min 10
ok set reconnect-max 200
ok set op-timeout 10000
ok map "$FILE" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size

# stands NAME: left alone for that reason.
stands() {
	# Its exit status tells of a degraded replica.
	ctl status --json "$FILE" >"$TMP/status"
	[ "$(member replicas.0.connection <"$TMP/status")" = standalone ] &&
		[ "$(member replicas.0.reason <"$TMP/status")" = "$1" ]
}
ctl promote --force "$T/p" >/dev/null || fail "promote"
ok put 0 4096 2
ok persist 0 0 4096
wait_for 10 stands promoted || fail "$(cat "$TMP/status")"
ok stat 0
[[ $TEXT == *"was promoted 20"*"replctl demote"* ]] || fail "not told by whom and what next: $TEXT"
ctl why "$FILE" | grep -q "^reason  *promoted:" || fail "$(ctl why "$FILE")"
ctl demote "$T/p" >/dev/null || fail "demote"
stands promoted || fail "tried again by itself: $(cat "$TMP/status")"
ctl resume "$FILE" "$(pool p)" >/dev/null || fail "resume"
wait_for 10 stands diverged || fail "$(cat "$TMP/status")"
ok persist 0 0 4096
ok close
refused "REPL_E_DIVERGED" "diverged|newer" open

# Its program goes on in place, with a replica of its own.
ctl promote "$T/p" >/dev/null || fail "promote again"
ok config
configure "$(pool second)"
ok map "$TMP/serve/pools/p" $size
ok open 1
ok put 8192 4096 3
ok persist 0 8192 4096
# In use it is nobody's to write or to demote.
ctl_fails 4 "in use" demote "$T/p"
ctl_fails 4 "promoted" sync --force "$FILE" "$T/p"
ctl_fails 4 "is the primary now" sync --dry-run "$FILE" "$T/p"
for dry in --dry-run ""; do
	# shellcheck disable=SC2086
	ctl_fails 4 "is a primary and in use" remove --force $dry "$T/p"
done
# It is that, and nobody's who promoted it to write to.
ctl list "$T" >"$TMP/out" || fail "list: $(cat "$TMP/out")"
grep -A 1 "^p " "$TMP/out" | grep -q "^ *a primary$" || fail "$(cat "$TMP/out")"
ctl why "$T/p" >"$TMP/out" || fail "why: $(cat "$TMP/out")"
grep -q "^reason  *promoted:" "$TMP/out" && ! grep -q "open for writing by" "$TMP/out" &&
	grep -q "its own program has it open" "$TMP/out" || fail "$(cat "$TMP/out")"
ok compare 0
same
ok close
equal "$TMP/serve/pools/p" "$TMP/serve/pools/second"
[ "$(ctl info --json "$T/p" | member primary)" = True ] || fail "no primary any more"

# Nor is it none when its file was damaged, and its replica gives it back.
change "$TMP/serve/pools/p" 9000
ctl restore --force "$T/second" "$TMP/serve/pools/p" >/dev/null || fail "restore"
equal "$TMP/serve/pools/p" "$TMP/serve/pools/second"
[ "$(ctl info --json "$T/p" | member primary)" = True ] || lost "it is a replica, into which others may write"
ctl_fails 4 "promoted" sync --force "$FILE" "$T/p"
ok config
configure "$(pool second)"
ok map "$TMP/serve/pools/p" $size
ok open 1
ok put 8192 4096 4
ok persist 0 8192 4096
ok close
equal "$TMP/serve/pools/p" "$TMP/serve/pools/second"

# Fail back: the old one takes it, and is refused before.
ctl_fails 4 "promoted" sync "$FILE" "$T/p"
ctl resolve --force --discard local "$FILE" "$T/p" >/dev/null || fail "resolve"
equal "$FILE" "$TMP/serve/pools/p"

# SPDX-License-Identifier: BSD-3-Clause
# Who is refused for the size of a replica is told what helps, and it does: of one that was grown by itself, and of one that
# is too small.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool p)" "$(pool q)"
ok set lanes 1
ok set reconnect-min 200
ok set reconnect-max 500
ok map "$TMP/local" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 1
ok persist 0 0 $((4 * MIB))

# The program runs, and nobody writes to the replica.
ctl pause "$TMP/local" "$(pool q)" >/dev/null || fail "pause"
wait_for 20 degraded 1 || fail "not paused: $TEXT"
wait_for 20 ctl grow "$(pool q)" --size 8M || fail "grow"
ctl resume "$TMP/local" "$(pool q)" >/dev/null || fail "resume"
told() {
	ctl why "$TMP/local" >"$TMP/out" && grep -q "has 8388608 bytes, the local range has 4194304" "$TMP/out"
}
wait_for 20 told || fail "why: $(cat "$TMP/out")"
grep -q "to a larger one the local file has to grow" "$TMP/out" || fail "why: $(cat "$TMP/out")"
ok persist 0 0 4096
ok close

# It is started.
refused REPL_E_INVAL "q' on the target has 8388608 bytes.*truncate -s 8388608 FILE.*or replctl remove $(pool q)," open
truncate -s 8388608 "$TMP/local" || fail "truncate"
ok map "$TMP/local" $((8 * MIB))
ok open
ok compare 0
same
ok compare 1
same
ok close
ctl grow "$(pool p)" --size 16M >/dev/null || fail "grow"
refused REPL_E_INVAL "p' on the target has 16777216 bytes.*or replctl remove $(pool p)," open
ctl remove --force "$(pool p)" >/dev/null || fail "remove"
ok open 1
equal "$TMP/local" "$TMP/serve/pools/p"
equal "$TMP/local" "$TMP/serve/pools/q"
ok close

# To be made anew is no advice where the replica may be the only copy: of a file that nothing is known of, and of one that is
# made anew beside its record.
only_copy() {
	refused REPL_E_INVAL "on the target has $1 bytes, the local range has $2.*next: .*replctl restore $(pool p) OTHER-FILE" open
	case $TEXT in *"replctl remove"*) lost "the only copy is to be removed: $TEXT" ;; esac
}
ok map "$TMP/fresh" $((4 * MIB))
only_copy 8388608 4194304
[ ! -e "$TMP/fresh.repl" ] || fail "a record of what was refused"
ctl grow "$(pool p)" --size 16M >/dev/null || fail "grow"
rm "$TMP/local"
ok map "$TMP/local" $((8 * MIB))
only_copy 16777216 8388608

# Made by itself, and of too little.
ctl create "$(pool r)" --size 4M >/dev/null || fail "create"
configure "$(pool r)"
ok set lanes 1
ok map "$TMP/other" $((8 * MIB))
refused REPL_E_INVAL "r' on the target has 4194304 bytes.*next: replctl grow $(pool r) --size 8388608," open
ctl grow "$(pool r)" --size 8388608 >/dev/null || fail "grow"
ok open
ok put 0 $MIB 3
ok persist 0 0 $MIB
ok compare 0
same
api close
stop_api

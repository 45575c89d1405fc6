# SPDX-License-Identifier: BSD-3-Clause
# A reopened replica catches up by what differs; one that is newer, diverged or a stranger is refused and left alone.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
file=$TMP/serve/pools/p
start_api
configure "$(pool p)"
ok set lanes 1
ok map "$TMP/p" $((8 * MIB))
ok put 0 $((8 * MIB)) 1
ok open 1
ok persist 0 0 100
ok close

# After a clean close: what changed meanwhile is copied.
ok put 5000000 10 2
ok open 0
equal "$TMP/p" "$file"

# A second writer is told who has it.
cp "$TMP/p" "$TMP/other"
second() {
	printf '%s\n' config "set identity $TMP/key" "set known-hosts $TMP/known_hosts" \
		"set target $(pool p)" "set lanes 1" "map $1 $((8 * MIB))" "${2:-put 0 1 1}" \
		"open 0" | timeout 20 "$API_SHELL" | tail -n 1
}
answer=$(second "$TMP/other")
[[ $answer == "REPL_E_BUSY "*"pid $(api_child)"* ]] || fail "no holder in: $answer"
answer=$(second "$TMP/p")
[[ $answer == "REPL_E_BUSY "*p.repl* ]] || fail "the local pool has two users: $answer"
ok put 0 64 3
ok persist 0 0 64

# After SIGKILL of the writer, with bytes that were never flushed.
ok put 1000000 3000000 4
ok flush 0 1000000 500000
kill -KILL "$(api_child)"
wait "$api_pid"
wait_for 20 no_sessions || fail "the session outlives its initiator"
start_api
configure "$(pool p)"
ok set lanes 1
ok map "$TMP/p" $((8 * MIB))
ok open 0
equal "$TMP/p" "$file"
ok close

# A fresh local file that nothing is known of.
cp "$file" "$TMP/kept"
answer=$(second "$TMP/fresh" "put 0 4096 9")
[[ $answer == "REPL_E_DIVERGED "*"nothing was changed"*replctl* ]] || fail "a fresh file: $answer"
equal "$TMP/kept" "$file"

# An equal file that nothing is known of is as good as the one.
answer=$(second "$TMP/other" "put 0 0 0")
cp "$TMP/kept" "$TMP/other2"
answer=$(second "$TMP/other2" "put 0 0 0")
[[ $answer == "REPL_OK "* ]] || fail "an equal file: $answer"

# The first file is now behind: the other one wrote last.
cp "$file" "$TMP/kept"
ok put 0 64 10
refused REPL_E_DIVERGED "newer" open 0
equal "$TMP/kept" "$file"

# Both went on, each without the other.
configure "$(pool q)"
ok open 1
ok close
configure "$(pool p)"
refused REPL_E_DIVERGED "diverged|newer" open 0
equal "$TMP/kept" "$file"

# A file of another lineage.
rm "$TMP/p.repl"
configure "$(pool r)"
ok open 1
ok close
configure "$(pool p)"
refused REPL_E_DIVERGED "no generation.*next: replctl verify FILE .*of another pool: choose another name" open 0
equal "$TMP/kept" "$file"
stop_api

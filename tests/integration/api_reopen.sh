# SPDX-License-Identifier: BSD-3-Clause
# A reopened replica catches up by what differs; one that is newer, diverged or a stranger is refused and left alone.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
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

# trusting POOL FLAGS: open its file so, with 2 by one who says that they are equal. There is no map to tell it.
trusting() {
	configure "$(pool "$1")"
	ok set after-crash compare
	ok map "$TMP/$1" $MIB
	ok open "$2"
}

# hurt POOL: its last session has stored at 8192 what the file has at 4096.
hurt() {
	dd if="$TMP/$1" of="$TMP/serve/pools/$1" bs=4096 skip=1 seek=2 count=1 conv=notrunc 2>/dev/null
}

configure "$(pool t)"
ok map "$TMP/t" $MIB
ok put 0 $MIB 1
ok open 1
ok close
# He is believed, and nothing is compared.
hurt t
trusting t 2
api compare 0
[ "$TEXT" = differs ] || fail "it was compared: $STATUS $TEXT"
ok close
trusting t 0
ok compare 0
same
ok close
# Not that one has all which was made just now.
ctl remove "$T/t" --force >/dev/null 2>"$TMP/err" || fail "remove: $(cat "$TMP/err")"
trusting t 3
ok compare 0
same
ok close
# Nor one that somebody has made, and nobody has written, though the file was.
ctl remove "$T/t" --force >/dev/null 2>"$TMP/err" || fail "remove: $(cat "$TMP/err")"
ctl create "$T/t" --size $MIB >/dev/null 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
trusting t 2
ok compare 0
same
ok close
# Nor one that is known to be behind: the file went on without it.
wait_for 20 no_sessions || fail "a session stays"
cp "$TMP/serve/pools/t" "$TMP/t.data"
cp "$TMP/serve/pools/t.repl" "$TMP/t.record"
trusting t 2
ok put 8192 4096 5
ok persist 0 8192 4096
ok close
wait_for 20 no_sessions || fail "a session stays"
cp "$TMP/t.data" "$TMP/serve/pools/t"
cp "$TMP/t.record" "$TMP/serve/pools/t.repl"
trusting t 2
ok compare 0
same
equal "$TMP/t" "$TMP/serve/pools/t"
ok close
# Nor one of which only its own record tells that it lacks something, as of a device there is no other: it is compared.
for state in inconsistent outdated; do
	wait_for 20 no_sessions || fail "a session stays"
	mark_pool t "$state"
	hurt t
	rm "$TMP/t.repl"
	refused REPL_E_DIVERGED "nothing is known.*nothing was changed" open 2
	ctl info --json "$T/t" | member state | grep -qx "$state" || lost "it is not $state: $(ctl info "$T/t")"
	cp "$TMP/t" "$TMP/serve/pools/t"
	ok open 2
	ok persist 0 0 64
	ok compare 0
	same
	ok close
done
stop_api

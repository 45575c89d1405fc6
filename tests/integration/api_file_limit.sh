# SPDX-License-Identifier: BSD-3-Clause
# A program that may write to no file any more (RLIMIT_FSIZE) is not ended by SIGXFSZ when a replica is lost: it goes on,
# the replica comes back, and closing says what could not be recorded. What it goes on with alone is on record as soon as
# that can be written.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
for after in compare dirty-map; do
	configure "$(pool $after)"
	ok set reconnect-max 500
	ok set after-crash $after
	ok map "$TMP/$after" $((4 * MIB))
	ok open 1
	ok put 0 $((4 * MIB)) 1
	ok persist 0 0 $((4 * MIB))
	prlimit --pid "$(api_child)" --fsize=0:
	# The call notices it, not the thread of the library.
	hurt kill
	ok put 0 4096 2
	ok persist 0 0 4096
	wait_for 30 established 0 || fail "the replica does not come back: $TEXT"
	ok put $((3 * MIB)) 4096 3
	ok persist 0 $((3 * MIB)) 4096
	ok compare 0
	same
	grep -q '^SigPnd:[^1-9a-f]*$' "/proc/$(api_child)/status" || fail "a signal is left"
	refused REPL_E_NOSPC "$after.repl: .*File too large" close
	equal "$TMP/$after" "$TMP/serve/pools/$after"
	prlimit --pid "$(api_child)" --fsize=unlimited:
	ok open
	ok compare 0
	same
	ok close
done

recorded() {
	! cmp -s "$TMP/alone.repl" "$TMP/before"
}

configure "$(pool alone)"
ok set reconnect-max 500
ok map "$TMP/alone" $MIB
ok open 1
prlimit --pid "$(api_child)" --fsize=0:
hurt serve
ok put 0 4096 1
ok persist 0 0 4096
cp "$TMP/alone.repl" "$TMP/before"
sleep 1
recorded && fail "it can be written all the same"
prlimit --pid "$(api_child)" --fsize=unlimited:
wait_for 20 recorded || fail "what it goes on with is not on record"
kill -KILL "$(api_child)"

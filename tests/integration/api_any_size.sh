# SPDX-License-Identifier: BSD-3-Clause
# A pool whose size is of no whole page: all of it goes to the replicas, by messages and by RMA, through a journal and by the dirty
# map, and nothing behind it. A set in files of whole pages takes none such.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
size=$((5 * MIB + 777))
start_api

# the_end N: the last bytes become those of N, and are durable.
the_end() {
	ok put $((size - 100)) 100 "$1"
	ok persist 0 $((size - 100)) 100
}

# By a question, too, so that what a target has in its ring is in the pool.
both_equal() {
	ok compare 0
	same
	ok compare 1
	same
	equal "$TMP/p" "$TMP/serve/pools/a"
	equal "$TMP/p" "$TMP/serve/pools/b"
}

back() {
	ok stat 1
	[ "$(field replication)" = 0 ]
}

configure "$(pool a)" "$(pool b)"
ok set lanes 2
ok map "$TMP/p" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
both_equal
the_end 2
both_equal
ok put $((size - 9)) 8 3
ok atomic8 0 $((size - 9))
both_equal
ok read 0 1 $((size - 4096)) 4096
same
refused REPL_E_INVAL "" persist 0 $((size - 1)) 2
refused REPL_E_INVAL "" read 0 0 $size 1
refused REPL_E_INVAL "" atomic8 0 $((size - 1))
[ "$(stat -c %s "$TMP/serve/pools/a")" -eq $size ] || fail "the replica's size"

# Brought back while the program goes on, then by who opens it next.
kill -KILL "$(session_of b)"
the_end 4
ok put $((size / 2)) 100000 4
ok persist 1 $((size / 2)) 100000
wait_for 20 back || fail "not back: $TEXT"
both_equal
ok close
ok set reconnect-min 60000
ok set reconnect-max 60000
ok open
kill -KILL "$(session_of b)"
the_end 5
ok close
ok open
the_end 6
ok compare 1
same
both_equal

# By as little as a byte, within the page and out of it.
for more in 1 3000 4096 12345; do
	size=$((size + more))
	ok extend $size
	ok grow $size
	the_end $more
	both_equal
done
ok compare 0
same
ok close
ok open
both_equal
ok close

# Beside others in the files of a set.
printf 'PMEMPOOLSET\nOPTION NOHDRS\n8M part0\n' >"$TMP/serve/pools/set"
chmod 644 "$TMP/serve/pools/set"
configure "$(pool set)"
ok map "$TMP/q" $size
refused REPL_E_INVAL "not a positive multiple of 4096" open 1

# Nor does one that lies in them become one, nor is that taken for a disk that is full: the program learns it.
ok map "$TMP/r" $((5 * MIB))
ok open 1
ok close
ok open
ok extend $((5 * MIB + 777))
refused REPL_E_INVAL "not a multiple of 4096" grow $((5 * MIB + 777))
ok put $MIB $MIB 7
ok persist 0 $MIB $MIB
ok read 0 0 0 $((5 * MIB))
same
ok close
refused REPL_E_INVAL "not a multiple of 4096" open

# Beside another one, which takes it while the set is away, the set alone is left out of what is opened.
ctl remove --force "$(pool set)" >/dev/null || fail "remove"
configure "$(pool d)" "$(pool set)"
ok map "$TMP/t" $((5 * MIB))
ok open 1
kill -KILL "$(session_of part0)"
ok extend $((5 * MIB + 777))
ok grow $((5 * MIB + 777))
ok put $((5 * MIB + 700)) 77 8
ok persist 0 $((5 * MIB + 700)) 77
ok close
ok open
ok stat 1
[ "$(field replication)" != 0 ] || fail "a set has got part of a page"
ctl status --json "$TMP/t" >"$TMP/out"
grep -q '"reason": *"size"' "$TMP/out" || fail "why it is not there: $(cat "$TMP/out")"
ok compare 0
same
ok extend $((5 * MIB + 4096))
ok grow $((5 * MIB + 4096))
ctl resume "$TMP/t" >/dev/null || fail "resume"
wait_for 20 back || fail "not back: $TEXT"
ok compare 1
same
ok close
equal "$TMP/t" "$TMP/serve/pools/d"

# A growth that the file has not made, though the page is there.
configure "$(pool c)"
ok map "$TMP/s" 5000
ok open 1
refused REPL_E_INVAL "5000 bytes: make it 6000 bytes long first" grow 6000
ok extend 6000
ok grow 6000
ok close
ok open
ok put 5990 10 1
ok persist 0 5990 10
ok close

# Nor is a range opened of which the file has not all.
truncate -s 8192 "$TMP/s"
ok map "$TMP/s" 8192
truncate -s 6000 "$TMP/s"
refused REPL_E_INVAL "has 6000 bytes, and a range of 8192" open
equal "$TMP/s" "$TMP/serve/pools/c"

# SPDX-License-Identifier: BSD-3-Clause
# Appends of several threads get places without gap or overlap, the same on every replica, and one
# that does not fit changes nothing.
. "$(dirname "$0")/api_lib.sh"

LIMIT=$((1 * MIB))

# records LEN COUNT FILE: all of the area are whole records, each so often as it was appended.
records() {
	python3 - "$@" <<'EOF'
import sys
size, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
data = open(path, 'rb').read()
tail = int.from_bytes(data[64:72], 'little')
assert tail == 4096 + 4 * count * size, tail
seen = {}
for at in range(4096, tail, size):
    record = data[at:at + size]
    assert record == record[:1] * size, 'mixed record at %d' % at
    seen[record[0]] = seen.get(record[0], 0) + 1
want = {}
for lane in range(4):
    for i in range(count):
        want[lane * 64 + i % 64] = want.get(lane * 64 + i % 64, 0) + 1
assert seen == want
assert not any(data[tail:1 << 20])
EOF
}

make_keys
start_serve
start_api
for replicas in 1 2; do
	if [ "$replicas" -eq 1 ]; then
		configure "$(pool r1-a)"
	else
		configure "$(pool r2-a)" "$(pool r2-b)"
	fi
	ok set lanes 4
	ok map "$TMP/local$replicas" $((2 * MIB))
	ok open 1
	ok tail 64 4096
	ok persist 0 64 8
	ok append 0 64 $LIMIT 100 7
	[ "$TEXT" = 4096 ] || fail "place $TEXT"
	ok append 1 64 $LIMIT 1000 8
	[ "$TEXT" = 4196 ] || fail "place $TEXT"
	ok stat 0
	is drain 3
	is histogram 3
	ok tail 64
	[ "$TEXT" = 5196 ] || fail "tail $TEXT"
	ok compare 0
	same
	ok tail 64 4096
	ok put 4096 0 0
	ok persist 0 64 8
	ok appenders 4 100 64 $LIMIT 200
	ok compare 0
	same
	records 200 100 "$TMP/local$replicas" || lost "records of $replicas replicas"
	equal "$TMP/local$replicas" "$TMP/serve/pools/r$replicas-a"
	[ "$replicas" -eq 1 ] || equal "$TMP/local2" "$TMP/serve/pools/r2-b"

	# Up to the limit and not beyond: all is as it was, and the lane goes on.
	ok tail 64 $((LIMIT - 100))
	ok persist 0 64 8
	refused REPL_E_NOSPC "101 bytes at 1048476" append 0 64 $LIMIT 101 1
	ok append 0 64 $LIMIT 100 1
	refused REPL_E_NOSPC "" append 0 64 $LIMIT 1 1
	refused REPL_E_INVAL "beyond the pool" append 0 64 $((2 * MIB + 1)) 1 1
	refused REPL_E_INVAL "multiple of 8" append 0 60 $LIMIT 1 1
	refused REPL_E_INVAL "outside the pool" append 0 $((2 * MIB)) $LIMIT 1 1
	refused REPL_E_INVAL "nothing to append" append 0 64 $LIMIT 0 1
	refused REPL_E_INVAL "too many for one append" append 0 64 $((2 * MIB)) 200000 1
	ok tail 64 60
	ok persist 0 64 8
	refused REPL_E_INVAL "over their tail word" append 0 64 $LIMIT 5 1
	ok tail 64 18446744073709551615
	ok persist 0 64 8
	refused REPL_E_CORRUPT "tail word at 64" append 0 64 $LIMIT 5 1
	ok stat 0
	is connection 0
	ok compare 0
	same
	ok close
done

# On lanes of a receive ring the local tail word chooses.
if [ "$(stat -f -c %T "$TMP")" = tmpfs ]; then
	configure "$(pool ring)"
	ok set lanes 4
	ok set method deposit
	ok map "$TMP/ring" $((2 * MIB))
	ok open 1
	ok tail 64 4096
	ok persist 0 64 8
	ok appenders 4 100 64 $LIMIT 200
	records 200 100 "$TMP/ring" || lost "records by deposits"
	ok extend $((3 * MIB))
	ok grow $((3 * MIB))
	ok put $((2 * MIB)) $MIB 3
	ok persist 1 $((2 * MIB)) $MIB
	ok compare 0
	same
	ok close
	equal "$TMP/ring" "$TMP/serve/pools/ring"
fi
stop_api

# A tail word that was not made durable: the replica chooses another place, is lost for that, and what it has put there is
# not there any more when it is back.
start_api
configure "$(pool astray)"
ok set reconnect-min 50
ok map "$TMP/astray" $((2 * MIB))
ok put 0 8192 3
ok tail 65536 0
ok open 1
ok tail 65536 16384
ok append 0 65536 $LIMIT 100 7
api stat 0
is error 1
wait_for 20 established 0 || fail "it does not come back: $TEXT"
ok compare 0
same
ok close

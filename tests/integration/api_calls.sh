# SPDX-License-Identifier: BSD-3-Clause
# Each call of the persistence API does what librepl.h says and counts it; a drain of 16 ranges is one message.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
configure "$(pool p)"
ok set lanes 8
ok map "$TMP/p" $((8 * MIB))
ok open 1
ok lanes
[ "$TEXT" = 8 ] || fail "$TEXT lanes"
ok replicas
[ "$TEXT" = 1 ] || fail "$TEXT replicas"

# differs OFF LEN, holds OFF LEN: the target's file at that place.
holds() {
	cmp -s -n "$2" "$TMP/p" "$TMP/serve/pools/p" -i "$1"
}

messages() {
	api stat 0
	field message
}

# 16 ranges apart from each other, in one message.
before=$(messages)
for i in $(seq 16); do
	ok put $((i * 8192)) 104 "$i"
	ok flush 0 $((i * 8192)) 104
done
ok drain 0
[ $(($(messages) - before)) -eq 1 ] || fail "$(($(messages) - before)) messages for one drain"
ok stat 0
is flush 16
is merged 0
is drain 1
is histogram 1
is byte 1664
for i in $(seq 16); do
	holds $((i * 8192)) 104 || lost "range $i is not there after the drain"
done

# The same by RMA: large ranges are written; a message makes them durable, or a read does.
before=$(messages)
for i in $(seq 0 15); do
	ok put $((i * 131072)) 65536 "$i"
	ok flush 1 $((i * 131072)) 65536
done
ok drain 1
[ $(($(messages) - before)) -le 1 ] || fail "$(($(messages) - before)) messages for large ranges"
for i in $(seq 0 15); do
	holds $((i * 131072)) 65536 || lost "large range $i is not there after the drain"
done

# Adjacent, overlapping and equal ranges are merged: ten become one.
ok stat 0
merged=$(field merged)
bytes=$(field byte)
ok put 0 1000 7
for i in $(seq 0 9); do
	ok flush 2 $((i * 90)) 100
done
ok drain 2
ok stat 0
[ $(($(field merged) - merged)) -eq 9 ] || fail "$(($(field merged) - merged)) merged, not 9"
[ $(($(field byte) - bytes)) -eq 912 ] || fail "$(($(field byte) - bytes)) bytes, not 912"
holds 0 910 || lost "merged ranges"

# More ranges than a lane notes.
ok put 0 $((2 * MIB)) 8
for i in $(seq 0 299); do
	ok flush 3 $((i * 4096)) 3
done
ok drain 3
for i in 0 1 127 128 129 298 299; do
	holds $((i * 4096)) 3 || lost "range $i of 300"
done

# Persist, atomic8, pair; with nothing to do, too.
ok put 0 $((8 * MIB)) 9
ok persist 4 4194301 3145731
holds 4194301 3145731 || lost "persist"
ok persist 4 0 0
ok drain 4
ok drain 4
ok flush 4 64 64
ok atomic8 4 8
holds 8 8 || lost "atomic8"
holds 64 64 || lost "what was flushed before atomic8"
ok pair 5 1000 10 2000 10
holds 1000 10 && holds 2000 10 || lost "small pair"
ok pair 5 1048576 1048576 3 40
holds 1048576 1048576 && holds 3 40 || lost "large pair"
ok pair 5 2097153 5 1 1
ok put 300000 100 1
ok read 6 0 300000 100
[ "$TEXT" = differs ] || fail "repl_read did not read from the replica"
ok persist 6 300000 100
ok read 6 0 300000 100
same
ok read 6 0 8388608 0
same
ok persist 7 0 $((8 * MIB))
ok compare 0
same

ok profile 0
for word in granularity durability-class "method for 64 bytes = message" "method for 1048576"; do
	[[ $TEXT == *$word* ]] || fail "no '$word' in the profile: $TEXT"
done
ok stat 0
is connection 0
is replication 0
is data 0
is error 0
is missed 0
ok close
stop_api
equal "$TMP/p" "$TMP/serve/pools/p"

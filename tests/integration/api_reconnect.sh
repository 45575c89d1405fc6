# SPDX-License-Identifier: BSD-3-Clause
# A target daemon that is killed and started again gets its replica back by itself, by copying what it has
# missed and no more, while the program writes on.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
size=$((32 * MIB + 777))
configure "$(pool p)"
ok set lanes 4
ok set reconnect-max 500
ok set op-timeout 5000
ok map "$TMP/p" $size
ok open 1
ok put 0 $size 1
ok persist 0 0 $size
ok stat 0
before=$(field byte)

back_while_writing() {
	written=$((written + 1))
	ok put $((written % 64 * 4096)) 4096 $written
	ok persist 2 $((written % 64 * 4096)) 4096
	established 0
}
written=0

# Nothing is heard of it for a while; what is written then is the difference.
port=$SERVE_PORT
hurt serve
wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
for at in 1 2 3 4 5 6 7 8; do
	ok put $((at * 3 * MIB)) 65536 $((at + 1))
	ok persist 0 $((at * 3 * MIB)) 65536
	within $PROMPT
done
# Flushed, and not drained until the replica is back.
ok put $((20 * MIB)) 4096 77
ok flush 1 $((20 * MIB)) 4096
heal_at "$port"
wait_for 20 back_while_writing || fail "the replica does not come back: $TEXT"
ok stat 0
is data 0
is connection 0
is error 1
[[ $TEXT == *"reason=" ]] || fail "a reason is left: $TEXT"
ok drain 1
ok compare 0
same
ok stat 0
moved=$(($(field byte) - before))
echo "moved $moved bytes of $size"
[ "$moved" -gt 524288 ] && [ "$moved" -lt $((size / 2)) ] || fail "$moved bytes were moved"
ok put 0 $MIB 99
ok persist 0 0 $MIB
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

# Under load, several times.
ok open 0
ok load 4 $((8 * MIB))
for again in 1 2 3; do
	hurt kill
	wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
	wait_for 30 established 0 || fail "the replica does not come back under load: $TEXT"
done
ok unload
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"

# With on-loss = fail calls fail as long as it is away, and no longer.
ok set on-loss fail
ok open 0
hurt kill
wait_for 20 degraded 0 || fail "the loss is not noticed: $TEXT"
wait_for 20 works || fail "calls fail though the replica could be back: $TEXT"
ok stat 0
is replication 0
ok put 0 $MIB 5
ok persist 0 0 $MIB
ok compare 0
same
ok close
equal "$TMP/p" "$TMP/serve/pools/p"
stop_api

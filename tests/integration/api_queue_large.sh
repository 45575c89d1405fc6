# SPDX-License-Identifier: BSD-3-Clause
# A drain of much more than queues may hold goes through with ack = quorum and any in bounded memory; one that
# its deadline is too short for returns by it, with an error that says what to do, and all replicas come back.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api
SIZE=$((256 * MIB))
! sanitized || SIZE=$((64 * MIB))

# KiB of memory beside the pool's own.
resident() {
	sed -n 's/^RssAnon:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$(api_child)/status"
}
# The most while a call goes on, into $TMP/most, until $TMP/busy is gone.
watch_memory() {
	local now most=0

	while [ -e "$TMP/busy" ]; do
		now=$(resident)
		[ "${now:-0}" -le "$most" ] || most=$now
		echo "$most" >"$TMP/most"
		sleep 0.02
	done
}
all_are_back() {
	local i

	for i in 0 1 2; do
		api stat "$i"
		[ "$(field replication)" = 0 ] || return 1
	done
}

for ack in quorum any; do
	configure "$(pool a)" "$(pool b)" "$(pool c)"
	ok set ack "$ack"
	ok set on-loss fail
	ok set op-timeout 25000
	ok set close-timeout 25000
	ok set heartbeat-timeout 10000
	ok set async-lag-bytes 32M
	ok map "$TMP/p" "$SIZE"
	[ "$ack" = any ] || ok put 0 "$SIZE" 1
	ok open 1
	ok put 0 "$SIZE" 2
	: >"$TMP/busy"
	watch_memory &
	ok persist 0 0 "$SIZE"
	rm "$TMP/busy"
	wait $!
	# The queue's bound, what is on its way to three replicas, and the lanes' buffers.
	sanitized || [ "$(cat "$TMP/most")" -le $((160 * 1024)) ] || fail "$ack: $(cat "$TMP/most") KiB"
	ok close
	for i in a b c; do
		equal "$TMP/p" "$TMP/serve/pools/$i"
	done
done

# Two of three stand still: no time suffices for all of it.
configure "$(pool a)" "$(pool b)" "$(pool c)"
ok set ack quorum
ok set on-loss fail
ok set close-timeout 25000
ok set heartbeat-timeout 10000
ok set reconnect-max 500
ok set async-lag-bytes 32M
ok set op-timeout 3000
ok open 1
ok put 0 "$SIZE" 3
b=$(session_of b)
c=$(session_of c)
signalled STOP "$b" "$c"
refused REPL_E_LOST "of 3 replicas are left, a drain needs 2" persist 0 0 "$SIZE"
within $((3000 + LATE))
ok stat 1
[[ $TEXT =~ "raise op-timeout" ]] || fail "no next step: $TEXT"
signalled KILL "$b" "$c"
ok put 0 64 4
wait_for 60 all_are_back || fail "not all are back: $TEXT"
wait_for 10 works || fail "$STATUS $TEXT"
ok close
for i in a b c; do
	equal "$TMP/p" "$TMP/serve/pools/$i"
done
stop_api

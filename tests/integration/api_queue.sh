# SPDX-License-Identifier: BSD-3-Clause
# With ack = quorum, any, or all and an asynchronous replica, each call returns by its deadline and all replicas are equal and up to date after a clean close.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
start_api

# Of everything that persists something.
work() {
	ok persist 0 1000 500000
	ok flush 1 501000 100
	ok flush 1 600000 1401000
	ok drain 1
	ok put 501100 98900 3
	ok pair 2 501100 98000 599100 900
	ok put 3999992 8 4
	ok atomic8 3 3999992
	# More ranges than a lane notes.
	for i in $(seq 150); do
		ok flush 0 $((2000000 + i * 4096)) 64
	done
	ok put 3000000 100 "$1"
	ok flush 1 3000000 10
	ok flush 2 3000010 90
	ok commit 3
	# A slice a megabyte.
	ok put 0 $((4 * MIB - 4096)) "$1"
	ok tail $((4 * MIB - 4096)) $((3 * MIB))
	ok persist 1 0 $((4 * MIB))
	ok append 2 $((4 * MIB - 4096)) $((4 * MIB - 8192)) 5000 7
	[ "$TEXT" = $((3 * MIB)) ] || fail "appended at $TEXT"
	ok append 0 $((4 * MIB - 4096)) $((4 * MIB - 8192)) 100 8
	[ "$TEXT" = $((3 * MIB + 5000)) ] || fail "appended at $TEXT"
}

for ack in quorum any all; do
	configure "$(pool $ack-a)" "$(pool $ack-b)" "$(pool $ack-c)"
	ok set ack $ack
	[ $ack = any ] || ok set async-target "$(pool $ack-d)"
	ok map "$TMP/p-$ack" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	ok open 1
	ok put 1000 2000000 2
	work 5
	ok replicas
	last=$((TEXT - 1))
	for i in $(seq 0 $last); do
		ok stat "$i"
		is replication 0
	done
	ok close
	for pool in a b c d; do
		file=$TMP/serve/pools/$ack-$pool
		[ -e "$file" ] || continue
		equal "$TMP/p-$ack" "$file"
		ctl info "$(pool "$ack-$pool")" >"$TMP/info"
		grep -q "^state *up-to-date" "$TMP/info" || fail "$ack-$pool: $(cat "$TMP/info")"
	done
done
stop_api

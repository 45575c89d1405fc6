# SPDX-License-Identifier: BSD-3-Clause
# A sparse pool on a target whose disk is full: its replica is lost with a reason that says so, stays the copy that
# it was, and comes back when there is room.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/api_lib.sh"

pools=$TMP/serve/pools

# leave BYTES: so much of the disk is free.
leave() {
	rm -f "$pools"/.filler
	fallocate -l $(($(df --output=avail -B1 "$pools" | tail -n 1) - $1)) "$pools/.filler"
}

member_of() {
	ctl --json info "$(pool p)" >"$TMP/info" || fail "info"
	member "$1" <"$TMP/info" 2>/dev/null
}

full() {
	api stat 0
	[[ $TEXT == *"space is left"* || $TEXT == *"are free"* ]]
}

# For a few tries to get it back.
still_a_copy() {
	for _ in 1 2 3; do
		state=$(member_of state)
		[ "$state" = outdated ] || [ "$state" = unknown ] || fail "$1: $state"
		[ -z "$(member_of journal | grep committed)" ] || fail "$1: stuck with a journal"
		sleep 0.1
	done
	wait_for 10 full || fail "$1: not told: $TEXT"
}

# What journals have left is given back.
settled() {
	[ "$(stat -c %b "$pools/p.repl")" -le 16 ]
}

room() {
	rm -f "$pools"/.filler
	wait_for 20 established 0 || fail "$1: not back: $TEXT"
	wait_for 10 settled || fail "$1: the sidecar keeps $(stat -c %b "$pools/p.repl") blocks"
}

make_keys
start_serve
mount -t tmpfs -o size=32m,mode=0700,uid="$(id -u "$SERVE_USER")" tmpfs "$pools" || exit 77
trap 'code=$?; umount -l "$pools"; (exit $code); cleanup' EXIT
start_api
configure "$(pool p)"
ok set reconnect-max 200
ok set lanes 2
ok map "$TMP/local" $((24 * MIB))
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB

# A large range goes by RMA, a small one in a message; neither finds a page.
for len in 262144 64; do
	leave 0
	at=$((16 * MIB - len * 16))
	ok put $at $len 2
	ok persist 0 $at $len
	still_a_copy "$len bytes"
	room "$len bytes"
done

# Room for what it misses, and not for that twice: in the journal and in the pool.
leave 0
hurt kill
ok put $((8 * MIB)) $((4 * MIB)) 3
ok persist 0 $((8 * MIB)) $((4 * MIB))
leave $((6 * MIB))
still_a_copy "a journal"
room "a journal"
ok close
equal "$TMP/local" "$pools/p"

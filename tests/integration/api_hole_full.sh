# SPDX-License-Identifier: BSD-3-Clause
# On tmpfs to look at a hole of a mapped file takes space, and is a SIGBUS where there is none. Neither a program
# that compares its pool there, nor replctl, dies of what it has never written to.
. "$(dirname "$0")/full_lib.sh"

start_on_disk tmpfs 64m
here=$TMP/here
mkdir "$here"
mount -t tmpfs -o size=4m tmpfs "$here" || exit 77
trap 'code=$?; umount -l "$here"; umount -l "$pools"; (exit $code); cleanup' EXIT

again() {
	start_api
	configure "$(pool p)"
	ok set lanes 2
	ok map "$here/local" $((24 * MIB))
}

crash() {
	local pid

	pid=$(api_child)
	signalled KILL "$pid"
	wait "$api_pid" 2>/dev/null
	wait_for 20 no_sessions || fail "a session stays"
}

fill() {
	dd if=/dev/zero of="$here/filler" bs=4k 2>/dev/null
}

stop_api
again
ok open 5
for at in 1 3; do
	ok put $((at * MIB)) 4096 1
	ok persist 0 $((at * MIB)) 4096
done
blocks=$(stat -c %b "$here/local")

# What is equal is found so without taking any.
crash
fill
again
ok open 4
ok put $MIB 4096 2
ok persist 0 $MIB 4096
[ "$(stat -c %b "$here/local")" -eq "$blocks" ] || fail "holes were filled"

# Nor where it is compared since it was lost, by a program whose main() has left meanwhile.
ok set reconnect-max 500
ok close
ok open 4
ok leave
fill
hurt kill
ok put $MIB 4096 3
ok persist 0 $MIB 4096
wait_for 20 established 0 || fail "it does not come back: $TEXT"
[ "$(stat -c %b "$here/local")" -eq "$blocks" ] || fail "holes were filled by who has no main()"

# Nor does a block that differs, among holes.
ok put $((3 * MIB)) 4096 2
crash
again
ok open 4
[ "$(stat -c %b "$here/local")" -eq "$blocks" ] || fail "holes were filled around what differs"

# What is a hole here and none there would have to be looked at: that is told.
crash
fallocate -p -o $((3 * MIB)) -l 4096 "$here/local"
fill
again
api open 4
api stat 0
[[ $TEXT == *"of the local pool is full"* ]] || fail "open: $STATUS $TEXT"
api close
stop_api
ctl verify "$here/local" "$(pool p)" >"$TMP/out" 2>&1
[ $? -lt 128 ] || fail "verify: $(cat "$TMP/out")"
grep -q "of the local pool is full" "$TMP/out" || fail "verify: $(cat "$TMP/out")"

# Whoever reads the file instead takes none.
blocks=$(stat -c %b "$here/local")
ctl sync "$here/local" "$(pool p)" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
[ "$(stat -c %b "$here/local")" -eq "$blocks" ] || fail "sync has filled holes"
equal "$here/local" "$pools/p"
rm "$here/filler"
again
ok open 4
ok close
equal "$here/local" "$pools/p"

# Of what is opened, and of what it grows by, the first byte and the last one are looked at: holes, too.
stop_api
fallocate -p -o 0 -l 4096 "$here/local"
fallocate -p -o $((24 * MIB - 4096)) -l 4096 "$here/local"
fill
# By its bytes alone, where a lock of the program's keeps its file from being looked at.
again
ok lock
refused REPL_E_IO "byte 0 of the local pool can't be read" open 4
stop_api
again
ok open 4
ok extend $((28 * MIB))
ok grow $((28 * MIB))
ok close
rm "$here/filler"
equal "$here/local" "$pools/p"

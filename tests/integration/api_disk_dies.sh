# SPDX-License-Identifier: BSD-3-Clause
# The file system below a target's pools is shut down, as one is whose disk dies: the program goes on, is told why, and
# its replica comes back when the file system does.
. "$(dirname "$0")/full_lib.sh"

why_io() {
	ctl why "$TMP/local" | grep -q '^reason *target-io:'
}

KIND=${KIND:-ext4}
case $KIND in ext4) start_on_disk ext4 64m ;; *) start_on_disk "$KIND" 320m ;; esac
configure "$(pool p)"
ok set reconnect-max 200
ok set lanes 2
ok map "$TMP/local" $((4 * MIB))
ok open 5
ok put 0 $MIB 1
ok persist 0 0 $MIB
shut_down
for i in 2 3; do
	ok put $((i * MIB)) $MIB $i
	ok persist 0 $((i * MIB)) $MIB
done
sleep 1 # and has been tried again
! ctl list "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/list" 2>&1 || [ "$KIND" = ext4 ] || fail "list: $(cat "$TMP/list")"
! grep "configuration" "$TMP/list" || fail "it is no mistake in the configuration"
why_io || fail "the reason: $(ctl why "$TMP/local")"
mount_again
back "the disk"
ok close
equal "$TMP/local" "$pools/p"

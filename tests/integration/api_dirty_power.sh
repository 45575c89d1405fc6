# SPDX-License-Identifier: BSD-3-Clause
# With after-crash = dirty-map no power cut leaves the replica with what the local file has lost, though nobody has synced that:
# neither behind a close in order, nor when the activity log speaks of it no more. A close in order syncs it in any case.
. "$(dirname "$0")/cut_lib.sh"

# again: the pool is opened as the disk has it, and the replica equals it without a comparison.
again() {
	begin $((16 * MIB))
	ok compare 0
	same
}

off_the_log() {
	! cmp -s "$file.repl" "$TMP/log"
}

OP_TIMEOUT=3000
settings="after-crash dirty-map"
own_disk 96M
head -c $((16 * MIB)) /dev/urandom >"$file"
sync "$file"

begin $((16 * MIB)) 1
ok put 0 $((8 * MIB)) 1
ok persist 0 0 $((8 * MIB))
ok close
stop_api
disk_cut
again

# An extent that is idle is taken off, and FILE.repl is written for that alone.
ok put $((8 * MIB)) $MIB 2
ok persist 0 $((8 * MIB)) $MIB
cp "$file.repl" "$TMP/log"
wait_for 60 off_the_log || fail "an idle extent stays in the log"
power_cut
again
ok close
stop_api

# With after-crash = compare, too: what is recorded as closed in order replctl sync believes to have all.
settings="after-crash compare"
begin $((16 * MIB))
ok put 0 $((8 * MIB)) 3
ok persist 0 0 $((8 * MIB))
ok close
stop_api
cp "$TMP/serve/pools/p" "$TMP/kept"
disk_cut
equal "$file" "$TMP/kept"
ctl sync "$file" "$(pool p)" >"$TMP/sync.log" 2>&1 || fail "sync: $(cat "$TMP/sync.log")"
equal "$TMP/kept" "$TMP/serve/pools/p"

# SPDX-License-Identifier: BSD-3-Clause
# A restore that fills the disk leaves the file that it was to replace as it is, says what is wanting, and goes on where
# it ended when there is room.
. "$(dirname "$0")/full_lib.sh"

start_on_disk tmpfs 64m
stop_api
here=$TMP/here
mkdir "$here"
mount -t tmpfs -o size=8m tmpfs "$here" || exit 77
trap 'code=$?; umount -l "$here"; umount -l "$pools"; (exit $code); cleanup' EXIT

dd if=/dev/urandom of="$TMP/source" bs=1M count=16 status=none
ctl create --sparse --from "$TMP/source" "$(pool p)" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
echo precious >"$here/file"
ctl_fails 1 "No space left" restore --force "$(pool p)" "$here/file"
grep -q "^next: make room there, then replctl restore " "$TMP/err" || fail "$(cat "$TMP/err")"
[ "$(cat "$here/file")" = precious ] || fail "the file was replaced"
mount -o remount,size=32m "$here"
ctl restore --force "$(pool p)" "$here/file" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
grep -q "moved 16.0 MiB" "$TMP/out" && fail "it began anew: $(cat "$TMP/out")"
equal "$TMP/source" "$here/file"

# What does not fit at all is not begun.
ctl create --size 24M "$(pool d)" >"$TMP/out" || fail "create: $(cat "$TMP/out")"
ctl_fails 1 "24\.0 MiB .* wanted" restore --force "$(pool d)" "$here/other"
grep -q "^next: make room there, then repeat the command" "$TMP/err" || fail "$(cat "$TMP/err")"

# Nor is a record of what was copied from here, and that is not the target's disk.
head -c 65536 /dev/urandom >"$here/mine"
dd if=/dev/zero of="$here/filler" bs=4k status=none 2>/dev/null
ctl_fails 1 "mine.repl.*No space left" sync "$here/mine" "$(pool m)"
grep -q "^next: make room beside the file, then replctl sync $here/mine " "$TMP/err" || fail "$(cat "$TMP/err")"
rm "$here/filler"
ctl sync "$here/mine" "$(pool m)" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
equal "$here/mine" "$pools/m"

# free BYTES: so much of it is free.
free() {
	rm -f "$here/filler"
	dd if=/dev/zero of="$here/filler" bs=4k status=none 2>/dev/null
	truncate -s -"$1" "$here/filler"
}

# The record that a file has not had takes its room before anything is copied, not when it fits no more.
size=65536 record=8192
echo precious >"$here/bare"
free $((size + record - 4096))
ctl_fails 1 "64\.0 KiB .* wanted" restore --force "$(pool m)" "$here/bare"
grep -q "^next: make room there, then repeat the command" "$TMP/err" || fail "$(cat "$TMP/err")"
free 4096
ctl_fails 1 "bare\.repl: .*No space left" restore --force "$(pool m)" "$here/bare"
grep -q "^next: make room there, then repeat the command" "$TMP/err" || fail "$(cat "$TMP/err")"
[ "$(cat "$here/bare")" = precious ] || lost "the file was replaced"
[ "$(ls "$here"/bare*)" = "$here/bare" ] || fail "it leaves $(ls "$here"/bare*)"
free $((size + record))
ctl restore --force "$(pool m)" "$here/bare" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
equal "$here/bare" "$pools/m"

# One without a bound of its own tells of no blocks, and is not full.
umount -l "$here" && mount -t tmpfs -o size=0 tmpfs "$here" || fail "it is not mounted"
ctl restore --force "$(pool m)" "$here/other" >"$TMP/out" 2>&1 || fail "without a bound: $(cat "$TMP/out")"
equal "$here/other" "$pools/m"

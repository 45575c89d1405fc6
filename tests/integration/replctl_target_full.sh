# SPDX-License-Identifier: BSD-3-Clause
# A target whose file system has neither a block nor an inode left: its pools are told of, compared, restored, written,
# promoted, whoever writes to them, and removed all the same.
. "$(dirname "$0")/full_lib.sh"

start_on_disk tmpfs 64m
stop_api
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
dd if=/dev/urandom of="$TMP/source" bs=1M count=4 status=none
for pool in p q; do
	ctl create --from "$TMP/source" "$T/$pool" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
done
leave 0
mount -o remount,nr_inodes=64 "$pools" || exit 77
for i in $(seq 64); do
	: >"$pools/.more$i" || break
done 2>/dev/null
[ "$(df --output=iavail,avail "$pools" | tail -n 1 | tr -d ' ')" = 00 ] || fail "there is room: $(df -i "$pools")"

ctl list "$T" | grep -q '^q .*up-to-date' || fail "list"
ctl info "$T/p" | grep -q '^state *up-to-date' || fail "info"
ctl status "$T" >/dev/null || fail "status"
ctl verify "$TMP/source" "$T/p" >/dev/null || lost "verify"
ctl restore "$T/p" "$TMP/restored" >"$TMP/out" 2>&1 || fail "restore: $(cat "$TMP/out")"
equal "$TMP/source" "$TMP/restored"
printf 'other' | dd of="$TMP/source" conv=notrunc status=none
ctl sync --force "$TMP/source" "$T/p" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
equal "$TMP/source" "$pools/p"
ctl_fails 1 "No space left" create "$T/r" --size 4M
grep -q "^next: make room in the target's pool directory" "$TMP/err" || fail "$(cat "$TMP/err")"
hold p write
ctl_fails 4 "open for writing by holder" promote "$T/p"
ctl promote --force "$T/p" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
[ "$(ctl info --json "$T/p" | member primary)" = True ] || fail "no primary"
ctl remove --force "$T/q" >/dev/null || fail "remove"
[ ! -e "$pools/q" ] || fail "it is still there"
rm -f "$pools"/.more*

# A sync that finds no space names first what is wanting.
dd if=/dev/urandom of="$TMP/large" bs=1M count=8 status=none
ctl create "$T/s" --size 8M --sparse >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
ctl_fails 1 "no space left" sync "$TMP/large" "$T/s"
grep -q "^next: make room in the target's pool directory, then replctl sync $TMP/large $T/s " "$TMP/err" ||
	fail "$(cat "$TMP/err")"

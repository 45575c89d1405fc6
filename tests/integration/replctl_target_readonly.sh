# SPDX-License-Identifier: BSD-3-Clause
# A target whose file system has become read-only, as one does whose disk fails: its pools are told of, verified and
# restored all the same, whether a session has been there before or not; what would write is refused.
. "$(dirname "$0")/full_lib.sh"

start_on_disk ext4 64m
stop_api
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
dd if=/dev/urandom of="$TMP/source" bs=1M count=4 status=none

look() {
	mount -o remount,ro "$pools" || exit 77
	rm -f "$TMP/restored"*
	ctl list "$T" | grep -q '^p .*up-to-date' || fail "$1: list"
	ctl info "$T/p" | grep -q '^state *up-to-date' || fail "$1: info"
	ctl status "$T" >/dev/null || fail "$1: status"
	ctl verify "$TMP/source" "$T/p" >/dev/null || lost "$1: verify"
	ctl restore "$T/p" "$TMP/restored" >"$TMP/out" 2>&1 || fail "$1: restore: $(cat "$TMP/out")"
	equal "$TMP/source" "$TMP/restored"
	ctl_fails 1 "Read-only file system" remove --force "$T/p"
	ctl_fails 1 "Read-only file system" create "$T/q" --size 4M
	mount -o remount,rw "$pools" || fail "remount"
}

ctl create --from "$TMP/source" "$T/p" >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
look "a target in use"
rm -r "$pools/.repld"
look "a copy of its directory"

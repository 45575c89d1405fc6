# SPDX-License-Identifier: BSD-3-Clause
# A pool set whose parts would be on two file systems is not made, nor does one in directories grow onto another: all
# that was there stays, and can be opened.
if [ -z "${SET_MOUNTS-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || {
		echo "needs a mount namespace of its own"
		exit 77
	}
	SET_MOUNTS=1 exec unshare -m --propagation private bash "$0"
fi
. "$(dirname "$0")/fault.sh"

pools=$TMP/serve/pools
mkdir -p "$pools/e"
chmod 700 "$pools" "$pools/e"
start_target
mount -t tmpfs -o size=64M,mode=0777 none "$pools/e" || exit 77
T=$target
mkdir "$pools/d"
chmod 777 "$pools/d"

set_file() {
	printf 'PMEMPOOLSET\nOPTION NOHDRS\n%s\n%s\n' "$@" >"$pools/s"
	chmod 644 "$pools/s"
}

# Nothing of what is refused stays.
set_file "2M p" "2M e/q"
ctl_fails 4 "parts 'p' and 'e/q' would be on different file systems" create "$T/s" --size 4M
find "$pools" | grep -E 's\.repl|/p$|/q$|\.tmp' && fail "what was refused stays"

set_file "8M d" "8M e"
ctl create "$T/s" --size 4M >/dev/null || fail "create"
ctl_fails 4 "would be on different file systems" grow "$T/s" --size 6M
[ -e "$pools/e/000001.pmem" ] && fail "it has grown"
find "$pools" -name '.tmp-*' | grep . && fail "what was refused stays"
ctl --json info "$T/s" >"$TMP/info" || fail "info: $(cat "$TMP/info")"
[ "$(member size <"$TMP/info")" = 4194304 ] || fail "info: $(cat "$TMP/info")"
no_signal_deaths
umount "$pools/e" || umount -l "$pools/e"

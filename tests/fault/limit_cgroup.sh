# SPDX-License-Identifier: BSD-3-Clause
# A pool in memory that the target's control group has no room for is refused, to be made and to grow, and no process is ended
# for it: those of other pools go on.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/fault.sh"
[ "$(id -u)" -eq 0 ] && [ "$(stat -f -c %T "$TMP")" = tmpfs ] || exit 77
sanitized && { echo "skipped: a sanitizer takes more memory than any limit allows"; exit 77; }
# No swap: the first version bounds it together with memory.
group=/sys/fs/cgroup/memory/${TMP##*/} bound=memory.limit_in_bytes swap=memory.memsw.limit_in_bytes none=128M
[ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/${TMP##*/} bound=memory.max swap=memory.swap.max none=0
mkdir "$group" 2>/dev/null || exit 77
trap 'code=$?; [ -z "${SERVE_PID-}" ] || stop "$SERVE_PID"; rmdir "$group"; (exit $code); cleanup' EXIT
echo 128M >"$group/$bound" || exit 77
[ ! -e "$group/$swap" ] && [ "$(wc -l </proc/swaps)" -le 1 ] || echo $none >"$group/$swap" || exit 77

start_target
echo "$SERVE_PID" >"$group/cgroup.procs" || exit 77
start_victim
ctl_fails 1 "are free" create "$target/big" --size 400M
ctl create "$target/small" --size 16M >/dev/null || fail "what there is room for is not made"
ctl_fails 1 "are free" grow "$target/small" --size 400M
ctl grow "$target/small" --size 24M >/dev/null || fail "what there is room for does not grow"
gone "$SERVE_PID" && fail "the daemon was ended"
check_victim
no_signal_deaths

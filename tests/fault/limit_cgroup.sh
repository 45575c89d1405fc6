# SPDX-License-Identifier: BSD-3-Clause
# What the target's control group has no room for in memory is refused, a pool to be made and to grow, and a journal, also
# where several have room each by itself and not together; and no process is ended for it: those of other pools go on.
# Nor is a restore into memory begun that its own group has no room for.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/fault.sh"
[ "$(id -u)" -eq 0 ] && [ "$(stat -f -c %T "$TMP")" = tmpfs ] || exit 77
sanitized && { echo "skipped: a sanitizer takes more memory than any limit allows"; exit 77; }
group=/sys/fs/cgroup/memory/${TMP##*/} bound=memory.limit_in_bytes used=memory.usage_in_bytes events=memory.oom_control
# No swap: the first version bounds it together with memory.
swap=memory.memsw.limit_in_bytes none=256M
[ -d /sys/fs/cgroup/memory ] || {
	group=/sys/fs/cgroup/${TMP##*/} bound=memory.max used=memory.current events=memory.events
	swap=memory.swap.max none=0
}
mkdir "$group" 2>/dev/null || exit 77
trap 'code=$?; [ -z "${SERVE_PID-}" ] || stop "$SERVE_PID"; wait_for 10 rmdir "$group"; [ ! -d "$group-here" ] || wait_for 10 rmdir "$group-here"; (exit $code); cleanup' EXIT
echo 256M >"$group/$bound" || exit 77
[ ! -e "$group/$swap" ] && [ "$(wc -l </proc/swaps)" -le 1 ] || echo $none >"$group/$swap" || exit 77

# What takes memory waits behind the first 64 KiB while the gate is there.
GATE=$TMP/gate POOLS=$TMP/serve/pools
[ -e "$BUILD/tests/integration/slow_space.so" ] || fail "no slow_space.so"
printf '#!/bin/sh\nLD_PRELOAD=%s SPACE_GATE=%s exec "%s" "$@"\n' "$BUILD/tests/integration/slow_space.so" "$GATE" \
	"$REPLD" >"$TMP/repld"
chmod 755 "$TMP/repld"
REPLD=$TMP/repld
start_target
echo "$SERVE_PID" >"$group/cgroup.procs" || exit 77
start_victim

# MiB of the group that are not taken.
left() {
	echo $((($(cat "$group/$bound") - $(cat "$group/$used")) >> 20))
}

nobody_ended() {
	gone "$SERVE_PID" && fail "$1: the daemon was ended"
	! grep -q "oom_kill [1-9]" "$group/$events" || fail "$1: a process was ended"
}

# What was given up is given back: MIB are not taken.
back() {
	[ "$(left)" -ge "$1" ]
}

# COUNT files that match PATTERN are larger than SIZE.
sized() {
	[ "$(find "$POOLS" -name "$2" -size "+$3" | wc -l)" -eq "$1" ]
}

all=$(($(left) - 8))
ctl_fails 1 "are free" create "$target/big" --size 400M
ctl create "$target/small" --size 16M >/dev/null || fail "what there is room for is not made"
ctl_fails 1 "are free" grow "$target/small" --size 400M
ctl grow "$target/small" --size 24M >/dev/null || fail "what there is room for does not grow"
ctl remove --force "$target/small" >/dev/null || fail "it is not removed"
nobody_ended "one after the other"

# Both are looked at before any has more than its beginning.
wait_for 20 back "$all" || fail "$(left) MiB are left of $all"
size=$((all * 7 / 10))
: >"$GATE"
for name in a b; do
	ctl create "$target/$name" --size "${size}M" >"$TMP/$name.out" 2>&1 &
	eval "$name=\$!"
done
wait_for 20 sized 2 '.tmp-*' 1024k || fail "they do not begin: $(cat "$TMP/a.out" "$TMP/b.out")"
rm "$GATE"
wait "$a" "$b"
nobody_ended "two pools at once"
made=0
for name in a b; do
	grep -q "are free" "$TMP/$name.out" && continue
	made=$((made + 1))
	ctl remove --force "$target/$name" >/dev/null || fail "create $name: $(cat "$TMP/$name.out")"
done
[ "$made" -lt 2 ] || fail "two pools of $size MiB were made"
sized 0 '.tmp-*' 0 || fail "something is left: $(ls -a "$POOLS")"
wait_for 20 back "$all" || fail "$(left) MiB are left of $all"
ctl create "$target/a" --size "${size}M" >/dev/null || fail "one of them by itself is not made"
ctl remove --force "$target/a" >/dev/null || fail "a is not removed"

# Likewise two journals, each as large as its pool.
load() {
	mode=$1
	shift
	timeout 60 "$BUILD/tests/fault/stage_load" -i "$TMP/key" -k "$TMP/known_hosts" "$mode" "$target/$@" 2>&1
}
wait_for 20 back "$all" || fail "$(left) MiB are left of $all"
size=$(((all - 36) / 3))
for name in a b; do
	ctl create "$target/$name" --size "${size}M" >/dev/null || fail "$name is not made"
done
: >"$GATE"
for name in a b; do
	load rounds "$name" $((size << 20)) 1 1 1 >"$TMP/$name.out" &
	eval "$name=\$!"
done
wait_for 20 sized 2 '[ab].repl' "$((size - 1))M" || fail "they do not begin: $(cat "$TMP/a.out" "$TMP/b.out")"
rm "$GATE"
made=0
wait "$a" "$b"
nobody_ended "two journals at once"
for name in a b; do
	if grep -q "^committed 1" "$TMP/$name.out"; then
		made=$((made + 1))
	else
		grep -q "no space left" "$TMP/$name.out" || fail "journal $name: $(cat "$TMP/$name.out")"
		load check "$name" "$POOLS/$name" 0 >"$TMP/out" || lost "$(cat "$TMP/out")"
	fi
done
[ "$made" -lt 2 ] || fail "two journals of $size MiB were filled"
wait_for 20 sized 0 '[ab].repl' 16k || fail "space is left behind: $(ls -l "$POOLS")"
wait_for 20 back $((all - 2 * size)) || fail "$(left) MiB are left of $all, and two pools have $size each"
load rounds a $((size << 20)) 1 1 2 >"$TMP/out" || fail "one of them by itself: $(cat "$TMP/out")"
load check a "$POOLS/a" 2 >"$TMP/out" || lost "$(cat "$TMP/out")"
nobody_ended "a journal by itself"

for name in a b; do
	ctl remove --force "$target/$name" >/dev/null || fail "$name is not removed"
done
wait_for 20 back "$all" || fail "$(left) MiB are left of $all"
for size in 96 16; do
	head -c "${size}M" /dev/urandom >"$TMP/source-$size"
	ctl create "$target/$size" --from "$TMP/source-$size" >/dev/null 2>"$TMP/err" || fail "create: $(cat "$TMP/err")"
done
mkdir "$group-here" && echo 80M >"$group-here/$bound" || exit 77
[ ! -e "$group-here/$swap" ] && [ "$(wc -l </proc/swaps)" -le 1 ] || echo ${none/256/80} >"$group-here/$swap" || exit 77
printf '#!/bin/sh\necho $$ >%s/cgroup.procs || exit 77\nexec "%s" "$@"\n' "$group-here" "$REPLCTL" >"$TMP/replctl"
chmod 755 "$TMP/replctl"
REPLCTL=$TMP/replctl
echo old >"$TMP/file"
ctl_fails 1 "96\.0 MiB .* wanted, .* free" restore --force "$target/96" "$TMP/file"
[ "$(cat "$TMP/file")" = old ] && [ ! -e "$TMP/file.restoring" ] || fail "a restore was begun that has no room"
ctl restore --force "$target/16" "$TMP/file" >/dev/null 2>"$TMP/err" || fail "what there is room for is not restored: $(cat "$TMP/err")"
equal "$TMP/source-16" "$TMP/file"
check_victim
no_signal_deaths

# SPDX-License-Identifier: BSD-3-Clause
# Too low a limit of memory is refused with its name; what goes on beside it does, and with enough all is as it was.
# A pool in memory takes more of what is limited.
. "$(dirname "$0")/../power/on_disk.sh"
. "$(dirname "$0")/fault.sh"
sanitized && { echo "skipped: a sanitizer takes more memory than any limit allows"; exit 77; }
head -c 4M /dev/urandom >"$TMP/file"
# Enough for the beginning, and not for messages, or not for a thread's stack.
while read -r kib what; do
	limit_repld -d "$kib"
	start_target
	ctl_fails 1 "$what.*RLIMIT_DATA" sync "$TMP/file" "$target/p" </dev/null
	no_signal_deaths
	stop "$SERVE_PID"
done <<'END'
8000 memory for [0-9]* buffers
37600 starting the data thread
END
# Wherever else it ends: an error, and none about what is installed alone.
for kib in 110000 130000 140000 150000 160000; do
	limit_repld -v $kib
	start_target
	ctl sync "$TMP/file" "$target/p" >"$TMP/out" 2>&1
	[ $? -lt 100 ] || fail "$kib: $(cat "$TMP/out")"
	! grep -q 'installed' "$TMP/out" || grep -q 'RLIMIT_AS' "$TMP/out" || fail "$kib: $(cat "$TMP/out")"
	no_signal_deaths
	stop "$SERVE_PID"
done
limit_repld -d unlimited
start_target
ctl sync "$TMP/file" "$target/p" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
cmp "$TMP/file" "$TMP/serve/pools/p" || lost "it differs"

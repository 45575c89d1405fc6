# SPDX-License-Identifier: BSD-3-Clause
# Too low a limit of open files is refused with its name, its value and the value that is needed.
. "$(dirname "$0")/fault.sh"
limit_repld -n 40
start_target
timeout 20 "$LEDGER" write "$TMP/p.pool" "$target/p.pool" identity="$TMP/key" \
	known-hosts="$TMP/known_hosts" >"$TMP/out" 2>"$TMP/err" && fail "no error"
grep -Eq 'RLIMIT_NOFILE\) is 40, 4 lanes need [0-9]+' "$TMP/err" ||
	fail "not named: $(cat "$TMP/err")"
need=$(sed -n 's/.*lanes need \([0-9]*\).*/\1/p' "$TMP/err")
stop "$SERVE_PID"
# With that value it works, so it is not too small a promise.
limit_repld -n "$need"
start_target
start_victim
check_victim
stop "$SERVE_PID"

# The same of the initiator's own, whatever is opened last: never a word of what is not the matter.
start_target
head -c 65536 /dev/urandom >"$TMP/file"
limited() {
	(ulimit -n "$1" && ctl sync --force "$TMP/file" "$target/file") >"$TMP/out" 2>"$TMP/err"
}
limited 30 && fail "4 lanes with 30 descriptors"
need=$(sed -n 's/.*RLIMIT_NOFILE, which is 30: a replica with 4 lanes takes some \([0-9]*\), .*/\1/p' "$TMP/err")
[ -n "$need" ] || fail "no value: $(cat "$TMP/err")"
limited "$((30 + need))" || fail "$((30 + need)) do not do: $(cat "$TMP/err")"
for limit in $((need - 6)) $((need - 5)) $((need - 4)) $((need - 3)); do
	rm -f "$TMP/file.repl"
	limited "$limit" || grep -q "RLIMIT_NOFILE" "$TMP/err" || fail "$limit: $(cat "$TMP/err")"
	! grep -q "kernel log" "$TMP/err" || fail "$limit: $(cat "$TMP/err")"
done

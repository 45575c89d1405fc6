# SPDX-License-Identifier: BSD-3-Clause
# A program that has FILE mapped comes nowhere between the old data and the new ones while a restore replaces it, with a record
# beside it or without: it is refused, and the record beside the new data speaks of those. A restore that is killed anywhere
# there leaves the file whole, of which nothing is known then: a program goes on with it where it equals a replica, and with
# that one's siblings, and is refused where it does not.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
file=$TMP/file

# is_at: the restore has come there, or has ended.
is_at() {
	grep -q "^State:.T" "/proc/$CTL_PID/status" 2>/dev/null || ! kill -0 "$CTL_PID" 2>/dev/null
}

# old_file: FILE has something else than its replicas p and r, by its record the same generation.
old_file() {
	rm -f "$file"*
	cp "$TMP/source" "$file"
	cp "$TMP/record" "$file.repl"
	change "$file" 5000
	cp "$file" "$TMP/old"
	[ "$1" = recorded ] || rm "$file.repl"
}

# restore_upto N: it is stopped at its nth rename or fsync; 1 where it has ended by then.
restore_upto() {
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 CALL_FAILS="stops $1" \
		LD_PRELOAD=$BUILD/tests/integration/call_fails.so ctl_start restore --force "$T/p" "$file"
	wait_for 20 is_at || fail "the restore stays"
	kill -0 "$CTL_PID" 2>/dev/null
}

# program TARGET...: its file is mapped.
program() {
	configure "$@"
	ok map "$file" $MIB
}

head -c $MIB /dev/urandom >"$TMP/source"
cp "$TMP/source" "$file"
start_api
program "$(pool p)" "$(pool r)"
ok open 1
ok close
wait_for 20 no_sessions || fail "the session stays"
cp "$file.repl" "$TMP/record"
# goes_on TARGET...: what lies there is theirs.
goes_on() {
	equal "$TMP/source" "$file"
	program "$@"
	ok open 1
	ok compare 0
	same
	ok close
	wait_for 20 no_sessions || fail "the session stays"
}

for record in recorded unrecorded; do
	placed=0
	for ((n = 1; ; n++)); do
		old_file $record
		program "$(pool "new-$record-$n")"
		restore_upto $n || break
		api open 1
		[[ $STATUS =~ ^REPL_E_(BUSY|INVAL)$ ]] || fail "$record, $n: $STATUS $TEXT"
		kill -KILL "$CTL_PID"
		wait "$CTL_PID" 2>/dev/null
		wait_for 20 no_sessions || fail "the session stays"
		# Until then it has all been about FILE.restoring, or about a record that tells nothing.
		[ $n -gt 1 ] || continue
		if cmp -s "$file" "$TMP/old"; then
			ctl why "$file" >"$TMP/out" 2>&1
			grep -q "^next *replctl .*restore --force TARGET/POOL $file (goes on" "$TMP/out" ||
				fail "$record, $n: $(cat "$TMP/out")"
			program "$(pool p)"
			refused REPL_E_DIVERGED "replctl restore .*$T/p" open 1
			wait_for 20 no_sessions || fail "the session stays"
			equal "$TMP/source" "$TMP/serve/pools/p"
			ctl restore --force "$T/p" "$file" >/dev/null 2>"$TMP/err" || fail "again: $(cat "$TMP/err")"
			equal "$TMP/source" "$file"
		else
			placed=1
			goes_on "$(pool p)"
			goes_on "$(pool p)" "$(pool r)"
		fi
		cp "$file.repl" "$TMP/record"
	done
	wait "$CTL_PID" || fail "$record, $n: $(cat "$TMP/bg.err")"
	[ $placed = 1 ] || fail "no stop came behind the rename"
	goes_on "$(pool p)" "$(pool r)"
	cp "$file.repl" "$TMP/record"
done
# Of a copy that was cut off nothing is known, whatever the record of a lost file tells.
mark_pool p inconsistent
rm "$file"
ctl restore --force "$T/p" "$file" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
[ ! -e "$file.repl" ] || lost "a record of what nobody knows"
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A pool that was restored from a replica that lagged, or is one that was promoted, does not overwrite the one that had
# got further: program and sync are refused, as is a restore over the file that has all, until one of the two is chosen.
# What was restored from that one brings the other up.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# set_up FILE
set_up() {
	start_api
	configure_lagging "$(pool a)" "$(pool b)"
	ok map "$1" $size
}

has_a() {
	equal "$TMP/p" "$TMP/serve/pools/a"
}

set_up "$TMP/p"
fill 1
# As it is now, it is what a machine that was away from here on has.
for part in "" .repl; do
	cp -p "$TMP/serve/pools/b$part" "$TMP/serve/pools/early$part"
done
ok put 0 4096 9
ok persist 0 0 4096
wait_for 10 follows 1 || fail "b does not follow"
leave_behind b
cmp -s "$TMP/p" "$TMP/serve/pools/b" && fail "b has all"
has_a

# What it has acknowledged is not all.
ctl why "$T/b" >"$TMP/out" || fail "why: $(cat "$TMP/out")"
grep -q "^reason  *writer-gone: .* may lack later ones that were acknowledged" "$TMP/out" || lost "b passes for whole: $(cat "$TMP/out")"
grep -q "position $(ctl info --json "$T/b" | member position) of that generation" "$TMP/out" || fail "why: $(cat "$TMP/out")"

# Nobody but the file may have what was written last. Of what was restored it is known how much it has.
for dry in "" --dry-run; do
	# shellcheck disable=SC2086
	ctl restore $dry --force "$T/b" "$TMP/p" >"$TMP/out" 2>"$TMP/err"
	status=$?
	has_a
	[ "$status" -eq 4 ] || fail "exit $status: $(cat "$TMP/out" "$TMP/err")"
	grep -q "p is not replaced by .*it may lack what the file" "$TMP/err" || fail "$(cat "$TMP/err")"
done
ctl restore "$T/b" "$TMP/lagged" >"$TMP/out" 2>"$TMP/err" || fail "restore of b"
grep -q "higher position has more" "$TMP/err" || fail "nothing is said of it: $(cat "$TMP/err")"
ctl restore --force "$T/b" "$TMP/lagged" >"$TMP/out" 2>"$TMP/err" || fail "restore of b over the same: $(cat "$TMP/err")"
set_up "$TMP/lagged"
refused REPL_E_DIVERGED "^[^ ]*/a: the replica is newer.*replctl resolve --discard local FILE $T/a;" open
has_a
# Nor is a program believed that says that they are equal,
refused REPL_E_DIVERGED "^[^ ]*/a: the replica is newer.*replctl resolve --discard local FILE $T/a;" open 2
has_a
stop_api
# ... be it of a replica that has less.
[ "$(ctl info --json "$T/early" | member state)" = unknown ] || fail "early: $(ctl info "$T/early")"
for file in lagged p; do
	for part in "" .repl; do
		cp -p "$TMP/$file$part" "$TMP/said$part"
		cp -p "$TMP/serve/pools/early$part" "$TMP/serve/pools/said$part"
	done
	start_api
	configure_lagging "$(pool said)"
	ok map "$TMP/said" $size
	ok open 2
	ok close
	stop_api
	equal "$TMP/said" "$TMP/serve/pools/said"
done
[ "$(ctl info --json "$T/b" | member state)" = unknown ] || fail "b is another one, though nothing was to change"
ctl_fails 4 "the replica is newer" sync "$TMP/lagged" "$T/a"
has_a

# chosen FILE WHAT: copies of FILE, which has less than a, and of a become the one or the other, as WHAT they are.
chosen() {
	local part

	for part in "" .repl; do
		cp -p "$1$part" "$TMP/chosen$part"
		cp -p "$TMP/serve/pools/a$part" "$TMP/serve/pools/h$part"
	done
	for lost in replica local; do
		ctl resolve --dry-run --discard $lost "$TMP/chosen" "$T/h" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
		grep -q "$2" "$TMP/out" || fail "$(cat "$TMP/out")"
	done
	ctl resolve --force --discard local "$TMP/chosen" "$T/h" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
	equal "$TMP/p" "$TMP/chosen"
	for part in "" .repl; do
		cp -p "$1$part" "$TMP/chosen$part"
	done
	ctl resolve --force --discard replica "$TMP/chosen" "$T/h" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
	equal "$1" "$TMP/serve/pools/h"
}

chosen "$TMP/lagged" "the replica is newer"
for part in "" .repl; do
	cp -p "$TMP/lagged$part" "$TMP/further$part"
done
ctl restore --force "$T/a" "$TMP/further" >"$TMP/out" 2>&1 || fail "restore of a over b's: $(cat "$TMP/out")"
has_a
equal "$TMP/p" "$TMP/further"

# Nor does one that was promoted.
for file in b b.repl; do
	cp -p "$TMP/serve/pools/$file" "$TMP/serve/pools/c${file#b}"
done
ctl promote "$T/c" >"$TMP/out" 2>"$TMP/err" || fail "promote of c"
grep -q "higher position has more" "$TMP/err" || fail "nothing is said of it: $(cat "$TMP/err")"
# What it was promoted without is in the file that had it all, whose generation it names.
ctl restore --force "$T/c" "$TMP/p" >"$TMP/out" 2>"$TMP/err"
status=$?
has_a
[ "$status" -eq 4 ] || fail "exit $status: $(cat "$TMP/out" "$TMP/err")"
grep -q "p is not replaced by .*since they were the same" "$TMP/err" || fail "$(cat "$TMP/err")"
grep -q "^next: replctl resolve --discard local $TMP/p $T/c " "$TMP/err" || fail "$(cat "$TMP/err")"
ctl resolve --dry-run --discard local "$TMP/p" "$T/c" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
grep -q "both went on since they were the same" "$TMP/out" || fail "$(cat "$TMP/out")"
set_up "$TMP/serve/pools/c"
refused REPL_E_DIVERGED "/a: .*have diverged.*: replctl resolve --discard local FILE $T/a; " open
has_a
stop_api
cp -p "$TMP/serve/pools/c" "$TMP/was"
ctl_fails 4 "c is not replaced by .*since they were the same" restore --force "$T/a" "$TMP/serve/pools/c"
grep -q "^next: replctl resolve --discard local $TMP/serve/pools/c $T/a " "$TMP/err" || fail "$(cat "$TMP/err")"
ctl_fails 6 "diverged" sync "$TMP/serve/pools/c" "$T/a"
has_a
equal "$TMP/was" "$TMP/serve/pools/c"
chosen "$TMP/serve/pools/c" "both went on since they were the same"

# What it gets by that are a primary's data, into which no file of before is let.
cp -p "$TMP/serve/pools/c.repl" "$TMP/was.repl"
ctl resolve --force --discard local "$TMP/serve/pools/c" "$T/a" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/out")"
equal "$TMP/p" "$TMP/serve/pools/c"
for part in "" .repl; do
	cp -p "$TMP/p$part" "$TMP/old$part"
done
change "$TMP/old" 5000
ctl_fails 4 "promoted" sync "$TMP/old" "$T/c"
equal "$TMP/p" "$TMP/serve/pools/c"
has_a
for part in "" .repl; do
	cp -p "$TMP/was$part" "$TMP/serve/pools/c$part"
done

# Nor what was restored from that one, nor when it has been demoted.
for file in promoted demoted; do
	ctl restore "$T/c" "$TMP/$file" >"$TMP/out" 2>&1 || fail "restore of c: $(cat "$TMP/out")"
	set_up "$TMP/$file"
	refused REPL_E_DIVERGED "/a: .*diverged" open
	has_a
	stop_api
	ctl_fails 6 "diverged" sync "$TMP/$file" "$T/a"
	ctl demote "$T/c" >"$TMP/out" 2>&1 || fail "demote of c: $(cat "$TMP/out")"
done
has_a

# Nor is it made whole by a sync of a file that is equal to it, with a record or without one.
for file in lagged copied; do
	for part in "" .repl; do
		cp -p "$TMP/serve/pools/b$part" "$TMP/serve/pools/g$part"
	done
	[ -e "$TMP/$file" ] || cp "$TMP/lagged" "$TMP/copied"
	ctl sync "$TMP/$file" "$T/g" >"$TMP/out" 2>&1 || fail "sync of $file: $(cat "$TMP/out")"
	ctl restore "$T/g" "$TMP/again-$file" >"$TMP/out" 2>&1 || fail "restore of g: $(cat "$TMP/out")"
	set_up "$TMP/again-$file"
	refused REPL_E_DIVERGED "/a: .*diverged" open
	has_a
	stop_api
done

# The one that has all is the others' as ever.
ctl restore "$T/a" "$TMP/all" >"$TMP/out" 2>&1 || fail "restore of a"
equal "$TMP/p" "$TMP/all"
set_up "$TMP/all"
ok open
for i in 0 1; do
	ok compare "$i"
	same
done
ok close
equal "$TMP/p" "$TMP/serve/pools/b"

# A promotion, which takes what is there for all, tells of it as well.
ok open
signalled KILL "$(api_child)"
wait "$api_pid" 2>/dev/null
wait_for 20 no_sessions || fail "sessions stay"
ctl promote "$T/b" >"$TMP/out" 2>"$TMP/err" || fail "promote of b"
grep -q "$T/b ended without closing it.*another one may have later updates" "$TMP/err" || fail "nothing is said: $(cat "$TMP/err")"

wait "$api_pid" 2>/dev/null
exec {API_IN}>&-

# Beside an asynchronous replica a synchronous one counts nothing, and has all.
set_up_async() {
	start_api
	configure "$(pool d)"
	ok set async-target "$(pool e)"
	ok set lanes 1
	ok set heartbeat-timeout 60000
	ok set async-lag-time 60000
	ok map "$1" $size
}

set_up_async "$TMP/q"
fill 1
leave_behind e
ctl why "$T/d" >"$TMP/out" || fail "why: $(cat "$TMP/out")"
grep -q "^reason  *writer-gone: .* all where drains waited for it" "$TMP/out" && grep -q "drains waited for it$" "$TMP/out" ||
	fail "why: $(cat "$TMP/out")"
ctl restore "$T/e" "$TMP/behind" >"$TMP/out" 2>&1 || fail "restore of e"
set_up_async "$TMP/behind"
refused REPL_E_DIVERGED "^[^ ]*/d: the replica is newer.*replctl resolve --discard local" open
equal "$TMP/q" "$TMP/serve/pools/d"

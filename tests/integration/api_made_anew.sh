# SPDX-License-Identifier: BSD-3-Clause
# A pool that was made anew beside the record of a lost one is not copied over the replicas: neither by its program nor by sync.
. "$(dirname "$0")/api_lib.sh"
start_target
start_api
file=$TMP/serve/pools/p
T=$SERVE_USER@127.0.0.1:$SERVE_PORT

# begin KEY VALUE: a program that writes to pool p.
begin() {
	configure "$(pool p)"
	ok set lanes 1
	ok set "$1" "$2"
	ok map "$TMP/p" $((4 * MIB))
}

# anew MEBIBYTES: the file has gone, its record has not, and the program makes one.
anew() {
	rm "$TMP/p"
	ok map "$TMP/p" $(($1 * MIB))
}

# kept: the replica is what it was.
kept() {
	equal "$TMP/kept" "$file"
	[ "$(ctl info --json "$T/p" | member generation)" = "$generation" ] || fail "another generation"
}

# back: the program goes on with the replica's data.
back() {
	ctl restore --force "$T/p" "$TMP/p" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	equal "$TMP/kept" "$TMP/p"
}

for crash in compare dirty-map; do
	for how in closed killed; do
		begin after-crash "$crash"
		ok open 1
		ok put 100000 500000 7
		ok persist 0 100000 500000
		if [ "$how" = closed ]; then
			ok close
		else
			signalled KILL "$(api_child)"
			wait "$api_pid"
			start_api
			begin after-crash "$crash"
		fi
		wait_for 20 no_sessions || fail "the session stays"
		cp "$file" "$TMP/kept"
		generation=$(ctl info --json "$T/p" | member generation)
		# Not even larger.
		anew 8
		refused REPL_E_DIVERGED "zeros.*nothing was changed.*replctl restore --force $T/p FILE" open 1
		wait_for 20 no_sessions || fail "the session stays"
		kept
		anew 4
		refused REPL_E_DIVERGED "zeros.*nothing was changed.*replctl restore --force $T/p FILE" open 1
		wait_for 20 no_sessions || fail "the session stays"
		kept
		ctl_fails 4 "made anew.*nothing was changed" sync "$TMP/p" "$T/p"
		grep -q "^next: replctl verify .*replctl restore" "$TMP/err" || fail "$(cat "$TMP/err")"
		ctl_fails 4 "made anew" sync --dry-run "$TMP/p" "$T/p"
		# Nor is it advised to start the program, which may write to it and copy that.
		ctl why "$TMP/p" >"$TMP/out" || fail "why"
		grep -q "nothing but zeros" "$TMP/out" || fail "$(cat "$TMP/out")"
		grep -q "^next *replctl verify $TMP/p TARGET/POOL before.*restore --dry-run --force TARGET/POOL $TMP/p" "$TMP/out" ||
			fail "$(cat "$TMP/out")"
		kept
		back
		ctl why "$TMP/p" >"$TMP/out" || fail "why"
		! grep -q zeros "$TMP/out" || fail "$(cat "$TMP/out")"
	done
done

# What another hand has left of a replica is all there is: refused, it is as it was.
configure "$(pool c)"
ok set lanes 1
ok map "$TMP/c" $((4 * MIB))
ok open 1
ok put 0 $((4 * MIB)) 7
ok persist 0 0 $((4 * MIB))
ok close
wait_for 20 no_sessions || fail "the session stays"
truncate -s 2M "$TMP/serve/pools/c"
api open
grep -q "pool 'c': its file was cut by another hand" "$TMP/serve.log" || fail "nothing in the target's log: $TEXT"
truncate -s 4M "$TMP/serve/pools/c"
cp "$TMP/serve/pools/c" "$TMP/kept"
rm "$TMP/c"
ok map "$TMP/c" $((4 * MIB))
refused REPL_E_REFUSED "zeros.*no replica that is reachable.*nothing was changed" open
wait_for 20 no_sessions || fail "the session stays"
equal "$TMP/kept" "$TMP/serve/pools/c"

# Nobody there who could say that zeros are what was written; where they are, it is no matter.
ctl create "$T/z" --size 4M >/dev/null || fail "create"
configure "$(pool z)"
ok set lanes 1
ok set reconnect-min 3600000
ok map "$TMP/z" $((4 * MIB))
ok open
ok close
ok open
ok close
wait_for 20 no_sessions || fail "the session stays"
ctl sync "$TMP/z" "$T/z" >/dev/null || fail "sync of zeros to zeros"
stop "$SERVE_PID"
refused REPL_E_REFUSED "zeros.*z.repl.*no replica that is reachable.*replctl restore" open

# Who means it says so.
start_serve
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
rm "$TMP/p"
truncate -s 4M "$TMP/p"
ctl sync --force "$TMP/p" "$T/p" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
equal "$TMP/p" "$file"

# put_all: data, in both of them.
put_all() {
	configure "$(pool p)" "$(pool other)"
	ok set lanes 1
	ok map "$TMP/p" $((4 * MIB))
	ok open 1
	ok put 100000 500000 7
	ok persist 0 100000 500000
	ok close
	wait_for 20 no_sessions || fail "the session stays"
}

# Of that replica alone: another one that has what was lost is not copied over, whatever is written by then.
for how in sync resolve; do
	put_all
	cp "$TMP/serve/pools/other" "$TMP/kept"
	if [ $how = resolve ]; then
		ctl promote "$T/p" >/dev/null && ctl demote "$T/p" >/dev/null || fail "promote and demote"
	fi
	anew 4
	[ $how = resolve ] || ctl sync --force "$TMP/p" "$T/p" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	[ $how = sync ] || ctl resolve --force --discard replica "$TMP/p" "$T/p" >/dev/null 2>"$TMP/err" ||
		fail "$(cat "$TMP/err")"
	configure "$(pool p)"
	ok set lanes 1
	ok map "$TMP/p" $((4 * MIB))
	ok open
	ok put 0 1000 8
	ok persist 0 0 1000
	ok close
	wait_for 20 no_sessions || fail "the session stays"
	ctl_fails 6 "nothing was changed" sync "$TMP/p" "$T/other"
	configure "$(pool p)" "$(pool other)"
	ok set lanes 1
	refused REPL_E_DIVERGED "other.*nothing was changed" open
	equal "$TMP/kept" "$TMP/serve/pools/other"
	# It is by the same word.
	ctl sync --force "$TMP/p" "$T/other" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	ok open
	ok close
	wait_for 20 no_sessions || fail "the session stays"
	equal "$TMP/p" "$TMP/serve/pools/other"
done

# Nor does a new one pass for those that have what was lost.
put_all
anew 4
# (By when both files were made.)
if [ "$(stat -c %W "$TMP/p")" -gt 0 ]; then
	for command in "create $T/new --from" "sync --dry-run" sync; do
		case $command in
		create*) set -- $command "$TMP/p" ;;
		*) set -- $command "$TMP/p" "$T/new" ;;
		esac
		ctl_fails 4 "nothing but zeros.*nothing was changed" "$@"
		[ ! -e "$TMP/serve/pools/new" ] || fail "$command made a pool"
	done
	ctl create "$T/new" --size $((4 * MIB)) >/dev/null || fail "create"
	for option in --dry-run ""; do
		# shellcheck disable=SC2086 # an option or nothing
		ctl_fails 4 "nothing but zeros.*nothing was changed" sync $option "$TMP/p" "$T/new"
	done
	ctl sync --force "$TMP/p" "$T/new" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
	cp "$TMP/serve/pools/other" "$TMP/kept"
	configure "$(pool new)" "$(pool other)"
	ok set lanes 1
	ok map "$TMP/p" $((4 * MIB))
	refused REPL_E_DIVERGED "other.*nothing was changed" open
	equal "$TMP/kept" "$TMP/serve/pools/other"
fi

# Of what was never written the record speaks of nothing.
ctl create "$T/zeros" --size 8192 >/dev/null && ctl restore "$T/zeros" "$TMP/zeros" >/dev/null 2>"$TMP/err" ||
	ctl restore --force "$T/zeros" "$TMP/zeros" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
ctl sync "$TMP/zeros" "$T/zeros" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
# Nor are zeros lost data which are older than the record.
truncate -s 8192 "$TMP/old"
ctl sync "$TMP/old" "$T/old" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
ctl sync "$TMP/old" "$T/old2" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"

# What equals the file already is no matter of that.
ctl sync --force "$TMP/p" "$T/p" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
ctl sync --force "$TMP/p" "$T/other" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
put_all
anew 4
for pool in p other; do
	ctl sync --force "$TMP/p" "$T/$pool" >/dev/null 2>"$TMP/err" || fail "$(cat "$TMP/err")"
done
ok map "$TMP/p" $((4 * MIB))
ok open
ok put 0 1000 9
ok persist 0 0 1000
ok close
for pool in p other; do
	equal "$TMP/p" "$TMP/serve/pools/$pool"
done

# SPDX-License-Identifier: BSD-3-Clause
# A program goes on with what was restored from a replica that lagged, or is equal to it or to one that is outdated or
# inconsistent, while the one that had got further is away. When that comes back it is not overwritten: it has what the
# program never had, and people have to choose.
. "$(dirname "$0")/laggard_lib.sh"
make_keys
start_serve
away_pid=$SERVE_PID
away=$SERVE_USER@127.0.0.1:$SERVE_PORT/a
sed "s/^listen = .*/listen = 127.0.0.1:$SERVE_PORT/" "$TMP/repld.conf" >"$TMP/away.conf"
start_serve

set_up() {
	start_api
	configure "$(pool b)" "$away"
	ok set ack any
	ok set lanes 1
	ok set on-loss degrade
	ok set heartbeat-timeout 60000
	ok set reconnect-max 200
	ok set async-lag-bytes 128M
	ok set async-lag-time 60000
	ok map "$1" $size
}

# marked POOL STATE: as a copy leaves it that was cut off, under the same generation.
marked() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"'"$1"'","mode":"write"}}'
		echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"'"$2"'"}}'
	} | client cat "$SERVE_USER@127.0.0.1:$SERVE_PORT" >"$TMP/out" || fail "no session: $(cat "$TMP/out")"
	wait_for 20 no_sessions || fail "sessions stay"
	ctl info --json "$(pool "$1")" | member state | grep -qx "$2" || fail "$1 is not $2: $(cat "$TMP/out")"
}

diverged() {
	ctl why "$file" | grep -q "^reason *diverged:"
}

set_up "$TMP/p"
fill 0
leave_behind b
equal "$TMP/p" "$TMP/serve/pools/a"
stop "$away_pid"

ctl restore "$(pool b)" "$TMP/lagged" >"$TMP/out" 2>&1 || fail "restore of b"
cp "$TMP/lagged" "$TMP/copied"
mkdir "$TMP/begin"
cp -p "$TMP/serve/pools/b" "$TMP/serve/pools/b.repl" "$TMP/begin"
for file in "$TMP/copied" "$TMP/outdated" "$TMP/inconsistent" "$TMP/lagged"; do
	cp -p "$TMP/begin"/* "$TMP/serve/pools"
	case $file in
	*/outdated | */inconsistent)
		marked b "${file##*/}"
		cp "$TMP/serve/pools/b" "$file"
		;;
	esac
	set_up "$file"
	ok open
	ok put 0 4096 9
	ok persist 0 0 4096
	aside "$TMP/away.log"
	"$REPLD" serve --config "$TMP/away.conf" >"$TMP/away.log" 2>&1 &
	away_pid=$!
	PIDS="$PIDS $away_pid"
	wait_for 20 diverged || fail "not told: $(ctl why "$file")"
	equal "$TMP/p" "$TMP/serve/pools/a"
	ok close
	stop_api
	[ "$file" = "$TMP/lagged" ] || stop "$away_pid"
done

# Nor when it is there at the next opening.
set_up "$TMP/lagged"
refused REPL_E_DIVERGED "^[^ ]*/a: .*diverged" open
equal "$TMP/p" "$TMP/serve/pools/a"
stop_api
ctl resolve --force --discard replica "$TMP/lagged" "$away" >"$TMP/out" 2>&1 || fail "resolve: $(cat "$TMP/out")"
equal "$TMP/lagged" "$TMP/serve/pools/a"
set_up "$TMP/lagged"
ok open
ok close
stop_api

# Of several that a file without a record is equal to, the one that has all tells what the file is, whichever is named first.
three() {
	start_api
	configure "$(pool c)" "$(pool d)" "${away%/a}/e"
	ok set lanes 1
	ok set on-loss degrade
	ok set reconnect-max 200
	ok map "$TMP/three" 65536
}
for state in outdated inconsistent; do
	three
	ok open 1
	ok put 0 4096 1
	ok persist 0 0 4096
	ok close
	stop_api
	stop "$away_pid"
	marked c "$state"
	rm "$TMP/three.repl"
	three
	ok open
	ok put 0 4096 2
	ok persist 0 0 4096
	aside "$TMP/away.log"
	"$REPLD" serve --config "$TMP/away.conf" >"$TMP/away.log" 2>&1 &
	away_pid=$!
	PIDS="$PIDS $away_pid"
	wait_for 20 established 2 || fail "beside one that is $state: $(ctl why "$TMP/three")"
	ok close
	stop_api
	for pool in c d e; do
		equal "$TMP/three" "$TMP/serve/pools/$pool"
	done
done

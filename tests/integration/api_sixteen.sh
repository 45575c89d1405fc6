# SPDX-License-Identifier: BSD-3-Clause
# 16 replicas of one handle, at two daemons, two of them asynchronous: four threads go on writing while a daemon
# is killed and until it is back; then all are up to date and equal, with ack = all, quorum and any.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
first_pid=$SERVE_PID
first=$SERVE_PORT

# The other daemon: of the same host key, with a directory of its own.
second_start() {
	sed -e "s|^pool-dir = .*|pool-dir = $TMP/serve/second|" \
		-e "s|^listen = .*|listen = 127.0.0.1:${1:-0}|" "$TMP/repld.conf" >"$TMP/second.conf"
	aside "$TMP/second.log"
	: >"$TMP/second.log"
	"$REPLD" serve --config "$TMP/second.conf" >"$TMP/second.log" 2>&1 &
	second_pid=$!
	PIDS="$PIDS $second_pid"
	wait_for 20 grep -q "listening on" "$TMP/second.log" || fail "the second daemon does not start"
	second=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$TMP/second.log")
}
mkdir "$TMP/serve/second"
[ "$(id -u)" -ne 0 ] || chown "$SERVE_USER" "$TMP/serve/second"
second_start
trust "$second" "$TMP/serve_host_key.pub"

# second_killed: with all that it has forked.
second_killed() {
	local all=$second_pid pid

	for pid in $(pgrep -P "$second_pid"); do
		all="$all $pid $(pgrep -P "$pid")"
	done
	signalled KILL $all
	wait "$second_pid" 2>/dev/null
}

# counted FIELD VALUE: of how many replicas it is that.
counted() {
	local i n=0

	for i in $(seq 0 15); do
		ok stat "$i"
		[ "$(field "$1")" = "$2" ] && n=$((n + 1))
	done
	echo "$n"
}
all_are() {
	[ "$(counted "$1" "$2")" = "$3" ]
}

descriptors() {
	ls "/proc/$(api_child)/fd" | wc -l
}

# KiB of memory, of which the list of what is queued has at most async-lag-bytes.
resident() {
	sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\) kB$/\1/p' "/proc/$(api_child)/status"
}

start_api
for ack in all quorum any; do
	targets=()
	for i in 1 2 3 4 5 6 7; do
		targets+=("$SERVE_USER@127.0.0.1:$first/$ack-$i" "$SERVE_USER@127.0.0.1:$second/$ack-$i")
	done
	late=("$SERVE_USER@127.0.0.1:$first/$ack-late" "$SERVE_USER@127.0.0.1:$second/$ack-late")
	configure "${targets[@]}"
	ok set async-target "${late[0]}"
	ok set async-target "${late[1]}"
	ok set ack "$ack"
	ok set lanes 4
	# 32 sides on few cores: what is slow is not lost.
	ok set op-timeout 20000
	ok set heartbeat-timeout 8000
	ok set close-timeout 20000
	ok set connect-timeout 20000
	ok set reconnect-min 100
	ok set reconnect-max 500
	ok map "$TMP/p-$ack" $((4 * MIB))
	ok put 0 $((4 * MIB)) 1
	before=$(descriptors)
	ok open 1
	all_are replication 0 16 || fail "$ack: $(counted replication 0) of 16 are established"
	[ "$(($(descriptors) - before))" -le 900 ] || fail "$(($(descriptors) - before)) descriptors for 16 replicas"
	ok load 4 $((4 * MIB))
	sleep 0.5
	second_killed
	wait_for 40 all_are replication 2 8 || fail "$ack: $(counted replication 2) of 8 are lost"
	sleep 0.5
	# None of them is waited for.
	ok unload
	sanitized || [ "$(resident)" -le 400000 ] || fail "$ack: $(resident) KiB of memory"
	[ "${TEXT%% *}" -gt 0 ] || fail "$ack: nothing was written: $TEXT"
	ok load 4 $((4 * MIB))
	second_start "$second"
	wait_for 60 all_are replication 0 16 || fail "$ack: $(counted replication 0) of 16 are back"
	sleep 0.5
	ok unload
	# Others may have some of it before them.
	for i in 0 1 13; do
		[ "$ack" = all ] || break
		ok compare "$i"
		same
	done
	ok close
	for file in "$TMP/serve"/{pools,second}/$ack-{[1-7],late}; do
		equal "$TMP/p-$ack" "$file"
	done
	for port in "$first" "$second"; do
		ctl list "$SERVE_USER@127.0.0.1:$port" >"$TMP/out" || fail "list"
		[ "$(grep "^$ack-" "$TMP/out" | grep -c "up-to-date")" = 8 ] || fail "$ack: $(cat "$TMP/out")"
	done
	[ "$(descriptors)" = "$before" ] || fail "$ack: $(descriptors) descriptors, $before before"
done
for target in "${targets[@]}" "${late[@]}"; do
	ctl verify "$TMP/p-$ack" "$target" >"$TMP/out" 2>"$TMP/err" ||
		lost "$target: $(cat "$TMP/out" "$TMP/err")"
done
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# compat_lib.sh - the harness of the tests of librpmem.so.1; sourced.
#
#   start_compat [LINE]     a target; librpmem.so.1 is found by PMDK and knows the test's key
#   target_set NAME LINE... the set file of that name on the target, as its admin writes it
#   local_set NAME          $TMP/local.set: 16 MiB in $TMP/part0, and a REPLICA of that name
#   pmdk COMMAND...         with librpmem.so.1 in reach, within two minutes
#   pmdk_fails PATTERN COMMAND...  it fails, and says so
#   make_pool               pmempool create of $TMP/local.set
#   fill COUNT, walk        pmemobj_fill on $TMP/local.set; prints count and checksum
#   paced_start             pmemobj_fill paced on it goes on, as $pid; what a user sees there of librpmem, in $TMP/err
#   sessions_kill           all sessions of the target; it takes the next ones
#   paced_kill              SIGKILL; it has $told so many objects
#   paced_end               it closes the pool
#   target_run COMMAND...   without librpmem.so.1, as on the target
#   here COMMAND...         the same on rem.set of the parts p and q, which stay the target's
#   opens POOL              here; it has what was $filled
#   primary, replica        rem.set is promoted, and opened here by PMDK's programs; it is demoted
#   lose_and_sync FILLED    the local part is lost and had again from the replica
#   two_targets             two of them, by RPMEM_CMD, and local.set of 16 MiB with REPLICA set1, set2; of each:
#   target_ctl N COMMAND..  replctl; its replica is named by target_pool N
#   target_state N          of its replica
#   target_marks N STATE    a session leaves it so, in the generation that it has, or in that of the third argument
#   target_idle N           nobody has it open for writing
#   target_sessions_kill N  its sessions are killed
#   stream_loses N M        a program that is killed has lost N, which has $before so many objects, and gone on with M,
#                           which has $told so many
#   has_told COUNT          the pool has as many at least
. "$(dirname "$0")/../integration/lib.sh"
FILL=$BUILD/tests/integration/pmemobj_fill
RPMEM_LOG_FILE=$TMP/rpmem.log
RPMEM_LOG_LEVEL=3
export RPMEM_LOG_FILE RPMEM_LOG_LEVEL
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }
# PMDK's programs can't load one that was built with sanitizers; a test of our own sets OWN_PROGRAM.
if [ -z "${OWN_PROGRAM:-}" ] && nm -D "$BUILD/librpmem.so.1" | grep -q "__[at]san"; then
	echo "skipped: librpmem.so.1 is built with sanitizers"
	exit 77
fi

start_compat() {
	start_target "$@"
	POOLS=$TMP/serve/pools
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
	} >"$TMP/repl.conf"
}

target_set() {
	set_name=$1
	shift
	{
		echo PMEMPOOLSET
		for line in "$@"; do
			echo "$line"
		done
	} >"$POOLS/$set_name"
}

local_set() {
	printf 'PMEMPOOLSET\n16M %s\nREPLICA %s %s\n' "$TMP/part0" "$T" "$1" >"$TMP/local.set"
}

pmdk() {
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD timeout -k 5 120 "$@" </dev/null
}

pmdk_fails() {
	pattern=$1
	shift
	! pmdk "$@" >"$TMP/out" 2>&1 || fail "no error: $*"
	cat "$TMP/rpmem.log" >>"$TMP/out" 2>/dev/null
	grep -Eq -- "$pattern" "$TMP/out" || fail "no '$pattern' in: $(cat "$TMP/out")"
}

make_pool() {
	pmdk pmempool create obj --layout=test "$TMP/local.set" >"$TMP/out" 2>&1 ||
		fail "pmempool create: $(cat "$TMP/out")"
}

fill() {
	pmdk "$FILL" fill "$TMP/local.set" test "$1" 2>"$TMP/err" ||
		fail "fill: $(cat "$TMP/err")"
}

walk() {
	pmdk "$FILL" check "$TMP/local.set" test 2>"$TMP/err" || lost "walk: $(cat "$TMP/err")"
}

paced_start() {
	rm -f "$TMP/stream"
	env -u RPMEM_LOG_FILE -u RPMEM_LOG_LEVEL REPL_CONFIG="$TMP/repl.conf" LD_LIBRARY_PATH="$BUILD" \
		"$FILL" paced "$TMP/local.set" test 1000000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 test -s "$TMP/stream" || fail "paced: $(cat "$TMP/err")"
}

sessions_kill() {
	for child in $(children "$SERVE_PID"); do
		for grandchild in $(children "$child"); do
			kill -KILL "$grandchild"
		done
		kill -KILL "$child"
	done
}

paced_kill() {
	kill -KILL "$pid" || fail "it has ended: $(cat "$TMP/err")"
	wait "$pid" 2>/dev/null
	told=$(tail -n 2 "$TMP/stream" | head -n 1)
}

paced_end() {
	kill -TERM "$pid" || fail "it has ended: $(cat "$TMP/err")"
	wait "$pid" || fail "it ends with $?: $(cat "$TMP/err")"
}

target_run() {
	timeout -k 5 120 "$@" </dev/null
}

here() {
	target_run "$@" >"$TMP/out" 2>&1 || fail "$*: $(cat "$TMP/out")"
	# Root's test has a target that is not root's, who would run it.
	[ "$(id -u)" != 0 ] || chown --reference="$POOLS/rem.set.repl" "$POOLS"/[pq]
}

opens() {
	here "$FILL" check "$1" test
	[ "$(cat "$TMP/out")" = "$filled" ] || lost "$1: $(cat "$TMP/out") in place of $filled"
}

primary() {
	ctl promote "$T/rem.set" >"$TMP/out" 2>&1 || fail "promote: $(cat "$TMP/out")"
	here pmempool info "$POOLS/rem.set"
	here pmempool check "$POOLS/rem.set"
	opens "$POOLS/rem.set"
}

replica() {
	ctl demote "$T/rem.set" >"$TMP/out" 2>&1 || fail "demote: $(cat "$TMP/out")"
}

lose_and_sync() {
	rm "$TMP/part0"
	pmdk pmempool sync "$TMP/local.set" >"$TMP/out" 2>&1 || fail "sync: $(cat "$TMP/out")"
	found=$(walk) || exit 1
	[ "$found" = "$1" ] || lost "'$found' in place of '$1'"
}

two_targets() {
	make_keys
	start_sshd
	at=$USER_NAME@127.0.0.1:$SSHD_PORT
	RPMEM_CMD=
	printf 'PMEMPOOLSET\n16M %s\n' "$TMP/part0" >"$TMP/local.set"
	printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$TMP/key" "$TMP/known_hosts" >"$TMP/repl.conf"
	for i in 1 2; do
		mkdir -m 700 "$TMP/pools$i"
		printf '[repld]\npool-dir = %s\n' "$TMP/pools$i" >"$TMP/repld$i.conf"
		printf 'PMEMPOOLSET\n16M part\n' >"$TMP/pools$i/set$i"
		printf 'REPLICA %s set%s\n' "$at" "$i" >>"$TMP/local.set"
		command="$REPLD session --config $TMP/repld$i.conf"
		RPMEM_CMD="$RPMEM_CMD${RPMEM_CMD:+|}$command"
		{
			cat "$TMP/repl.conf"
			echo "command = $command"
		} >"$TMP/repl$i.conf"
	done
	export RPMEM_CMD
}

target_pool() {
	echo "$at/set$1"
}

target_ctl() {
	ctl_of=$1
	shift
	"$REPLCTL" --config "$TMP/repl$ctl_of.conf" "$@" </dev/null
}

target_state() {
	target_ctl "$1" info "$(target_pool "$1")" | sed -n 's/^state *\([^ ]*\).*/\1/p'
}

target_marks() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1]}}'
		echo "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pool.open\",\"params\":{\"name\":\"set$1\",\"mode\":\"write\"}}"
		echo "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"pool.mark\",\"params\":{\"state\":\"$2\"${3:+,\"generation\":\"$3\"}}}"
		echo '{"jsonrpc":"2.0","id":4,"method":"pool.close"}'
		echo '{"jsonrpc":"2.0","id":5,"method":"bye"}'
	} | $REPLD session --config "$TMP/repld$1.conf" >"$TMP/answers" 2>&1
	[ "$(target_state "$1")" = "$2" ] || fail "set$1 is $(target_state "$1"): $(cat "$TMP/answers")"
}

target_idle() {
	! target_ctl "$1" info "$(target_pool "$1")" | grep -q '^writer .*(has it open)'
}

target_sessions_kill() {
	for session in $(pgrep -f "session --config $TMP/repld$1.conf"); do
		kill -KILL "$session"
	done
}

stream_loses() {
	rm -f "$TMP/stream"
	REPL_CONFIG=$TMP/repl.conf LD_LIBRARY_PATH=$BUILD \
		"$FILL" stream "$TMP/local.set" test 100000 >"$TMP/stream" 2>"$TMP/err" </dev/null &
	pid=$!
	PIDS="$PIDS $pid"
	wait_for 10 test -s "$TMP/stream" || fail "stream: $(cat "$TMP/err")"
	kill -STOP "$pid"
	# It stays away.
	mv "$TMP/repld$1.conf" "$TMP/repld$1.away"
	target_sessions_kill "$1"
	before=$(tail -n 1 "$TMP/stream")
	kill -CONT "$pid"
	wait_for 20 told_more || fail "it does not go on: $(cat "$TMP/err")"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	told=$(tail -n 2 "$TMP/stream" | head -n 1)
	mv "$TMP/repld$1.away" "$TMP/repld$1.conf"
	wait_for 15 target_idle "$2" || fail "its session does not end"
}

told_more() {
	[ "$(tail -n 2 "$TMP/stream" | head -n 1)" -gt $((before + 200)) ]
}

has_told() {
	found=$(walk) || exit 1
	[ "${found%% *}" -ge "$1" ] || lost "$found objects, $1 were told"
}

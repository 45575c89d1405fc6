# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - the harness of the integration tests; sourced, for sh and bash.
#
# Everything happens on loopback, on ports that the kernel picks or that were
# free a moment ago, in $TMP, which is gone at the end. Programs are found in $BUILD.
#
#   make_keys          $TMP/key (the client's), $TMP/other_key, $TMP/authorized_keys
#   start_sshd [LINE]  OpenSSH's sshd, with extra config lines; $SSHD_PORT, $SSHD_PID
#   start_serve [LINE] repld serve, with extra [repld] lines; $SERVE_PORT, $SERVE_PID
#   trust PORT KEY     put the host key of that port into $TMP/known_hosts
#   client ARG...      channel_cat with the test's key and known hosts
#   start_target       keys, repld serve; $T is its name for replctl
#   ctl ARG...         replctl with the test's key and known hosts
#   ctl_start ARG...   the same in the background, output to $TMP/bg.out and .err; $CTL_PID. REPL_CONFIG has them if it is set
#   ctl_fails N PATTERN ARG...  it exits with N and a text that matches
#   equal FILE OTHER   they have the same bytes
#   change FILE OFFSET eight random bytes are written there
#   member NAME        of the JSON object on standard input
#   mark_pool NAME STATE [CHAIN]  a session marks the pool so, as its writer does, and is cut off
#   hold NAME MODE     a session with that pool open; $HOLD_PID
#   stop PID           SIGTERM and wait; also done for all at exit
#   fail TEXT          end the test as failed
#   lost TEXT          the same where a byte is lost or wrong, or a copy called what it is not: no second try of
#                      tests/run.sh makes that good (tests/tries.sh)
#                      A crash and a sanitizer's report end it so, too, whatever was made of it meanwhile: crashes below
#   fail_by STATUS TEXT  lost if a program that compares bytes has ended with 3, else fail: it comes as "|| fail_by $? ..."
#   left_out TEXT      a part can't be had here: the test goes on without it, and has been skipped if nothing else fails
#   aside FILE         it is written anew from now on; what it holds is looked at when the test ends
#   emptied FILE       the same while somebody writes to it
#   sanitized          what is tested is built with sanitizers
set -u

: "${BUILD:?directory of the built programs}"
REPLD=${REPLD:-$BUILD/repld}
REPLCTL=${REPLCTL:-$BUILD/replctl}
CHANNEL_CAT=${CHANNEL_CAT:-$BUILD/tests/integration/channel_cat}
SERVE_WITH=${SERVE_WITH:-$BUILD/tests/integration/serve_with}
PIDS=

TMP=$(mktemp -d "${TMPDIR:-/tmp}/repl-test.XXXXXX") || exit 1
chmod 755 "$TMP"
# Neither the keys nor the config of whoever runs the tests.
HOME=$TMP/home
export HOME TMP
unset SSH_AUTH_SOCK
mkdir -p "$HOME/.ssh"
printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$TMP/key" "$TMP/known_hosts" >"$TMP/login.conf"
# A sanitizer's report has a file of its own there, of whichever user: it is not gone with a log that somebody writes anew.
# What UBSan says next to ASan stays in the log.
if [ -n "${ASAN_OPTIONS-}${TSAN_OPTIONS-}" ]; then
	mkdir -m 1777 "$TMP/.reports"
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}log_path=$TMP/.reports/asan.log
	TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}log_path=$TMP/.reports/tsan.log
	export ASAN_OPTIONS TSAN_OPTIONS
fi
USER_NAME=$(id -un)
# repld serve does not run as root.
SERVE_USER=$USER_NAME
[ "$(id -u)" -ne 0 ] || SERVE_USER=nobody

fail() {
	failed FAILED "$*"
}

lost() {
	failed LOST "$*"
}

fail_by() {
	case $1 in
	3) lost "$2" ;;
	*) fail "$2" ;;
	esac
}

failed() {
	echo "$1: $2" >&2
	for log in "$TMP"/*.log "$TMP"/*.log.now; do
		[ -s "$log" ] && { echo "--- $log" >&2; tail -n 40 "$log" >&2; }
	done
	exit 1
}

equal() {
	cmp "$1" "$2" >&2 || lost "$1 and $2 differ"
}

# bash calls it, in a child: a check that is none makes no test pass. The words of its caller may go elsewhere.
command_not_found_handle() {
	echo "no command '$1'" >>"$TMP/not_found"
	echo "$1: no such command" >&2
	return 127
}

aside() {
	[ ! -s "$1" ] || mv "$1" "$(mktemp "$1.XXXXXX")"
}

emptied() {
	cp "$1" "$(mktemp "$1.XXXXXX")" && : >"$1"
}

# What nobody may have said: a crash's end, or a sanitizer's report. A test that makes somebody say so has a pattern for
# that in CRASH_DUE.
CRASH='ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: |Assertion .* failed'
CRASH="$CRASH|ended by signal (4|6|7|8|11)\$|ERROR: Can't open file: .*/\.reports/"
CRASH_DUE='^$'

# said_by_all GREP-OPTION...: of what is said in files of the test's own, but programs, and in logs of its directories; pools,
# which are larger, have directories.
said_by_all() {
	find "$TMP" -maxdepth 2 -type f ! -perm /111 -size -8192k \( ! -path "$TMP/*/*" -o -name '*.log*' \) -exec env LC_ALL=C grep -a "$@" {} +
}

# crashes: those lines; false if there are none.
crashes() {
	said_by_all -hE "$CRASH" | grep -vE "$CRASH_DUE"
}

# What is tested is built with sanitizers: it is slow, and keeps memory that is freed.
sanitized() {
	grep -qE "__[at]san_init" "$REPLD"
}

# gone PID: it has ended, reaped or not.
gone() {
	{ read -r gone <"/proc/$1/stat"; } 2>/dev/null || return 0
	case ${gone##*) } in
	Z* | X*) return 0 ;;
	esac
	return 1
}

# children PID: its child processes. pgrep looks at every process of the machine for that.
children() {
	if [ -e "/proc/$$/task/$$/children" ]; then
		for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
			echo "$child"
		done
	else
		pgrep -P "$1"
	fi
}

stop() {
	kill -CONT "$1" 2>/dev/null
	kill "$1" 2>/dev/null
	wait_for 8 gone "$1" || kill -KILL "$1"
	wait "$1" 2>/dev/null
	return 0
}

# descendants PID: its children, theirs, and so on.
descendants() {
	for child in $(children "$1"); do
		echo "$child"
		descendants "$child"
	done
}

LEFT_OUT=
left_out() {
	echo "skipped: $*"
	LEFT_OUT=1
}

# What else must hold when a test has passed; false if it does not.
at_end() {
	:
}

cleanup() {
	status=$?
	trap - EXIT
	[ "$status" -ne 0 ] || at_end || status=1
	for pid in $PIDS; do
		stop "$pid"
	done
	# Whoever is left would hold the pipe that ctest reads to its end.
	for pid in $(descendants $$); do
		kill -KILL "$pid" 2>/dev/null
	done
	if [ "$status" -eq 0 ] && [ -s "$TMP/not_found" ]; then
		echo "FAILED: $(sort -u "$TMP/not_found")" >&2
		status=1
	fi
	if crashed=$(crashes); then
		echo "$crashed" | sed 's/^/CRASHED: /' >&2
		said_by_all -hE -A 40 "$CRASH" >&2
		status=1
	fi
	rm -rf "$TMP"
	[ "$status" -ne 0 ] || [ -z "$LEFT_OUT" ] || status=77
	exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# wait_for SECONDS COMMAND...: until it succeeds, looking every POLL_MS, which divides 1000.
wait_for() {
	tries=$(($1 * 1000 / ${POLL_MS:-50}))
	# With its leading zeroes.
	nap=$((1000 + ${POLL_MS:-50}))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep "0.${nap#1}"
	done
}

# signalled SIGNAL PID...: a signal is sent before it has its effect; this waits for that.
signalled() {
	signal=$1
	shift
	kill "-$signal" "$@" || return
	for signalled in "$@"; do
		case $signal in
		STOP) wait_for 10 threads_are T "$signalled" ;;
		KILL) wait_for 10 threads_are Z "$signalled" ;;
		esac
	done
}

# threads_are STATE PID: all threads of the process are, or it is gone.
threads_are() {
	! cat "/proc/$2"/task/*/stat 2>/dev/null | sed 's/^.*) \(.\).*/\1/' | grep -qv "[$1X]"
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

make_keys() {
	ssh-keygen -q -t ed25519 -N '' -C test -f "$TMP/key" || fail "ssh-keygen"
	ssh-keygen -q -t ed25519 -N '' -C other -f "$TMP/other_key" || fail "ssh-keygen"
	cp "$TMP/key.pub" "$TMP/authorized_keys"
	chmod 644 "$TMP/authorized_keys"
}

# trust PORT PUBLIC-KEY-FILE
trust() {
	echo "[127.0.0.1]:$1 $(cut -d ' ' -f 1,2 "$2")" >>"$TMP/known_hosts"
}

start_sshd() {
	if [ "$(id -u)" -eq 0 ]; then
		mkdir -p /run/sshd && chmod 755 /run/sshd
	fi
	SSHD_PORT=$(free_port)
	[ -e "$TMP/sshd_host_key" ] ||
		ssh-keygen -q -t ed25519 -N '' -f "$TMP/sshd_host_key" || fail "ssh-keygen"
	{
		echo "Port $SSHD_PORT"
		echo "ListenAddress 127.0.0.1"
		echo "HostKey $TMP/sshd_host_key"
		echo "AuthorizedKeysFile $TMP/authorized_keys"
		echo "PidFile none"
		echo "StrictModes no"
		echo "PermitRootLogin prohibit-password"
		echo "PasswordAuthentication no"
		echo "UsePAM no"
		# Nor what their shell does first: bash reads .bashrc when sshd starts it.
		echo "SetEnv HOME=$HOME"
		for line in "$@"; do
			echo "$line"
		done
	} >"$TMP/sshd_config"
	# Here, not by the background job: an earlier sshd's words are no sign of this one.
	aside "$TMP/sshd.log"
	: >"$TMP/sshd.log"
	"$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$TMP/sshd_config" \
		2>>"$TMP/sshd.log" &
	SSHD_PID=$!
	PIDS="$PIDS $SSHD_PID"
	wait_for 20 grep -q "Server listening" "$TMP/sshd.log" || fail "sshd does not start"
	trust "$SSHD_PORT" "$TMP/sshd_host_key.pub"
}

serve_port() {
	sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$TMP/serve.log" | tail -n 1
}

# The directory that an unprivileged repld serve may write to.
make_serve_dir() {
	mkdir -p "$TMP/serve/pools"
	# What an earlier one said is not for serve_ready to read.
	aside "$TMP/serve.log"
	cp "$TMP/authorized_keys" "$TMP/serve/authorized_keys"
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVE_USER" "$TMP/serve"
}

serve_ready() {
	PIDS="$PIDS $SERVE_PID"
	wait_for 20 grep -q "listening on" "$TMP/serve.log" || fail "repld serve does not start"
	SERVE_PORT=$(serve_port)
	ssh-keygen -y -f "$TMP/serve/host_key" >"$TMP/serve_host_key.pub" ||
		fail "the host key of repld serve"
	trust "$SERVE_PORT" "$TMP/serve_host_key.pub"
}

start_serve() {
	make_serve_dir
	{
		echo "[repld]"
		echo "pool-dir = $TMP/serve/pools"
		echo "listen = ${SERVE_ADDRESS:-127.0.0.1}:${SERVE_AT:-0}"
		echo "host-key = $TMP/serve/host_key"
		echo "authorized-keys = $TMP/serve/authorized_keys"
		[ "$(id -u)" -ne 0 ] || echo "user = $SERVE_USER"
		for line in "$@"; do
			echo "$line"
		done
	} >"$TMP/repld.conf"
	"$REPLD" serve --config "$TMP/repld.conf" >"$TMP/serve.log" 2>&1 &
	SERVE_PID=$!
	serve_ready
}

# start_serve_with PROGRAM [SESSIONS-MAX]: the embedded server with PROGRAM in repld's place.
start_serve_with() {
	make_serve_dir
	set -- "$SERVE_WITH" 127.0.0.1:0 "$TMP/serve/host_key" "$TMP/serve/authorized_keys" \
		"$1" "${2:-64}"
	if [ "$(id -u)" -eq 0 ]; then
		set -- setpriv --reuid="$SERVE_USER" --regid="$(id -g "$SERVE_USER")" \
			--clear-groups "$@"
	fi
	"$@" >"$TMP/serve.log" 2>&1 &
	SERVE_PID=$!
	serve_ready
}

client() {
	"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" "$@"
}

# expect_error CODE PATTERN COMMAND...: it fails with that code and a text that matches.
expect_error() {
	code=$1
	pattern=$2
	shift 2
	if "$@" </dev/null >"$TMP/out" 2>"$TMP/err"; then
		fail "no error where '$code' was due: $*"
	fi
	grep -q "^$code: " "$TMP/err" || fail "not '$code' but: $(cat "$TMP/err")"
	grep -Eq -- "$pattern" "$TMP/err" || fail "no '$pattern' in: $(cat "$TMP/err")"
}

start_target() {
	make_keys
	start_serve "$@"
	T=$SERVE_USER@127.0.0.1:$SERVE_PORT
}

# ctl_rebooted ARGUMENT...: as ctl, on a machine that was started anew since.
ctl_rebooted() {
	echo 01234567-89ab-cdef-0123-456789abcdef >"$TMP/boot"
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 OTHER_BOOT=$TMP/boot \
		LD_PRELOAD=$BUILD/tests/integration/other_boot.so "$REPLCTL" --identity "$TMP/key" \
		--known-hosts "$TMP/known_hosts" "$@" </dev/null
}

# Options would stand in each next step. Of a test that has a file of its own they are options.
ctl() {
	if [ -n "${REPL_CONFIG-}" ]; then
		"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" "$@" </dev/null
	else
		REPL_CONFIG=$TMP/login.conf "$REPLCTL" "$@" </dev/null
	fi
}

ctl_start() {
	REPL_CONFIG=${REPL_CONFIG-$TMP/login.conf} "$REPLCTL" "$@" \
		</dev/null >"$TMP/bg.out" 2>"$TMP/bg.err" &
	CTL_PID=$!
	PIDS="$PIDS $CTL_PID"
}

# ctl_kill SECONDS ARG...: killed so long after its lanes are open, if it is still there.
ctl_kill() {
	delay=$1
	shift
	lanes=$(lanes_opened)
	ctl_start "$@"
	wait_for 20 more_lanes "$lanes" || fail "no lanes are opened: $(cat "$TMP/bg.err")"
	sleep "$delay"
	kill -KILL "$CTL_PID" 2>/dev/null
	wait "$CTL_PID" 2>/dev/null
}

lanes_opened() {
	grep -c "lanes open on" "$TMP/serve.log"
}

more_lanes() {
	[ "$(lanes_opened)" -gt "$1" ] || ! kill -0 "$CTL_PID"
}

ctl_fails() {
	due=$1
	pattern=$2
	shift 2
	ctl "$@" >"$TMP/out" 2>"$TMP/err"
	status=$?
	[ "$status" -eq "$due" ] || fail "exit $status, not $due: replctl $*: $(cat "$TMP/err")"
	grep -Eq -- "$pattern" "$TMP/err" || fail "no '$pattern' in: $(cat "$TMP/err")"
}

change() {
	head -c 8 /dev/urandom | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

member() {
	python3 -c 'import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."):
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value)' "$1"
}

mark_pool() {
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"test"}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"'"$1"'","mode":"write"}}'
		echo '{"jsonrpc":"2.0","id":3,"method":"pool.mark","params":{"state":"'"$2"'"'"${3-}"'}}'
		sleep 0.3
	} | client cat "$T" >"$TMP/out" || fail "no session: $(cat "$TMP/out")"
	ctl info --json "$T/$1" | member state | grep -qx "$2" || fail "$1 is not $2: $(cat "$TMP/out")"
}

# The session ends when its standard input does: at the end of the test, or by stop.
hold() {
	# What the one before was answered is no answer to this one.
	aside "$TMP/hold.out"
	{
		echo '{"jsonrpc":"2.0","id":1,"method":"hello","params":{"versions":[1],"peer":"holder"}}'
		echo '{"jsonrpc":"2.0","id":2,"method":"pool.open","params":{"name":"'"$1"'","mode":"'"$2"'"}}'
		i=3
		while sleep 1; do
			echo '{"jsonrpc":"2.0","id":'"$i"',"method":"ping"}' || exit 0
			i=$((i + 1))
		done
	} | (exec "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/known_hosts" cat "$T") \
		>"$TMP/hold.out" 2>&1 &
	HOLD_PID=$!
	PIDS="$PIDS $HOLD_PID"
	wait_for 20 grep -q '"id": *2' "$TMP/hold.out" || fail "no session: $(cat "$TMP/hold.out")"
	grep '"id": *2' "$TMP/hold.out" | grep -q '"result"' ||
		fail "pool.open: $(cat "$TMP/hold.out")"
}

# SPDX-License-Identifier: BSD-3-Clause
# api_lib.sh - on top of lib.sh for the tests of the public API; bash.
#
#   start_api             api_shell in the background
#   api WORD...           one command; sets $STATUS, $MS, $TEXT
#   ok WORD...            the command must succeed
#   refused STATUS PATTERN WORD...  it must fail so, with a text that matches
#   within MS             the last command took at most that long
#   field NAME            that field of the last stat
#   configure TARGET...   a new configuration for these targets
#   pool NAME             target string of a pool on repld serve
#   sessions              the session processes of repld serve
#   session_of POOL       the one of them that has the pool open
#   same                  after compare or read: the replica has what memory has
#   whole_again SECONDS REPLICA WHAT  a replica that was lost comes back, and has all
# Pools are of class memory where /dev/shm is usable.
[ -w /dev/shm ] && [ -z "${API_DISK-}" ] && export TMPDIR=/dev/shm
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# An api_shell that has ended is told by api(), not by SIGPIPE; children have their own.
trap : PIPE
API_SHELL=$BUILD/tests/integration/api_shell
# The tests of deadlines say their own before configure; to others a slow machine is no loss.
OP_TIMEOUT=10000
MIB=1048576
# By their process: the descriptor that each reads from.
API_SHELLS=()

start_api() {
	aside "$TMP/api.log"
	coproc API { exec timeout -k 1 170 "$API_SHELL" 2>"$TMP/api.log"; }
	API_IN=${API[1]}
	API_OUT=${API[0]}
	api_pid=$API_PID
	API_CHILD=
	PIDS="$api_pid $PIDS"
	API_SHELLS[api_pid]=$API_IN
}

# Each api_shell that is still there ends in order: its leaks are looked for then. The others were killed.
at_end() {
	local fd pid status held=0

	for fd in "${API_SHELLS[@]}"; do
		exec {fd}>&-
	done
	for pid in "${!API_SHELLS[@]}"; do
		wait "$pid" 2>/dev/null
		status=$?
		case $status in
		# Of 127 a wait has told before.
		0 | 127 | 137 | 143) ;;
		*) echo "FAILED: api_shell ended with status $status" >&2 && held=1 ;;
		esac
	done
	return $held
}

# The process of api_shell itself, below timeout.
api_child() {
	children "$api_pid"
}

# lane_sockets [WORD]: how many the program has to ports of data lanes, those whose line has the word.
lane_sockets() {
	ss -tnopH state established | grep "pid=$(api_child)," | grep -v ":$SERVE_PORT " | grep -c "${1-}"
}

# lanes_kept COUNT: so many there are, and TCP looks after each.
lanes_kept() {
	[ "$(lane_sockets)" -eq "$1" ] && [ "$(lane_sockets 'timer:(keepalive')" -eq "$1" ]
}

stop_api() {
	exec {API_IN}>&-
	wait "$api_pid" || fail "api_shell ended with status $?"
}

api() {
	printf '%s\n' "$*" >&"$API_IN" || fail "api_shell is gone"
	IFS=' ' read -r -t "${API_WAIT:-120}" -u "$API_OUT" STATUS MS TEXT || fail "no answer to '$*'"
}

ok() {
	api "$@"
	[ "$STATUS" = REPL_OK ] || fail "'$*': $STATUS $TEXT"
}

refused() {
	local status=$1 pattern=$2

	shift 2
	api "$@"
	[[ $STATUS =~ ^$status$ ]] || fail "'$*': not $status but $STATUS $TEXT"
	[[ $TEXT =~ $pattern ]] || fail "'$*': no '$pattern' in: $TEXT"
}

within() {
	[ "$MS" -le "$1" ] || fail "took $MS ms, not $1 at most"
}

field() {
	local word

	for word in $TEXT; do
		case $word in
		"$1"=*) printf '%s\n' "${word#*=}" && return ;;
		esac
	done
	fail "no $1 in: $TEXT"
}

# is NAME VALUE: a field of the last stat.
is() {
	local value

	value=$(field "$1")
	[ "$value" = "$2" ] || fail "$1 is $value, not $2: $TEXT"
}

same() {
	[ "$TEXT" = same ] || lost "the replica differs"
}

configure() {
	local target

	ok config
	ok set identity "$TMP/key"
	ok set known-hosts "$TMP/known_hosts"
	ok set op-timeout "$OP_TIMEOUT"
	ok set close-timeout 2000
	for target in "$@"; do
		ok set target "$target"
	done
}

pool() {
	printf '%s\n' "$SERVE_USER@127.0.0.1:$SERVE_PORT/$1"
}

# repld serve has a process a connection, and each has a session as its child.
sessions() {
	local pid

	for pid in $(children "$SERVE_PID"); do
		children "$pid"
	done
}

# session_of POOL: the one that has it open.
session_of() {
	local pid

	for pid in $(sessions); do
		grep -q "/$1$" "/proc/$pid/maps" && echo "$pid" && return
	done
	return 1
}

no_sessions() {
	[ -z "$(sessions)" ]
}

# ---- losing a target ----

# What is lost later is not tried again as long as the test lasts.
stay_lost() {
	ok set reconnect-min 3600000
}

# hurt HOW: what happens to the one session of repld serve; undone by heal.
hurt() {
	hurt_pids=$(sessions)
	[ -n "$hurt_pids" ] || fail "no session to hurt"
	case $1 in
	stop) signalled STOP $hurt_pids ;;
	kill) signalled KILL $hurt_pids ;;
	serve)
		hurt_pids="$hurt_pids $(children "$SERVE_PID") $SERVE_PID"
		signalled KILL $hurt_pids
		wait "$SERVE_PID" 2>/dev/null
		;;
	esac
}

heal() {
	kill -KILL $hurt_pids 2>/dev/null
	wait_for 20 no_sessions || fail "sessions stay"
	kill -0 "$SERVE_PID" 2>/dev/null || start_serve
}

# heal_at PORT: the daemon is there again, under its old address.
heal_at() {
	kill -KILL $hurt_pids 2>/dev/null
	SERVE_AT=$1
	start_serve
	SERVE_AT=
}

# degraded REPLICA, established REPLICA: by its stat, for wait_for.
degraded() {
	api stat "$1"
	[ "$(field replication)" = 2 ]
}

established() {
	api stat "$1"
	[ "$(field replication)" = 0 ]
}

# What was killed or lost last may seem to be there for a moment: it can be read.
readable() {
	established "$1" || return
	api compare "$1"
	[ "$STATUS" = REPL_OK ]
}

# A difference is for same: not to be waited for, and not said where wait_for() would swallow it.
whole_again() {
	wait_for "$1" readable "$2" || fail "$3: it does not come back: $STATUS $TEXT"
	same
}

# A call succeeds now.
works() {
	api persist 0 0 64
	[ "$STATUS" = REPL_OK ]
}

# Time that a call may take beyond its deadline: a busy machine's.
LATE=1000
# ... and one that has nothing to wait for: less than any deadline.
PROMPT=700

# lose_one HOW POLICY: open, hurt the target, and see what each call does.
lose_one() {
	configure "$(pool "$1-$2")"
	ok set lanes 2
	ok set on-loss "$2"
	stay_lost
	ok map "$TMP/$1-$2" $((4 * MIB))
	ok open 1
	ok put 0 $((4 * MIB)) 1
	ok persist 0 0 $((4 * MIB))
	hurt "$1"
	lost_call "$2" persist 0 0 100
	within $((OP_TIMEOUT + LATE))
	lost_call "$2" persist 0 0 3000000
	within $PROMPT
	lost_call "$2" drain 1
	within $PROMPT
	lost_call "$2" atomic8 1 8
	within $PROMPT
	lost_call "$2" pair 1 0 8 8 8
	within $PROMPT
	refused REPL_E_LOST "replica 0 is lost" read 1 0 0 8
	within $PROMPT
	ok stat 0
	is connection 1
	is replication 2
	is data 2
	is error 1
	# What was refused nobody takes to be replicated.
	if [ "$2" = degrade ]; then is missed 5; else is missed 0; fi
	[[ $TEXT =~ reason=.. ]] || fail "no reason: $TEXT"
	api close
	within $((2000 + LATE))
	heal
}

# A call on a set whose only replica is lost: success if it may degrade.
lost_call() {
	local policy=$1

	shift
	if [ "$policy" = degrade ]; then
		ok "$@"
	else
		refused REPL_E_LOST "replica 0 is lost: .." "$@"
	fi
}

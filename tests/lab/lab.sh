# SPDX-License-Identifier: BSD-3-Clause
# The fault lab: four lanes write to two replicas, or three, while something befalls them, at a random moment.
#
# usage: lab.sh FAULT RUNS [FIRST-SEED]
#
# What holds after each run, whatever the fault:
#   - every call has returned by its deadline (I5)
#   - a replica is a beginning of what was drained (I2): none is labelled inconsistent, for what it
#     gets goes by a journal for which there is room. One that calls itself up to date has all that
#     was acknowledged, likewise one that drains wait for and that is in the generation of the program
#     which has died (I3), and while anything is acknowledged at least one place has it (I1)
#   - when the fault is over the program's replicas are up to date again by themselves, and after
#     an orderly end equal to the local pool
# The seed decides the moments. It is printed; to repeat a run: lab.sh FAULT 1 SEED.
# With LAB_RESULTS a line "FAULT RUNS" is added to that file.
case ${1-} in
power-cut* | target-upgraded) . "$(dirname "$0")/../power/on_disk.sh" ;;
*) [ -w /dev/shm ] && [ -z "${LAB_DISK-}" ] && export TMPDIR=/dev/shm ;;
esac
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/faults.sh"
. "$(dirname "$0")/faults_kills.sh"
FAULT=${1:?fault}
RUNS=${2:-1}
SEED=${3:-${LAB_SEED:-$RANDOM}}
LOAD=$BUILD/tests/lab/lab_load
CHECK=$BUILD/tests/lab/lab_check
LINK=$BUILD/tests/lab/lab_link
OP_TIMEOUT=2000
# What a busy machine may add to a deadline.
SLACK=1500

# random BELOW: the seed's next number.
random() {
	RANDOM_STATE=$(((RANDOM_STATE * 1103515245 + 12345) % 2147483648))
	RANDOM_VALUE=$((RANDOM_STATE / 65536 % $1))
}

# pause LEAST SPREAD: so many ms.
pause() {
	random "$2"
	sleep "$((($1 + RANDOM_VALUE) / 1000)).$(printf '%03d' $((($1 + RANDOM_VALUE) % 1000)))"
}

# ---- two targets, each in a place of its own ----

# target_start I: repld serve of target I, on its own link if there is one.
target_start() {
	local dir=$TMP/t$1 run=

	mkdir -p "$dir/pools"
	cp "$TMP/authorized_keys" "$dir/authorized_keys"
	[ "$(id -u)" -ne 0 ] || chown -R "$SERVE_USER" "$dir"
	{
		echo "[repld]"
		echo "pool-dir = $dir/pools"
		echo "listen = ${ADDRESS[$1]}:${PORT[$1]}"
		echo "host-key = $dir/host_key"
		echo "authorized-keys = $dir/authorized_keys"
		[ "$(id -u)" -ne 0 ] || echo "user = $SERVE_USER"
		[ -z "${TARGET_LINES-}" ] || printf '%s\n' "$TARGET_LINES"
	} >"$dir/repld.conf"
	aside "$TMP/t$1.log.now"
	[ -z "${NETNS[$1]}" ] || run="ip netns exec ${NETNS[$1]}"
	$run ${LAB_PRELOAD-} "${REPLD_OF[$1]:-$REPLD}" serve --config "$dir/repld.conf" >"$TMP/t$1.log.now" 2>&1 &
	SERVE[$1]=$!
	PIDS="$PIDS ${SERVE[$1]}"
	wait_for 10 grep -q "listening on" "$TMP/t$1.log.now" || {
		cat "$TMP/t$1.log.now" >&2
		fail "target $1 does not start"
	}
	[ "${PORT[$1]}" -ne 0 ] && return
	PORT[$1]=$(sed -n 's/.*listening on .*:\([0-9][0-9]*\)$/\1/p' "$TMP/t$1.log.now" | tail -n 1)
	ssh-keygen -y -f "$dir/host_key" >"$dir/host_key.pub" || fail "host key of target $1"
	echo "[${ADDRESS[$1]}]:${PORT[$1]} $(cut -d ' ' -f 1,2 "$dir/host_key.pub")" \
		>>"$TMP/known_hosts"
}

# The processes of target I: server, its connections, their sessions.
target_pids() {
	local connection

	for connection in $(children "${SERVE[$1]}"); do
		children "$connection"
		echo "$connection"
	done
	echo "${SERVE[$1]}"
}

session_pids() {
	local connection

	for connection in $(children "${SERVE[$1]}"); do
		children "$connection"
	done
}

has_session() {
	[ -n "$(session_pids "$1")" ]
}

# session_signal SIGNAL I: the session of target I, which there is.
session_signal() {
	local pids

	pids=$(session_pids "$2")
	[ -n "$pids" ] || fail "$WHAT: target $2 has no session for SIG$1"
	# shellcheck disable=SC2086
	kill "-$1" $pids || fail "$WHAT: SIG$1 to the session of target $2"
}

target_kill() {
	local pids

	pids=$(target_pids "$1")
	# shellcheck disable=SC2086
	kill -KILL $pids 2>/dev/null
	wait "${SERVE[$1]}" 2>/dev/null
	for pid in $pids; do
		wait_for 10 gone "$pid" || fail "process $pid of target $1 stays"
	done
}

# link_start I: namespace and link of target I.
link_start() {
	NETNS[$1]=repl-lab-$$-$1
	ADDRESS[$1]=10.$(($$ % 200 + 20)).$(($$ / 200 % 250)).$((4 * $1 + 2))
	ip netns add "${NETNS[$1]}" 2>/dev/null || exit 77
	mkfifo "$TMP/link$1"
	"$LINK" "rl$$-$1" "${NETNS[$1]}" "$SEED" <"$TMP/link$1" >"$TMP/link$1.said" &
	PIDS="$PIDS $!"
	eval "exec $((7 + $1))>\"\$TMP/link$1\""
	wait_for 10 grep -q up "$TMP/link$1.said" || exit 77
	ip addr add "${ADDRESS[$1]%.*}.$((4 * $1 + 1))/30" dev "rl$$-$1" || exit 77
	ip link set "rl$$-$1" up || exit 77
	ip -n "${NETNS[$1]}" addr add "${ADDRESS[$1]}/30" dev far || exit 77
	ip -n "${NETNS[$1]}" link set far up && ip -n "${NETNS[$1]}" link set lo up || exit 77
}

# link I WAY WHAT [NUMBER]
link() {
	echo "${*:2}" >&$((7 + $1))
}

links_cleared() {
	[ "$(grep -c hurt "$TMP/link$1.said")" -gt "$2" ]
}

# link_clear I: all is well. link_hurt I: something was not, this time or one before.
link_clear() {
	local before

	before=$(grep -c hurt "$TMP/link$1.said")
	link "$1" both clear
	wait_for 10 links_cleared "$1" "$before" || fail "$WHAT: the link does not answer"
}

link_hurt() {
	grep hurt "$TMP/link$1.said" | grep -qvx "hurt 0" || fail "$WHAT: the link has hurt nothing"
}

lab_cleanup() {
	local status=$?

	ip netns del "${NETNS[0]}" 2>/dev/null
	ip netns del "${NETNS[1]}" 2>/dev/null
	# Gone at once, also while processes that are stopped next hold files there.
	for mount in ${MOUNTS-}; do
		umount -l "$mount"
	done
	(exit $status)
	cleanup
}

# ---- the load ----

target_text() {
	echo "$SERVE_USER@${ADDRESS[$1]}:${PORT[$1]}/$POOL"
}

# load_begin CREATE [KEY=VALUE...]: it is being opened when this returns.
load_begin() {
	rm -f "$TMP/say" "$TMP/said"
	mkfifo "$TMP/say"
	aside "$TMP/load.log"
	timeout -k 1 170 ${LAB_PRELOAD-} "$LOAD" "$LOCAL" "$TMP/journal" "$1" "${LOAD_PAUSE_US:-300}" \
		"$(target_text 0)" "$(target_text 1)" ${THIRD:+"$THIRD$(target_text 2)"} \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout="$OP_TIMEOUT" \
		close-timeout=5000 connect-timeout=5000 "${RECONNECT[@]}" "${@:2}" ${LOAD_KEYS-} <"$TMP/say" \
		>"$TMP/said" 2>"$TMP/load.log" &
	load_waiter=$!
	exec 6>"$TMP/say"
	wait_for 10 load_child || fail "$WHAT: the load is not begun"
	load=$(children "$load_waiter")
}

load_child() {
	[ -n "$(children "$load_waiter")" ]
}

# load_start CREATE [KEY=VALUE...]: it is open when this returns.
load_start() {
	load_begin "$@"
	wait_for 40 load_ready || fail "$WHAT: the load does not start"
	! grep -q "acknowledged updates are here" "$TMP/load.log" || lost "$WHAT: $(cat "$TMP/load.log")"
	grep -q ready "$TMP/said" || fail "$WHAT: the load ends: $(cat "$TMP/load.log")"
}

load_ready() {
	grep -q ready "$TMP/said" || gone "$load_waiter"
}

load_is_well() {
	: >"$TMP/said"
	echo well >&6
	wait_for 10 grep -q well "$TMP/said" && grep -q "well yes" "$TMP/said"
}

load_stop() {
	echo stop >&6
	exec 6>&-
	wait "$load_waiter" || fail "$WHAT: the load ended with $?: $(cat "$TMP/load.log")"
}

load_kill() {
	kill -KILL "$load" || fail "$WHAT: there is no load to kill"
	load_was_killed
}

# load_was_killed: by us, and had not ended by itself before.
load_was_killed() {
	local status

	exec 6>&-
	wait "$load_waiter" 2>/dev/null
	status=$?
	[ "$status" -eq 137 ] || fail "$WHAT: the load ended with $status: $(cat "$TMP/load.log")"
}

# load_halt, load_resume: it is stopped in between, as long as STOPPED_MS says.
load_halt() {
	kill -STOP "$load" || fail "$WHAT: there is no load to stop"
	STOPPED_MS=${EPOCHREALTIME/[.,]/}
}

load_resume() {
	kill -CONT "$load" || fail "$WHAT: there is no load to go on"
	STOPPED_MS=$(((${EPOCHREALTIME/[.,]/} - STOPPED_MS) / 1000))
}

# ---- what must hold ----

# info I: of the pool on target I, by its own word, in $TMP/info.
info() {
	timeout 30 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json info \
		"$(target_text "$1")" >"$TMP/info" 2>"$TMP/info.log"
}

state() {
	info "$1" && member state <"$TMP/info"
}

# The generation in which the program was.
local_generation() {
	"$REPLCTL" why "$LOCAL" 2>/dev/null | sed -n 's/.*: generation \([0-9a-f-]*\),.*/\1/p'
}

# left_with I GENERATION: what the replica that info has told of holds, whose program died in that one: "acked" or
# "any". In its own generation one that drains wait for lacks nothing.
left_with() {
	local waited_for=yes

	case ${LOAD_KEYS-}$1${THIRD-} in
	*ack=* | *2async-target=) waited_for=no ;;
	esac
	case $(member state <"$TMP/info"),$(member writer_open <"$TMP/info") in
	up-to-date,False) echo acked ;;
	up-to-date,True | unknown,*)
		[ $waited_for = yes ] && [ "$(member generation <"$TMP/info")" = "$2" ] && echo acked ||
			echo any
		;;
	*) echo any ;;
	esac
}

# verify I: the local pool and the replica on target I are compared; what that tells is in $TMP/verify.
verify() {
	timeout 60 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" --json verify \
		"$LOCAL" "$(target_text "$1")" >"$TMP/verify" 2>"$TMP/verify.log"
}

check_calls() {
	local worst

	worst=$(sed -n 's/.*worst call \([0-9]*\) ms.*/\1/p' "$TMP/verdict" | tail -n 1)
	[ "$worst" -le $((OP_TIMEOUT + SLACK + ${STOPPED_MS:-0})) ] ||
		fail "$WHAT: a call took $worst ms of $OP_TIMEOUT"
}

# check_image IMAGE acked|any
check_image() {
	"$CHECK" "$TMP/journal" "$1" "$2" >"$TMP/verdict" ||
		lost "$WHAT: $1 ($2): $(cat "$TMP/verdict")"
}

# The program has ended in order, with all replicas up to date.
check_equal() {
	for i in $TARGETS; do
		[ "$(state $i)" = up-to-date ] || lost "$WHAT: target $i is $(state $i)"
		cmp "$LOCAL" "$TMP/t$i/pools/$POOL" || lost "$WHAT: target $i differs"
		verify $i || lost "$WHAT: verify of target $i: $(cat "$TMP/verify.log")"
		check_image "$TMP/t$i/pools/$POOL" acked
		check_calls
	done
	[ "$(sed -n 's/.* \([0-9]*\) errors.*/\1/p' "$TMP/verdict")" -le "${ERRORS_MAX:-0}" ] ||
		fail "$WHAT: calls failed: $(cat "$TMP/verdict")"
}

# The program has died: each replica is a beginning, somebody has all, and so has each that claims to.
check_left() {
	local whole=0 now generation

	generation=$(local_generation)
	[ -n "$generation" ] || fail "$WHAT: no generation of $LOCAL"
	for i in $TARGETS; do
		now=$(state $i)
		STATES="$STATES $now"
		case $now in
		up-to-date | unknown | outdated) ;;
		*) lost "$WHAT: target $i is '$now': $(cat "$TMP/info.log")" ;;
		esac
		# A round log that a power cut has left holds what the file may lack.
		timeout 30 "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" probe \
			"$(target_text "$i")" >/dev/null 2>"$TMP/info.log" ||
			lost "$WHAT: probe of target $i: $(cat "$TMP/info.log")"
		check_image "$TMP/t$i/pools/$POOL" "$(left_with "$i" "$generation")"
		"$CHECK" "$TMP/journal" "$TMP/t$i/pools/$POOL" acked >/dev/null && whole=$((whole + 1))
	done
	[ $whole -ge "${WHOLE_LEAST:-1}" ] ||
		lost "$WHAT: $whole replicas have all that was acknowledged:$STATES"
	check_image "$LOCAL" any
}

# All is well again by itself. What has just happened is noticed with the next update.
check_well() {
	sleep 0.3
	wait_for "${WELL_S:-30}" load_is_well || {
		echo >&6
		sleep 0.5
		fail "$WHAT: not well again: $(cat "$TMP/said" "$TMP"/t?.log.now)"
	}
}

# ---- run ----

declare -a NETNS=('' '' '') ADDRESS=(127.0.0.1 127.0.0.1 127.0.0.1) PORT=(0 0 0) SERVE REPLD_OF
TARGETS="0 1"
RANDOM_STATE=$SEED
RECONNECT=(reconnect-max=1000)
make_keys
trap lab_cleanup EXIT
fault_setup "$FAULT" || fail "no fault '$FAULT'"
for i in $TARGETS; do
	target_start "$i"
done
for ((run = 0; run < RUNS; run++)); do
	RANDOM_STATE=$((SEED + run))
	POOL=p$((SEED + run))
	LOCAL=${HERE:-$TMP}/$POOL
	WHAT="$FAULT, seed $((SEED + run))"
	STATES=
	rm -f "$TMP/journal"
	fault_run "$FAULT"
	echo "$WHAT: held:$STATES $(tail -n 1 "$TMP/verdict")"
	rm -f "$LOCAL"* "$TMP"/t?/pools/"$POOL"*
done
[ -z "${LAB_RESULTS-}" ] || echo "$FAULT $RUNS" >>"$LAB_RESULTS"

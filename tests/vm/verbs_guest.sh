# SPDX-License-Identifier: BSD-3-Clause
# In a guest of verbs.sh, initiator and target on one RDMA device in software: what is asked for by name,
# one cell after the other. What pools lie on and by which methods is cells.sh's business.
#
#   auto      verbs where it can be had, else tcp, and why is told
#   ipv6      an address of that family is an RDMA device's as well
#   nodes     which file of /dev/infiniband can't be opened is told
#   memlock   too low a limit of locked memory on either side is told with the numbers
#   hostile   tokens, RMA and floods of an initiator that means harm, as tests/fault has them by tcp
#   sessions  16 sessions at once, two lanes each
#   kill      either side is stopped or killed
#   fork      a child of the program changes nothing of what its parent sends
#   source    of a pool on device DAX large writes are taken from there, and right; not with too low a limit
#             of locked memory, which is told; and a child of the program keeps its pool
here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest_lib.sh"
. "$here/../integration/api_lib.sh"

# Emulated, beside other tests, everything takes its time; cells about deadlines set their own.
OP_TIMEOUT=30000
CONNECT_TIMEOUT=60000
HEARTBEAT_TIMEOUT=20000
API_WAIT=90
RXE=10.9.0.1
API_RANDOM=$BUILD/tests/integration/api_random
PROVIDER=verbs

eval "plain_$(declare -f configure)"
configure()
{
	plain_configure "$@"
	ok set provider $PROVIDER
	ok set connect-timeout $CONNECT_TIMEOUT
	ok set heartbeat-timeout $HEARTBEAT_TIMEOUT
}

# target [LINE...]: repld serve on the RDMA device's address.
target()
{
	[ -e "$TMP/key" ] || make_keys
	start_serve "data-address = $RXE" "log-level = debug" "heartbeat-timeout = 60000" "$@"
}

end_target()
{
	stop "$SERVE_PID"
}

# opened PATTERN: what the target said of the lanes that it opened last.
opened()
{
	local line

	line=$(grep "lanes open on" "$TMP/serve.log" | tail -n 1)
	[[ $line =~ $1 ]] || fail "no '$1' in: $line"
}

# random METHOD POOL: single ranges and pairs from three lanes, compared after each call.
random()
{
	timeout 120 "$API_RANDOM" "$TMP/$2" $((4 * MIB)) "${SEED:-7}" 3 1 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=$OP_TIMEOUT \
		connect-timeout=$CONNECT_TIMEOUT heartbeat-timeout=$HEARTBEAT_TIMEOUT \
		provider=$PROVIDER method="$1" target="$(pool "$2")" peek="$TMP/serve/pools/$2" ||
		fail_by $? "$1 on $2"
	equal "$TMP/$2" "$TMP/serve/pools/$2"
}

# auto: verbs where it can be had; else tcp, and why is told.
# unheard, heard: the connection manager's messages to the target get lost; what goes by TCP arrives.
unheard()
{
	ip route add $RXE dev dummy0 table 100 &&
		ip neigh add $RXE lladdr 02:00:00:00:00:99 dev dummy0 nud permanent &&
		ip rule add pref 1 ipproto tcp lookup local && ip rule add pref 2 to $RXE lookup 100 &&
		ip rule add pref 3 lookup local && ip rule del pref 0 || fail "no rules"
}

heard()
{
	ip rule add pref 0 lookup local && ip rule del pref 2 || fail "no rules"
}

cell_auto()
{
	PROVIDER=auto
	target
	random auto first
	opened "by verbs"
	end_target
	# It does not wait for an answer by verbs for as long as this program would.
	start_serve "data-address = $RXE" "heartbeat-timeout = 10000"
	unheard
	random auto unheard
	opened "by tcp"
	heard
	end_target
	# The port is on loopback, which no RDMA device has.
	start_serve "data-address = 127.0.0.1"
	random auto second
	opened "by tcp"
	PROVIDER=verbs
	start_api
	configure "$(pool third)"
	ok map "$TMP/third" $MIB
	refused "REPL_E_(REFUSED|UNREACHABLE)" "verbs: no RDMA device that can be used has" open 1
	stop_api
	end_target
}

cell_ipv6()
{
	ip -6 addr add fd00:9::1/64 dev dummy0 nodad || fail "no address"
	wait_for 10 grep -qr ^fd00:0009: /sys/class/infiniband/rxe0/ports/1/gids || fail "no GID of it"
	[ -e "$TMP/key" ] || make_keys
	start_serve "data-address = fd00:9::1"
	random auto sixth
	opened "on fd00:9::1 port .* by verbs"
	end_target
}

# not_opened PATTERN: the target, a user's, says so.
not_opened()
{
	refused REPL_E_REFUSED "$1" open 1
	echo "$TEXT"
}

cell_nodes()
{
	local nodes=/dev/infiniband

	target
	start_api
	configure "$(pool nodes)"
	ok map "$TMP/nodes" $MIB
	chmod 600 $nodes/uverbs0
	not_opened "user [0-9]+ must be .* $nodes/uverbs0 .*: Permission denied"
	chmod 600 $nodes/rdma_cm
	not_opened "user [0-9]+ must be .* $nodes/rdma_cm .*: Permission denied"
	mv $nodes/rdma_cm $nodes/away
	not_opened "no $nodes/rdma_cm: load the kernel's module rdma_ucm"
	mv $nodes/away $nodes/rdma_cm
	chmod 666 $nodes/rdma_cm $nodes/uverbs0
	ok open 1
	ok close
	stop_api
	end_target
}

# Too low a limit of locked memory, of the target (a user's) and of the program.
cell_memlock()
{
	ulimit -l 64
	target
	start_api
	configure "$(pool locked)"
	ok map "$TMP/locked" $MIB
	refused REPL_E_LIMIT "RLIMIT_MEMLOCK. is 64 KiB, .*needs? .* KiB" open 1
	echo "$TEXT"
	PROVIDER=auto
	configure "$(pool locked)"
	ok open 1
	api profile 0
	echo "$TEXT"
	ok close
	opened "by tcp"
	stop_api
	end_target
	PROVIDER=verbs
	# Enough for the pool, and not for what it is to be: told before anything has grown.
	ulimit -l 32768
	target
	start_api
	configure "$(pool grown)"
	ok set lanes 1
	ok map "$TMP/grown" $MIB
	ok open 1
	opened "by verbs"
	ok extend $((64 * MIB))
	refused REPL_E_LIMIT "RLIMIT_MEMLOCK. is 32768 KiB, .*needs? .* KiB" grow $((64 * MIB))
	echo "$TEXT"
	[ "$(stat -c %s "$TMP/serve/pools/grown")" = $MIB ] || fail "it has grown"
	ok grow $((2 * MIB))
	ok put $MIB $MIB 3
	ok persist 0 $MIB $MIB
	ok stat 0
	is replication 0
	ok close
	stop_api
	end_target
	ulimit -l unlimited
	target
	chmod 755 "$TMP"
	mkdir -p "$TMP/user"
	cp "$TMP/key" "$TMP/known_hosts" "$TMP/user"
	chown -R nobody "$TMP/user"
	if (
		ulimit -l 64
		setpriv --reuid=nobody --clear-groups "$API_RANDOM" "$TMP/user/pool" $MIB 1 1 1 \
			identity="$TMP/user/key" known-hosts="$TMP/user/known_hosts" \
			connect-timeout=$CONNECT_TIMEOUT provider=verbs target="$(pool mine)" >"$TMP/out" 2>&1
	); then
		fail "a limit of 64 KiB was enough"
	fi
	cat "$TMP/out"
	grep -Eq "RLIMIT_MEMLOCK. is 64 KiB, .* KiB" "$TMP/out" || fail "no text about the limit"
	end_target
}

hostile()
{
	timeout 120 "$BUILD/tests/fault/hostile" -i "$TMP/key" -k "$TMP/known_hosts" -p verbs \
		"$1" "$(pool "$1")" >"$TMP/out" 2>&1 || fail_by $? "$1: $(cat "$TMP/out")"
	cat "$TMP/out"
	! grep "ended by signal" "$TMP/serve.log" || fail "the target crashed"
}

cell_hostile()
{
	local mode

	target
	for mode in tokens rma window flood; do
		hostile $mode
	done
	end_target
	# The data port closes after that time.
	start_serve "data-address = $RXE" "heartbeat-timeout = 8000"
	hostile late
	end_target
}

cell_sessions()
{
	local i targets=()

	target
	for i in $(seq 16); do
		targets+=("$(pool "s$i")")
	done
	start_api
	configure "${targets[@]}"
	ok set lanes 2
	ok map "$TMP/pool" $MIB
	ok put 0 $MIB 1
	ok open 1
	[ "$(sessions | wc -l)" -eq 16 ] || fail "$(sessions | wc -l) sessions"
	ok put 0 $MIB 2
	ok persist 0 0 $((MIB / 2))
	ok persist 1 $((MIB / 2)) $((MIB / 2))
	for i in $(seq 0 15); do
		established "$i" || fail "replica $i is lost: $TEXT"
	done
	ok close
	stop_api
	[ "$(grep -c "2 lanes open on .* by verbs" "$TMP/serve.log")" -eq 16 ] || fail "not all by verbs"
	for i in $(seq 16); do
		equal "$TMP/pool" "$TMP/serve/pools/s$i"
	done
	end_target
}

cell_kill()
{
	local how

	OP_TIMEOUT=8000
	LATE=5000
	PROMPT=2000
	target
	start_api
	for how in kill stop; do
		lose_one $how degrade
	done
	lose_one kill fail
	configure "$(pool back)"
	ok set reconnect-max 1000
	ok map "$TMP/back" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	hurt kill
	ok put 0 $MIB 2
	ok persist 0 0 $MIB
	wait_for 60 established 0 || fail "not back: $TEXT"
	opened "by verbs"
	wait_for 20 cmp -s "$TMP/back" "$TMP/serve/pools/back" || lost "the replica differs"
	kill -KILL "$(api_child)"
	wait_for 60 no_sessions || fail "the session stays"
	start_api
	configure "$(pool back)"
	ok map "$TMP/back" $MIB
	ok open 1
	opened "by verbs"
	ok close
	stop_api
	end_target
}

# fork_parent FILE POOL: the program that forks; its output is $TMP/out.
fork_parent()
{
	printf '%s\n' '[repl]' "identity = $TMP/key" "known-hosts = $TMP/known_hosts" "provider = verbs" \
		"connect-timeout = $CONNECT_TIMEOUT" "op-timeout = $OP_TIMEOUT" \
		"heartbeat-timeout = $HEARTBEAT_TIMEOUT" "lanes = 1" "target = $(pool "$2")" >"$TMP/repl.conf"
	REPL_CONFIG=$TMP/repl.conf timeout 120 "$BUILD/tests/integration/fork_parent" "$1" \
		>"$TMP/out" 2>&1 || fail_by $? "$(cat "$TMP/out")"
	opened "by verbs"
}

cell_fork()
{
	target
	fork_parent "$TMP/forked" forked
	equal "$TMP/forked" "$TMP/serve/pools/forked"
	end_target
}

# uncopied FILE METHOD POOL TEXT [COMMAND...]: random() of FILE by way of COMMAND; what is told of large writes
# has TEXT in it.
uncopied()
{
	local file=$1 method=$2 pool=$3 text=$4

	shift 4
	timeout 120 "$@" "$API_RANDOM" "$file" $((16 * MIB)) "${SEED:-7}" 2 1 \
		identity="$TMP/user/key" known-hosts="$TMP/user/known_hosts" op-timeout=$OP_TIMEOUT \
		connect-timeout=$CONNECT_TIMEOUT heartbeat-timeout=$HEARTBEAT_TIMEOUT \
		provider=verbs method="$method" target="$(pool "$pool")" \
		${PEEK:+peek="$TMP/serve/pools/$pool"} >"$TMP/out" 2>&1 || fail_by $? "$method: $(cat "$TMP/out")"
	cat "$TMP/out"
	grep -Eq "$text" "$TMP/out" || fail "$method: no '$text'"
}

# rights WHO PATTERN: what WHO has registered, and with which access: all of it is like that.
rights()
{
	cat "$TMP/rights.$1"
	! grep -Ev "$2" "$TMP/rights.$1" || fail "the $1's memory is registered otherwise than as $2"
}

cell_source()
{
	local as_user=(setpriv --reuid=nobody --clear-groups) direct='^[1-9][0-9]+ of .* = from the pool \('
	local seen=(env "LD_PRELOAD=$BUILD/tests/vm/librights.so" "RIGHTS=$TMP/rights.program")

	nvdimms
	namespace 0 devdax
	chmod 666 "$DEVICE"
	chmod 755 "$TMP"
	install -m 666 /dev/null "$TMP/rights.target"
	LD_PRELOAD=$BUILD/tests/vm/librights.so RIGHTS=$TMP/rights.target target
	mkdir -p "$TMP/user"
	cp "$TMP/key" "$TMP/known_hosts" "$TMP/user"
	PEEK=yes
	# libfabric's cache gives all rights to all that it registers: then the pool is not.
	uncopied "$DEVICE" auto cached '^0 of .* = copied \(libfabric would let the target write' "${seen[@]}"
	! grep " $((16 * MIB)) " "$TMP/rights.program" || fail "the program's pool is registered"
	export FI_MR_CACHE_MAX_COUNT=0
	rm "$TMP/rights.program"
	uncopied "$DEVICE" auto seen "$direct" "${seen[@]}"
	grep " $((16 * MIB)) " "$TMP/rights.program" || fail "the program's pool is not registered"
	rights program " 0x[01]\$"
	# From afar only what is the pool's: a page of it is tried.
	rights target " ($((16 * MIB))|4096) 0xf\$| 0x1\$"
	uncopied "$DEVICE" auto direct "$direct"
	uncopied "$DEVICE" write-imm imm "$direct"
	uncopied "$TMP/plain" auto plain '^0 of .* = copied \(the pool.s mapping is of .*/plain, which is no'
	fork_parent "$DEVICE" child
	cat "$TMP/out"
	grep -Eq '^[1-9][0-9]+ bytes uncopied' "$TMP/out" || fail "the program that forks: all was copied"
	chown -R nobody "$TMP/user"
	PEEK=
	uncopied "$DEVICE" auto mine "$direct" "${as_user[@]}"
	ulimit -l $((24 * 1024))
	uncopied "$DEVICE" auto low '^0 of .* = copied \(.*RLIMIT_MEMLOCK. is 24576 KiB' "${as_user[@]}"
	end_target
}

rxe $RXE
for cell in "$@"; do
	echo "== $cell"
	# What one has bound or started is not the next one's business.
	("cell_$cell") || exit
done

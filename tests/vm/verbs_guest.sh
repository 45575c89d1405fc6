# SPDX-License-Identifier: BSD-3-Clause
# In a guest with rxe0: what verbs_*.sh ask for by name, one cell after the other.
. "$(dirname "$0")/../vm/guest_lib.sh"
. "$(dirname "$0")/api_lib.sh"

# Emulated, beside other tests, everything takes its time; cells about deadlines set their own.
OP_TIMEOUT=30000
CONNECT_TIMEOUT=60000
RXE=10.9.0.1
API_RANDOM=$BUILD/tests/integration/api_random
PROVIDER=verbs

eval "plain_$(declare -f configure)"
configure()
{
	plain_configure "$@"
	ok set provider $PROVIDER
	ok set connect-timeout $CONNECT_TIMEOUT
}

# target [LINE...]: repld serve on the RDMA device's address.
target()
{
	[ -e "$TMP/key" ] || make_keys
	start_serve "data-address = $RXE" "log-level = debug" "$@"
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

# random METHOD POOL [THREADS]: single ranges and pairs, from some lanes, compared after each call.
random()
{
	local peek=("peek=$TMP/serve/pools/$2")

	# What is complete lies in the ring, and in the file only later.
	[ "$1" != deposit ] || peek=()
	timeout 120 "$API_RANDOM" "$TMP/$2" $((4 * MIB)) "${SEED:-7}" "${3:-3}" 1 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" op-timeout=$OP_TIMEOUT connect-timeout=$CONNECT_TIMEOUT \
		provider=$PROVIDER method="$1" target="$(pool "$2")" \
		"${peek[@]}" || fail "$1 on $2"
	equal "$TMP/$2" "$TMP/serve/pools/$2"
}

verbs_ctl()
{
	printf '[repl]\nprovider = %s\nop-timeout = 30000\nconnect-timeout = 30000\n' "$PROVIDER" >"$TMP/ctl.conf"
	ctl --config "$TMP/ctl.conf" "$@"
}

# refused_method METHOD PATTERN: not correct for the pool.
refused_method()
{
	start_api
	configure "$(pool refused)"
	ok set method "$1"
	ok map "$TMP/refused" $MIB
	refused REPL_E_REFUSED "$2" open 1
	stop_api
}

# A pool in memory: by each method, by RDMA.
cell_methods()
{
	local method

	target
	for method in message general-purpose write-imm appliance write-imm-read auto \
		deposit; do
		echo "$method over verbs"
		random "$method" "$method"
		opened "by verbs(, with|$)"
		[ "$method" != deposit ] || opened "receive ring"
	done
	refused_method completion "not correct for this target"
	verbs_ctl probe "$(pool auto)" >"$TMP/probe" || fail "probe"
	cat "$TMP/probe"
	grep -Eq '^rma +yes +assumed: it is tried' "$TMP/probe" || fail "rma is not told"
	grep -Eq '^provider-class +software' "$TMP/probe" || fail "rxe is no RNIC"
	end_target
}

# on FILESYSTEM PATTERN: messages only; reading by the window.
messages_only()
{
	local file

	random auto auto
	opened "by verbs, messages only"
	random message message
	refused_method general-purpose "rma = no"
	verbs_ctl probe "$(pool auto)" >"$TMP/probe" || fail "probe"
	cat "$TMP/probe"
	grep -Eq "^rma +no +$1" "$TMP/probe" || fail "no evidence against rma"
	verbs_ctl verify "$TMP/auto" "$(pool auto)" || fail "verify"
	printf other | dd of="$TMP/auto" bs=1 seek=70000 conv=notrunc 2>/dev/null
	verbs_ctl verify "$TMP/auto" "$(pool auto)" && fail "verify finds no difference"
	verbs_ctl restore --force "$(pool auto)" "$TMP/restored" || fail "restore"
	equal "$TMP/restored" "$TMP/serve/pools/auto"
	grep -q "FETCH" "$TMP/serve.log" && fail "a fetch failed"
	return 0
}

# A file system with a page cache; only its pools are on it.
pools_on()
{
	[ -e "$TMP/key" ] || make_keys
	mkdir -p "$TMP/serve/pools"
	mount --bind "$1" "$TMP/serve/pools" || fail "bind mount"
}

cell_page()
{
	truncate -s 200M /run/disk && modprobe loop && losetup /dev/loop0 /run/disk ||
		fail "no disk"
	fs /dev/loop0 /mnt ext4
	pools_on /mnt
	target
	messages_only "page cache"
	end_target
	umount "$TMP/serve/pools"
}

cell_fsdax()
{
	nvdimms
	namespace 0 fsdax
	fs "$DEVICE" /mnt2 ext4 dax
	pools_on /mnt2
	target
	messages_only "tried: .*not supported"
	end_target
	umount "$TMP/serve/pools"
}

# auto: verbs where it can be had; else tcp, and why is told.
cell_auto()
{
	PROVIDER=auto
	target
	random auto first
	opened "by verbs"
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

cell_sessions()
{
	local i pids=

	target
	for i in $(seq 16); do
		timeout 120 "$API_RANDOM" "$TMP/s$i" $MIB "$i" 1 1 identity="$TMP/key" \
			known-hosts="$TMP/known_hosts" op-timeout=60000 connect-timeout=60000 \
			provider=verbs target="$(pool "s$i")" >"$TMP/s$i.out" 2>&1 &
		pids="$pids $!"
	done
	for i in $pids; do
		wait "$i" || fail "a session: $(cat "$TMP"/s*.out)"
	done
	[ "$(grep -c "lanes open on .* by verbs" "$TMP/serve.log")" -eq 16 ] || fail "not 16 sessions"
	for i in $(seq 16); do
		equal "$TMP/s$i" "$TMP/serve/pools/s$i"
	done
	end_target
}

# The link goes down without a word: each call is back by its deadline; and up again: the replica comes back.
cell_link()
{
	OP_TIMEOUT=2000
	LATE=3000
	target
	start_api
	configure "$(pool link)"
	ok set lanes 2
	ok set reconnect-max 1000
	ok set connect-timeout 4000
	ok map "$TMP/link" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	opened "by verbs"
	ip link set dummy0 down
	ok persist 0 0 100
	echo "noticed after $MS ms"
	within $((OP_TIMEOUT + LATE))
	ok put 0 $MIB 2
	ok persist 1 0 $MIB
	within 200
	ok stat 0
	is replication 2
	ip link set dummy0 up
	wait_for 25 established 0 || fail "not back: $TEXT"
	ok put 0 $MIB 3
	ok persist 0 0 $MIB
	equal "$TMP/link" "$TMP/serve/pools/link"
	ip link set dummy0 down
	api close
	echo "closed after $MS ms: $STATUS"
	within $((2000 + LATE))
	ip link set dummy0 up
	stop_api
	end_target
}

# Killing either side.
cell_kill()
{
	local how

	OP_TIMEOUT=2000
	LATE=3000
	target
	start_api
	configure_plain=$(declare -f configure)
	eval "plain_${configure_plain}"
	configure()
	{
		plain_configure "$@"
		}
	for how in kill stop; do
		lose_one $how degrade
		lose_one $how fail
	done
	configure "$(pool back)"
	ok set reconnect-max 1000
	ok map "$TMP/back" $MIB
	ok open 1
	ok put 0 $MIB 1
	ok persist 0 0 $MIB
	hurt kill
	ok put 0 $MIB 2
	ok persist 0 0 $MIB
	wait_for 25 established 0 || fail "not back: $TEXT"
	opened "by verbs"
	equal "$TMP/back" "$TMP/serve/pools/back"
	echo "the program is killed"
	kill -KILL "$(api_child)"
	wait_for 20 no_sessions || fail "the session stays"
	start_api
	configure "$(pool back)"
	ok map "$TMP/back" $MIB
	ok open 1
	opened "by verbs"
	ok close
	stop_api
	end_target
}

rxe $RXE
for cell in "$@"; do
	echo "== $cell"
	# What one has bound or started is not the next one's business.
	("cell_$cell") || exit
done

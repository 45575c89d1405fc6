# SPDX-License-Identifier: BSD-3-Clause
# In a guest of pmdk.sh: a program of libpmemobj's on fsdax, which replctl run or a pool set
# replicates, is killed while it writes, its pool deleted, had again from the replica and looked at by
# PMDK. Which provider, method and class that was is looked at, too.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/guest_lib.sh"
. "$here/../integration/lib.sh"
FILL=$BUILD/tests/integration/pmemobj_fill
ADDRESS=10.9.0.1
pools=$TMP/serve/pools
local=/mnt/local

media() {
	nvdimms
	namespace 0 fsdax
	fs "$DEVICE" $local ext4 dax
	mkdir -p "$pools/devdax"
	namespace 1 fsdax
	fs "$DEVICE" "$pools/fsdax" xfs dax
	namespace 2 devdax
	chown "$SERVE_USER" "$DEVICE"
	ln -s "$DEVICE" "$pools/devdax/pool"
}

# provider NAME: of everything from now on. Emulation is slow, and a loss of time is not looked for.
provider() {
	provider=$1
	printf '%s\n' '[repl]' "provider = $1" "identity = $TMP/key" "known-hosts = $TMP/known_hosts" \
		"connect-timeout = 60000" "op-timeout = 30000" "heartbeat-timeout = 20000" \
		>"$TMP/repl.conf"
	export REPL_CONFIG=$TMP/repl.conf
}

# idle POOL: no session has it open any more.
idle() {
	ctl info "$T/$1" >"$TMP/info.log" 2>&1 && ! grep -q '^writer .*(has it open)' "$TMP/info.log"
}

# text NAME FILE: of JSON, that member's first value. Python beside a busy writer takes a minute.
text() {
	grep -o "\"$1\": *\"[^\"]*\"" "$2" | head -n 1 | cut -d '"' -f 4
}

# went POOL METHOD: its writer is the only one, and how its data go right now is, by the target's word,
# by the provider that was asked for, by that method, to the medium of NVDIMMs.
went() {
	local found

	ctl status "$T" --json >"$TMP/status.log" 2>&1 && ctl info "$T/$1" --json >"$TMP/info.log" 2>&1 ||
		fail "status or info"
	found="$(text pool "$TMP/status.log"), $(text provider "$TMP/status.log")"
	found="$found, $(text class "$TMP/info.log"), $(text method "$TMP/status.log")"
	[ "$found" = "$1, $provider, media, $2" ] || fail "found: '$found', not '$1, $provider, media, $2'"
	echo "$found"
}

# synchronous PID FILE: PMDK has mapped it by MAP_SYNC, flushes are the processor's. The mapping that
# librepl reads by can't be written to.
synchronous() {
	awk -v file="$2" '$6 == file && $2 ~ /w/ { here = 1 } here && /^VmFlags:/ { print; exit }' \
		"/proc/$1/smaps" | grep -qw sf
}

# kill_writer PID: its output is in counts, and some of that came after the call.
kill_writer() {
	local before

	before=$(wc -l <"$TMP/counts")
	wait_for 60 more_than $((before + 20)) || fail "it stands still: $(cat "$TMP/run.log")"
	signalled KILL "$1"
	wait "$1" 2>/dev/null
	! grep "REPLICATED\|LOST" "$TMP/run.log" || fail "the replica was lost"
	# The last line may be cut; what was printed before it was committed.
	told=$(tail -n 2 "$TMP/counts" | head -n 1)
}

more_than() {
	[ "$(wc -l <"$TMP/counts")" -gt "$1" ]
}

# started PID FILE: it has committed something, to persistent memory.
started() {
	wait_for 60 more_than 2 || fail "nothing is written: $(cat "$TMP/run.log")"
	synchronous "$1" "$2" || fail "$2 is not mapped by MAP_SYNC"
}

# whole FILE: PMDK finds no fault, its program finds its objects, and as many as it was told.
whole() {
	timeout 60 pmempool check -v "$1" >"$TMP/check.log" 2>&1 || lost "pmempool check"
	has_told "$1"
}

has_told() {
	local found

	found=$(timeout 60 "$FILL" check "$1" test 2>&1) || lost "its program says: $found"
	[ "${found%% *}" -ge "$told" ] || lost "$told objects were acknowledged, ${found%% *} are there"
	echo "$told objects were acknowledged, ${found%% *} are there"
}

# replctl_run POOL METHOD
replctl_run() {
	local file=$local/objects.pool pid

	rm -f "$file"*
	: >"$TMP/counts"
	"$REPLCTL" run --set on-loss=fail --replica "$T/$1" --pool "$file" -- \
		"$FILL" steps "$file" test 100000 >"$TMP/counts" 2>"$TMP/run.log" &
	pid=$!
	PIDS="$PIDS $pid"
	started "$pid" "$file"
	went "$@"
	kill_writer "$pid"
	wait_for 60 idle "$1" || fail "the writer of $1 is still there"
	rm "$file" "$file.repl"
	ctl restore "$T/$1" "$file" >"$TMP/restore.log" 2>&1 || fail "restore"
	whole "$file"
}

# pool_set METHOD: by librpmem.so.1, which libpmemobj loads.
pool_set() {
	local part=$local/part name=fsdax/$provider.set pid

	rm -f "$part"
	printf 'PMEMPOOLSET\n32M fsdax/%s.part\n' "$provider" >"$pools/$name"
	printf 'PMEMPOOLSET\n32M %s\nREPLICA %s %s\n' "$part" "$T" "$name" >"$TMP/local.set"
	pmdk pmempool create obj --layout=test "$TMP/local.set" || fail "create"
	: >"$TMP/counts"
	LD_LIBRARY_PATH=$BUILD "$FILL" stream "$TMP/local.set" test 100000 \
		>"$TMP/counts" 2>"$TMP/run.log" &
	pid=$!
	PIDS="$PIDS $pid"
	started "$pid" "$part"
	went "$name" "$1"
	kill_writer "$pid"
	wait_for 60 idle "$name" || fail "the writer of $name is still there"
	rm "$part"
	pmdk pmempool sync "$TMP/local.set" || fail "sync"
	LD_LIBRARY_PATH=$BUILD has_told "$TMP/local.set"
	printf 'PMEMPOOLSET\n32M %s\n' "$part" >"$TMP/alone.set"
	pmdk pmempool transform "$TMP/local.set" "$TMP/alone.set" || fail "transform"
	whole "$TMP/alone.set"
}

pmdk() {
	LD_LIBRARY_PATH=$BUILD timeout -k 5 60 "$@" >"$TMP/pmdk.log" 2>&1 </dev/null
}

export RPMEM_LOG_FILE=$TMP/rpmem.log RPMEM_LOG_LEVEL=1
media
rxe $ADDRESS
make_keys
start_serve "data-address = $ADDRESS"
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
case $1 in
run)
	provider tcp
	replctl_run fsdax/pool 'message, large ranges write-imm'
	provider verbs
	replctl_run devdax/pool 'message, large ranges write-imm'
	;;
set)
	provider tcp
	pool_set 'message, large ranges write-imm'
	provider verbs
	pool_set message
	;;
esac
stop "$SERVE_PID"
umount "$pools/fsdax"

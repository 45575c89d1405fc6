# SPDX-License-Identifier: BSD-3-Clause
# In a guest of cells.sh: each method that is correct keeps the replica equal, one that is not is refused.
# What repld finds of each kind of pool is left in RESULTS/KIND.json, for the host to compare with the
# file cells: Python would take longer here than all of a cell's work. RESULTS/KIND.methods has those
# that have run.
#
# usage: cells_guest.sh PROVIDER PLATFORM RESULTS
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../integration/lib.sh"
. "$here/guest_lib.sh"
provider=$1
platform=$2
results=$3
address=10.9.0.1
pools=$TMP/serve/pools
# Large enough for ranges of every method, and no larger: each byte is hashed, copied and compared.
size=$((2 << 20))

# Emulation is slow, and a loss of time is not what is looked for.
printf '%s\n' '[repl]' "provider = $provider" "connect-timeout = 60000" "op-timeout = 30000" \
	"heartbeat-timeout = 20000" >"$TMP/repl.conf"
export REPL_CONFIG=$TMP/repl.conf

make_pools() {
	mkdir -p "$pools"
	nvdimms
	namespace 0 fsdax
	fs "$DEVICE" "$pools/ext4-dax" ext4 dax
	namespace 1 fsdax
	fs "$DEVICE" "$pools/xfs-dax" xfs dax
	namespace 2 fsdax
	fs "$DEVICE" "$pools/ext4-nodax" ext4 dax=never
	fs /dev/vda "$pools/ext4-disk" ext4
	mkdir -p "$pools/tmpfs" "$pools/devdax"
	mount -t tmpfs tmpfs "$pools/tmpfs"
	namespace 3 devdax
	chown "$SERVE_USER" "$DEVICE"
	ln -s "$DEVICE" "$pools/devdax/pool"
}

# load METHOD: updates of all kinds by it.
load() {
	timeout 240 "$BUILD/tests/integration/api_random" "$TMP/local" $size 7 2 0.3 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" connect-timeout=60000 \
		op-timeout=30000 heartbeat-timeout=20000 provider="$provider" method="$1" target="$T/$kind/pool" \
		>"$TMP/load.log" 2>&1
}

# cell KIND FILESYSTEM GRANULARITY CLASS DOMAIN RQWRB RMA SMALL LARGE METHODS RUN
cell() {
	kind=$1
	rm -f "$TMP"/local*
	methods=",${10},"
	run=${11}
	ctl create "$T/$kind/pool" --size $size >"$TMP/create.log" 2>&1 ||
		fail "$platform $kind: create: $(cat "$TMP/create.log")"
	ctl probe "$T/$kind/pool" --json >"$results/$kind.json" || fail "$platform $kind: probe"
	load auto || fail_by $? "$platform $kind: auto"
	done=
	if [ "$run" = + ]; then
		for method in $(echo "${10}" | tr , ' '); do
			load "$method" || fail_by $? "$platform $kind: $method"
			done="$done${done:+, }$method"
		done
		case $methods in
		*,appliance,*) ;;
		*)
			! load appliance || fail "$platform $kind: 'appliance' is not refused"
			grep -q "method" "$TMP/load.log" || fail "$platform $kind: the refusal"
			;;
		esac
	fi
	ctl verify "$TMP/local" "$T/$kind/pool" >"$TMP/verify.log" 2>&1 ||
		lost "$platform $kind: the replica differs"
	ctl remove --force "$T/$kind/pool" >"$TMP/remove.log" 2>&1 || fail "$platform $kind: remove"
	printf '%s\n' "$done" >"$results/$kind.methods"
	echo "$platform $kind: auto${done:+, $done}"
}

# What is peculiar to devices.
devdax_rules() {
	size=$((8 << 20))
	pool=$T/devdax/pool
	ctl_fails 1 "needed, its device has" create "$pool" --size 1G
	ctl create "$pool" --size 8M >/dev/null || fail "devdax: create"
	ln -s "$(readlink "$pools/devdax/pool")" "$pools/devdax/second"
	ctl_fails 4 "holds pool 'devdax/pool'" create "$T/devdax/second" --size 8M
	ctl list "$T" | grep -q "devdax/pool" || fail "devdax: list"
	! ctl list "$T" | grep -q "devdax/second" || fail "devdax: a device without a pool is listed"
	ctl_fails 4 "pools do not grow" grow "$pool" --size 16M
	ln -s /dev/null "$pools/devdax/null"
	ctl_fails 4 "symbolic link" create "$T/devdax/null" --size 8M

	# The pool comes back as it was after its writer was killed; a new one is zeros.
	kind=devdax
	rm -f "$TMP"/local*
	load auto || fail_by $? "devdax: load"
	hold devdax/pool write
	for connection in $(pgrep -P "$SERVE_PID"); do
		kill -KILL $(pgrep -P "$connection")
	done
	wait_for 30 gone "$HOLD_PID" || fail "devdax: its holder stays"
	ctl restore "$pool" "$TMP/restored" >"$TMP/restore.log" 2>&1 || fail "devdax: restore"
	cmp "$TMP/local" "$TMP/restored" || lost "devdax: the restored pool differs"
	printf 'others' | dd of="$TMP/local" bs=1 seek=5000000 conv=notrunc 2>/dev/null
	ctl sync --force "$TMP/local" "$pool" >"$TMP/sync.log" 2>&1 || fail "devdax: sync"
	ctl verify "$TMP/local" "$pool" >"$TMP/verify.log" 2>&1 || lost "devdax: not in sync"
	ctl promote "$pool" >"$TMP/promote.log" 2>&1 || fail "devdax: promote"
	ctl demote "$pool" >"$TMP/demote.log" 2>&1 || fail "devdax: demote"
	ctl remove --force "$pool" >/dev/null || fail "devdax: remove"
	[ -L "$pools/devdax/pool" ] || fail "devdax: the link is gone"
	ctl create "$pool" --size 8M >/dev/null || fail "devdax: create again"
	ctl restore --force "$pool" "$TMP/zeros" >"$TMP/restore.log" 2>&1 || fail "devdax: zeros"
	cmp -n $((8 << 20)) "$TMP/zeros" /dev/zero || lost "devdax: a new pool is not all zeros"
	ctl remove --force "$pool" >/dev/null || fail "devdax: remove again"
	rm "$pools/devdax/second" "$pools/devdax/null"
}

make_pools
make_keys
[ "$provider" = tcp ] || rxe $address
if [ "$provider" = tcp ]; then start_serve; else start_serve "data-address = $address"; fi
T=$SERVE_USER@127.0.0.1:$SERVE_PORT
while read -r by where line; do
	[ "$by $where" = "$provider $platform" ] || continue
	# shellcheck disable=SC2086
	cell $line
done <"$here/cells"
[ "$provider $platform" != "tcp mem-ctrl" ] || devdax_rules
stop "$SERVE_PID"
umount "$pools"/ext4-* "$pools/xfs-dax" "$pools/tmpfs"

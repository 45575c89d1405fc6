#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# True power cuts: a target with its pool on a disk, page cache above it, is killed as a whole
# machine under load. After it has booted again, a restore gives every update that was acknowledged,
# no b of a pair without its a, and no torn 8 bytes. With "drop" repld's syncs do nothing, and
# something must be lost.
#
# usage: power.sh FIRST-SEED COUNT [drop]
#
# The initiator is on this machine, in a network namespace of its own, and survives.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${POWER_NAMESPACE-}" ]; then
	export POWER_NAMESPACE=1
	user=-r
	[ "$(id -u)" -ne 0 ] || user=
	# shellcheck disable=SC2086
	unshare $user -n true 2>/dev/null || {
		echo "skipped: no network namespace can be made"
		exit 77
	}
	# shellcheck disable=SC2086
	exec unshare $user -n bash "$0" "$@"
fi
first=$1
last=$(($1 + $2 - 1))
drop=${3-}
[ ! -w /dev/shm ] || export TMPDIR=/dev/shm
. "$here/../integration/lib.sh"
LOAD=$BUILD/tests/power/power_load
CHECK=$BUILD/tests/power/power_check
shared=$TMP/shared
T=nobody@10.0.2.15:7022
lost=0
library=
[ -z "$drop" ] || library=$BUILD/tests/vm/libnosync.so

# What is sent to the guest's address reaches QEMU, which passes it on as from its gateway, if it
# does not come from that very address.
ip link set lo up && ip addr add 10.0.2.15/32 dev lo &&
	ip route replace local 10.0.2.15 dev lo table local src 127.0.0.1 ||
	fail "the namespace's network"
forward=user
for port in 7022 $(seq 7100 7115); do
	forward=$forward,hostfwd=tcp:10.0.2.15:$port-10.0.2.15:$port
done

cat >"$TMP/repl.conf" <<END
[repl]
identity = $TMP/key
known-hosts = $TMP/known_hosts
connect-timeout = 60000
op-timeout = 20000
heartbeat-timeout = 15000
close-timeout = 2000
END
export REPL_CONFIG=$TMP/repl.conf

guest_up() {
	[ -e "$shared/up" ] || gone "$guest"
}

boot() {
	rm -f "$shared/up" "$shared/drop" "$TMP/pid"
	"$here/guest.sh" --timeout 380 --net "$forward" --disk "$TMP/disk:128M" --bind "$shared" \
		--pidfile "$TMP/pid" -- env BUILD="$BUILD" \
		bash "$here/power_guest.sh" "$shared" $library >"$TMP/guest.log" 2>&1 &
	guest=$!
	PIDS="$PIDS $guest"
	wait_for 120 guest_up && [ -e "$shared/up" ] && return
	gone "$guest" && wait "$guest"
	if [ $? -eq 77 ]; then
		cat "$TMP/guest.log"
		exit 77
	fi
	fail "the guest does not come up"
}

load_said() {
	grep -q ready "$TMP/said" || gone "$load"
}

# load SEED: until it kills the guest, at a moment that the seed decides.
load_and_cut() {
	rm -f "$TMP/go" "$TMP"/local* "$TMP/journal"
	: >"$TMP/said"
	mkfifo "$TMP/go"
	timeout 120 "$LOAD" "$1" "$TMP/local" "$TMP/journal" "$T/p$1" lanes=4 \
		identity="$TMP/key" known-hosts="$TMP/known_hosts" connect-timeout=60000 \
		op-timeout=20000 heartbeat-timeout=15000 <"$TMP/go" >"$TMP/said" 2>"$TMP/load.log" &
	load=$!
	exec 3>"$TMP/go"
	wait_for 60 load_said || fail "seed $1: the load says nothing"
	grep -q ready "$TMP/said" || fail "seed $1: the load does not start"
	[ -z "$drop" ] || touch "$shared/drop"
	cat "$TMP/pid" >&3
	exec 3>&-
	wait "$load" || fail "seed $1: the load"
	wait "$guest"
	[ $? -eq 125 ] || fail "seed $1: the guest was not killed"
}

check() {
	rm -f "$TMP"/restored*
	timeout 100 "$REPLCTL" restore --force "$T/p$1" "$TMP/restored" >"$TMP/restore.log" 2>&1 ||
		lost "seed $1: restore"
	"$CHECK" "$TMP/journal" "$TMP/restored" >"$TMP/verdict"
	verdict=$?
	[ $verdict -le 1 ] || lost "seed $1: $(cat "$TMP/verdict")"
	echo "seed $1${drop:+, syncs dropped}: $(tail -n 1 "$TMP/verdict")"
	lost=$((lost + verdict))
	[ $verdict -eq 0 ] || [ -n "$drop" ] || lost "seed $1: $(cat "$TMP/verdict")"
}

make_keys
mkdir "$shared"
ssh-keygen -q -t ed25519 -N '' -f "$shared/host_key" || fail "ssh-keygen"
cp "$TMP/authorized_keys" "$shared"
echo "[10.0.2.15]:7022 $(cut -d ' ' -f 1,2 "$shared/host_key.pub")" >"$TMP/known_hosts"
boot
seed=$first
while [ "$seed" -le "$last" ]; do
	load_and_cut "$seed"
	boot
	check "$seed"
	[ $lost -eq 0 ] || break
	seed=$((seed + 1))
done
[ -z "$drop" ] || [ $lost -gt 0 ] || fail "nothing was lost"

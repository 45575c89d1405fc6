#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A guest boots and runs a command with this machine's files: its exit status and output come
# through, its time limit holds, a guest that died is told from a command that failed, what it
# writes to a shared directory, an NVDIMM or a disk is there afterwards, nothing else is.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# Not in /dev/shm, which a guest has of its own.
TMP=$(mktemp -d /tmp/guest-test.XXXXXX) || exit 1
trap 'rm -rf "$TMP"' EXIT
cd "$TMP" || exit 1

fail()
{
	printf 'FAILED: %s\n' "$*" >&2
	cat "$TMP/out" >&2
	exit 1
}

# guest STATUS OPTION...: it ends with that status; its output is in $TMP/out.
guest()
{
	local due=$1 status

	shift
	"$here/guest.sh" "$@" >"$TMP/out" 2>&1
	status=$?
	[ $status -ne 77 ] || { cat "$TMP/out"; exit 77; }
	[ $status -eq "$due" ] || fail "exit status $status, not $due: guest.sh $*"
}

guest 2 --pmem
guest 2 --persistence adr --pmem "$TMP/x" -- true
guest 2 --timeout 0 -- true

mkdir shared
cat >first <<END
. $here/guest_lib.sh
echo "to \$1" && echo "to standard error" >&2
[ "\$PWD" = $TMP ] || fail "in \$PWD"
echo written >shared/file
echo not written >$TMP/nothing
nvdimms
namespace 0 fsdax
echo "fsdax is \$DEVICE"
fs \$DEVICE /mnt/fsdax ext4 dax
echo on DAX >/mnt/fsdax/file
namespace 1 devdax
echo "devdax is \$DEVICE"
fs /dev/vda /mnt/disk xfs
echo on disk >/mnt/disk/file
sync
grep -h . /sys/bus/nd/devices/region0/persistence_domain
exit 7
END
guest 7 --bind "$TMP/shared" --pmem "$TMP/pmem0:64M" --pmem "$TMP/pmem1:80M" --disk "$TMP/disk:400M" \
	-- bash first 'standard output; $HOME'
grep -qx 'to standard output; $HOME' out || fail "no standard output, or its quotes are gone"
grep -qx 'to standard error' out || fail "no standard error"
grep -qx 'fsdax is /dev/pmem[01]' out || fail "no fsdax"
grep -qx 'devdax is /dev/dax[01].0' out || fail "no devdax"
grep -qx 'memory_controller' out || fail "no persistence domain"
[ "$(cat shared/file)" = written ] || fail "what was written to a shared directory is not there"
[ ! -e nothing ] || fail "the guest can write to this machine's files"

cat >second <<END
. $here/guest_lib.sh
nvdimms
modprobe -a ext4 xfs
mkdir /mnt/fsdax /mnt/disk
region 0
mount -o dax \$DEVICE /mnt/fsdax && grep -x 'on DAX' /mnt/fsdax/file || fail "NVDIMM"
mount /dev/vda /mnt/disk && grep -x 'on disk' /mnt/disk/file || fail "disk"
grep -h . /sys/bus/nd/devices/region0/persistence_domain
END
guest 0 --pmem "$TMP/pmem0" --pmem "$TMP/pmem1" --disk "$TMP/disk" --persistence cpu -- bash second
grep -qx 'cpu_cache' out || fail "no eADR"

guest 124 --timeout 4 -- sleep 60
grep -q '^guest.sh: .* within 4 seconds' out || fail "the time limit is not told"

guest 125 -- sh -c 'echo c >/proc/sysrq-trigger; sleep 60'
grep -q '^guest.sh: the guest ended before its command' out || fail "a panic is not told"

"$here/guest.sh" --pidfile "$TMP/pid" --bind "$TMP/shared" -- \
	sh -c 'touch shared/up; sleep 60' >out 2>&1 &
runs=$!
until [ -e shared/up ] || ! kill -0 $runs; do
	sleep 0.1
done
kill -KILL "$(cat pid)"
wait $runs
[ $? -eq 125 ] || fail "a guest that was killed"
echo "guests run, and end as they should"

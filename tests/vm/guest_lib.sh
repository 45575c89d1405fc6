# SPDX-License-Identifier: BSD-3-Clause
# guest_lib.sh - for scripts that run in a guest of guest.sh; sourced by bash.
#
#   nvdimms              load what NVDIMMs take
#   region N             the one of the N-th --pmem, from 0, is region $REGION; as fsdax it is $DEVICE
#   namespace N MODE     make that fsdax or devdax, which destroys what it holds; it is $DEVICE
#   fs DEVICE DIR TYPE [OPTION]  make and mount a file system
#   rxe ADDRESS [LINK]   an RDMA device in software, rxe0, at that address: over that link, or over one that
#                        leads nowhere
#   fail TEXT            end the script as failed; that of lib.sh, if that was sourced before

# Each look of wait_for() takes what it waits for the processor away.
export POLL_MS=250

if ! declare -F fail >/dev/null; then
	fail()
	{
		printf 'FAILED: %s\n' "$*" >&2
		exit 1
	}
fi

nvdimms()
{
	# A hook of ndctl's misses keys that nobody has made.
	modprobe -a nfit nd_pmem device_dax 2>/run/modprobe || fail "NVDIMMs: $(cat /run/modprobe)"
	[ -e /sys/bus/nd/devices/region0 ] || fail "there is no NVDIMM"
}

# QEMU lists NVDIMMs in an order of its own; their handles count from 1.
region()
{
	local nmem

	for REGION in /sys/bus/nd/devices/region*; do
		IFS=, read -r nmem _ <"$REGION/mapping0"
		[ $(($(cat "/sys/bus/nd/devices/$nmem/nfit/handle"))) -ne $(($1 + 1)) ] || break
		REGION=
	done
	[ -n "$REGION" ] || fail "there is no NVDIMM $1"
	REGION=${REGION##*/region}
	DEVICE=/dev/pmem$REGION
}

namespace()
{
	local name

	region "$1"
	ndctl create-namespace -f -e "namespace$REGION.0" -m "$2" -M mem >/run/ndctl 2>&1 ||
		fail "NVDIMM $1: $(cat /run/ndctl)"
	[ "$2" != devdax ] || DEVICE=/dev/$(sed -n 's/.*"chardev":"\([^"]*\)".*/\1/p' /run/ndctl)
	[ -e "$DEVICE" ] || fail "NVDIMM $1 has no device: $(cat /run/ndctl)"
}

fs()
{
	modprobe "$3"
	case $3 in
	ext4) mkfs.ext4 -q -F -b 4096 "$1" ;;
	# An older kernel than mkfs knows; reflinks and DAX exclude each other there.
	xfs) mkfs.xfs -q -f -m reflink=0 "$1" ;;
	*) fail "no file system '$3'" ;;
	esac >"/run/mkfs" 2>&1 || fail "mkfs of $1: $(cat /run/mkfs)"
	mkdir -p "$2"
	mount -t "$3" -o "${4:-defaults}" "$1" "$2" || fail "mount of $1 at $2"
}

rxe()
{
	local link=${2:-dummy0}

	modprobe -a dummy rdma_rxe rdma_ucm || fail "no modules for RDMA"
	[ "$link" != dummy0 ] || ip link add dummy0 mtu 4200 type dummy || fail "no $link"
	ip addr add "$1/24" dev "$link" && ip link set "$link" up &&
		rdma link add rxe0 type rxe netdev "$link" || fail "no rxe0"
	# For RDMA a target pins receive buffers, and the pool.
	ulimit -l unlimited
}

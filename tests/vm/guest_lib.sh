# SPDX-License-Identifier: BSD-3-Clause
# guest_lib.sh - for scripts that run in a guest of guest.sh; sourced by bash.
#
#   nvdimms              load what NVDIMMs take; each region has its raw namespace then
#   namespace N MODE     region N becomes one namespace of MODE fsdax, /dev/pmemN, or devdax; the
#                        name of the device is in $DEVICE
#   fs DEVICE DIR TYPE [OPTION]  make and mount a file system
#   fail TEXT            end the script as failed

fail()
{
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

nvdimms()
{
	modprobe -a nfit nd_pmem device_dax || fail "no modules for NVDIMMs"
	[ -e /sys/bus/nd/devices/region0 ] || fail "there is no NVDIMM"
}

namespace()
{
	local name

	ndctl create-namespace -f -e "namespace$1.0" -m "$2" -M mem >"/run/namespace$1" 2>&1 ||
		fail "region $1: $(cat "/run/namespace$1")"
	case $2 in
	devdax) name=$(sed -n 's/.*"chardev":"\([^"]*\)".*/\1/p' "/run/namespace$1") ;;
	*) name=$(sed -n 's/.*"blockdev":"\([^"]*\)".*/\1/p' "/run/namespace$1") ;;
	esac
	[ -n "$name" ] || fail "region $1 has no device: $(cat "/run/namespace$1")"
	DEVICE=/dev/$name
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

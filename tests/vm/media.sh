#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On DAX, where killing a machine loses nothing that was stored, the media build of repld (MEDIA-MODEL.md)
# keeps what only was stored apart from what was flushed: with its pools on an NVDIMM no cut loses
# an update, and with flushes left out one does.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${BUILD:?directory of the built programs}"
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
TMP=$(mktemp -d "${TMPDIR:-/tmp}/guest-test.XXXXXX") || exit 1
trap 'rm -rf "$TMP"' EXIT
"$here/guest.sh" --timeout 380 --pmem "$TMP/pmem:256M" -- env BUILD="$BUILD" bash -c '
	here=$1
	. "$here/guest_lib.sh"
	nvdimms
	namespace 0 fsdax
	fs $DEVICE /mnt/fsdax ext4 dax
	export TMPDIR=/mnt/fsdax
	export POWER_KEYS="connect-timeout=60000 op-timeout=20000 heartbeat-timeout=15000"
	bash "$here/../power/cut.sh" dmp_ddio 1 2 &&
		bash "$here/../power/cut.sh" dmp_ddio 1 24 drop' media "$here"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A pool on device DAX whose namespace was made anew under the same name, as when its NVDIMM was replaced, is not taken
# for what its sidecar says; nor is one whose link leads to another pool's, which nothing is written to. See devdax_guest.sh.
#
# usage: devdax.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
# Devices in memory: what a guest syncs need not wait for a disk.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
TMP=$(mktemp -d "${TMPDIR:-/tmp}/guest-test.XXXXXX") || exit 1
trap 'rm -rf "$TMP"' EXIT
"$here/guest.sh" --timeout 200 --pmem "$TMP/0:64M" --pmem "$TMP/1:64M" -- \
	env BUILD="${BUILD:?directory of the built programs}" bash "$here/devdax_guest.sh"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file gets the pool's name where the kernel lists mappings by another device than it tells programs: it is followed.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/run_lib.sh"
truncate -s 128M "$TMP/image"
mkfs.btrfs -q "$TMP/image" >"$TMP/mkfs.log" 2>&1 || exit 77
mkdir "$TMP/fs"
mount -o loop "$TMP/image" "$TMP/fs" 2>"$TMP/mount.log" || exit 77
start_target
for mode in linked unnamed renamed; do
	odd $mode '' "$TMP/fs/$mode"
done
umount "$TMP/fs"

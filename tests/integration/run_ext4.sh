#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file that takes the pool's name and has the number of the file before, as ext4 gives it out again at once, is another one.
# Bytes taken out of the middle of a file, or put in there, which tmpfs can't, are so on the replica; so are zeros by which
# a call that finds the disk full has made a file longer.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/run_lib.sh"
truncate -s 32M "$TMP/image"
mkfs.ext4 -q "$TMP/image" >"$TMP/mkfs.log" 2>&1 || exit 77
mkdir "$TMP/fs"
mount -o loop "$TMP/image" "$TMP/fs" 2>"$TMP/mount.log" || exit 77
start_target
odd reborn '' "$TMP/fs/reborn"
odd punched '^[^:]*: [^ ]*/punched: it was made shorter [^:]*$' "$TMP/fs/punched"
odd scarce '^[^:]*: [^ ]*/scarce: it was made shorter [^:]*$' "$TMP/fs/scarce"
umount "$TMP/fs"

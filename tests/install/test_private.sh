#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A librpmem.so.1 that is loaded by a program which has librepl.so of another version, as after an upgrade beneath it,
# or of another build of the same version that has another repl_set.h, is refused with a text that names both: what is
# between the two is a matter of one header.
# usage: test_private.sh PREFIX
set -euo pipefail
export LC_ALL=C

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
header=$(dirname "$0")/../../librepl/src/repl_set.h
hash=$(sha256sum "$header" | head -c 8)
tag=LIBREPL_PRIVATE_${VERSION}_$hash

# load LIBREPL: then librpmem.so.1 as libpmemobj does
load() {
	python3 -c 'import ctypes, sys
for library in sys.argv[1:]:
    ctypes.CDLL(library)' "$1" "$prefix/$LIBDIR/librpmem.so.1" 2>"$dir/said"
}

prefix=$1
load "$prefix/$LIBDIR/librepl.so.0" || {
	printf 'FAIL: it does not load: %s\n' "$(cat "$dir/said")"
	exit 1
}
for other in "${VERSION//[0-9]/9}_$hash" "${VERSION}_${hash//[0-9a-f]/0}"; do
	# As long, so that nothing is in another place.
	sed "s/$tag/LIBREPL_PRIVATE_$other/g" "$prefix/$LIBDIR/librepl.so.0" >"$dir/librepl.so.0"
	if load "$dir/librepl.so.0"; then
		printf 'FAIL: it loads above another: %s\n' "$other"
		exit 1
	fi
	grep -q "version .$tag' not found" "$dir/said" || {
		printf 'FAIL: no text that says so: %s\n' "$(cat "$dir/said")"
		exit 1
	}
done

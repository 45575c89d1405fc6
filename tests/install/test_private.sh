#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A librpmem.so.1 that is loaded by a program which has librepl.so of another version, as after an upgrade beneath it,
# or of another build of the same version that has another repl_set.h or repl_prepare.h, is refused with a text that
# names both: what is between the two is a matter of these headers. librepl-preload.so uses no other one either, and says so.
# usage: test_private.sh PREFIX
set -euo pipefail
export LC_ALL=C

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
headers=$(cd "$(dirname "$0")/../../librepl/src" && pwd)
hash=$(sha256sum "$headers/repl_set.h" "$headers/repl_prepare.h" | cut -c 1-64 | tr -d '\n' | sha256sum | head -c 8)
tag=LIBREPL_PRIVATE_${VERSION}_$hash

# load LIBREPL: then librpmem.so.1 as libpmemobj does
load() {
	python3 -c 'import ctypes, sys
for library in sys.argv[1:]:
    ctypes.CDLL(library)' "$1" "$prefix/$LIBDIR/librpmem.so.1" 2>"$dir/said"
}

# It maps a pool below librepl-preload.so of this build, makes something of it durable, and says what of its replica it was told.
run_told() {
	rm -f "$dir/pool" "$dir/pool".*
	truncate -s 64K "$dir/pool"
	LD_PRELOAD="$dir/librepl-preload.so" REPL_PRELOAD_POOLS="$dir/pool"$'\t'"127.0.0.1:1/pool" \
		REPL_PRELOAD_SET=$'on-loss\tdegrade' python3 -c 'import mmap, sys
with open(sys.argv[1], "r+b") as pool:
    with mmap.mmap(pool.fileno(), 0) as mapped:
        mapped[0] = 1
        mapped.flush()' "$dir/pool" 2>"$dir/said" || {
		printf 'FAIL: the program ends with %s: %s\n' "$?" "$(cat "$dir/said")"
		exit 1
	}
}
another='pool: NOT REPLICATED.*librepl.so.0 is of another build than this program.s librepl-preload.so,.* start the program again'

prefix=$1
cp "$prefix/$LIBDIR/librepl-preload.so" "$prefix/$LIBDIR/librepl.so.0" "$dir"
run_told
if ! grep -q "pool: NOT REPLICATED" "$dir/said" || grep -q "$another" "$dir/said"; then
	printf 'FAIL: of its own it says: %s\n' "$(cat "$dir/said")"
	exit 1
fi
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
	run_told
	grep -q "$another" "$dir/said" || {
		printf 'FAIL: librepl-preload.so above another says: %s\n' "$(cat "$dir/said")"
		exit 1
	}
done

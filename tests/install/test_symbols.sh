#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The library exports exactly the functions that librepl.h declares, each versioned.
# usage: test_symbols.sh PREFIX
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
map=$here/../../librepl/librepl.map.in
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

sed -n 's/^REPL_API [^(]*[ *]\(repl_[a-z0-9_]*\)(.*/\1/p' "$1/include/librepl.h" |
	sort >"$dir/librepl.h"
# Those of LIBREPL_PRIVATE_VERSION are between our own libraries.
sed -n '/PRIVATE/,/^}/d; s/^[[:space:]]*\(repl_[a-z0-9_]*\);$/\1/p' "$map" | sort >"$dir/librepl.map"
nm -D --defined-only "$1/$LIBDIR/librepl.so" >"$dir/nm"
# The name of a version is itself a symbol, of type A.
awk -v private="@@LIBREPL_PRIVATE_$VERSION" '$2 != "A" && !index($3, private) { sub(/@.*/, "", $3); print $3 }' "$dir/nm" | sort >"$dir/librepl.so"

[ "$(grep -c REPL_API "$1/include/librepl.h")" -eq "$(($(wc -l <"$dir/librepl.h") + 2))" ] || {
	printf 'FAIL: librepl.h has declarations that this test does not see\n'
	exit 1
}
bad=0
cd "$dir"
diff -u librepl.h librepl.map || bad=1
diff -u librepl.h librepl.so || bad=1
if awk '$2 != "A" && $3 !~ /@@?LIBREPL_/ { print "FAIL: without a version: " $3; bad = 1 }
	END { exit bad }' nm; then :; else bad=1; fi

# The old ABI, to the name: what PMDK looks for, under the version that programs were linked with.
for function in check_version create open set_attr close flush drain persist deep_persist read \
	remove errormsg; do
	echo "rpmem_$function@@LIBRPMEM_1.0"
done | sort >rpmem.due
nm -D --defined-only "$1/$LIBDIR/librpmem.so.1" | awk '$2 != "A" { print $3 }' | sort >rpmem.is
diff -u rpmem.due rpmem.is || bad=1
exit $bad

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All that a user or a packager looks for is installed, and where it belongs.
# usage: test_files.sh PREFIX
set -euo pipefail

cd "$1"
source=$(cd "$(dirname "$0")/../.." && pwd)
bad=0

fail()
{
	printf 'FAIL: %s\n' "$*"
	bad=1
}

for file in include/librepl.h "$LIBDIR/librepl.so" "$LIBDIR/librepl.so.0" \
	"$LIBDIR/librepl.so.$VERSION" "$LIBDIR/librpmem.so.1" "$LIBDIR/librepl-preload.so" "$LIBDIR/pkgconfig/librepl.pc" \
	"$LIBDIR/cmake/librepl/librepl-config.cmake" \
	"$LIBDIR/cmake/librepl/librepl-config-version.cmake" \
	share/doc/librepl/LICENSE share/doc/librepl/PROTOCOL.md \
	share/doc/librepl/examples/repld.conf.example share/doc/librepl/examples/journal.c \
	lib/systemd/system/repld.service lib/sysusers.d/repld.conf; do
	[ -s "$file" ] || fail "$file is absent"
done
for program in bin/replctl sbin/repld; do
	[ -x "$program" ] || fail "$program is absent or cannot be run"
done

# Found from where the program is, whatever the prefix.
preload=$(./bin/replctl run --replica host/p --pool p -- sh -c 'echo $LD_PRELOAD') ||
	fail "replctl run does not find its library"
[ "$(readlink -f "$preload")" = "$(readlink -f "$LIBDIR/librepl-preload.so")" ] ||
	fail "replctl run finds '$preload'"

soname=$(readelf -d "$LIBDIR/librepl.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = librepl.so.0 ] || fail "SONAME is '$soname', not librepl.so.0"

for page in "$source"/docs/man/*.[0-9]; do
	[ -e "$page" ] || continue
	name=${page##*/}
	[ -s "share/man/man${name##*.}/$name" ] || fail "man page $name is not in its section"
done
for function in $(sed -n '/PRIVATE/,/^}/d; s/^\t\(repl_[a-z0-9_]*\);$/\1/p' "$source/librepl/librepl.map.in"); do
	(cd share/man && mandoc -T man "man3/$function.3") | grep "$function" >/dev/null ||
		fail "there is no man page by the name of $function"
done
[ "$(find include -type f)" = include/librepl.h ] || fail "headers beside librepl.h"
exit $bad

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# librepl.h compiles alone, without a warning, as C17 and as C++; a struct that it lays open begins with its size.
# usage: test_header.sh PREFIX
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

warn=(-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only)
printf '#include <librepl.h>\n' >"$dir/alone.c"
cp "$dir/alone.c" "$dir/alone.cc"
"$CC" -std=c17 "${warn[@]}" -Wshadow -Wstrict-prototypes -I"$1/include" "$dir/alone.c"
# Not -Wshadow: g++ finds that repl_stat() hides struct repl_stat, as stat(2) does.
for cxx in g++ clang++; do
	command -v "$cxx" >/dev/null || continue
	"$cxx" -std=c++17 "${warn[@]}" -I"$1/include" "$dir/alone.cc"
done

# So that a program that was built with another version's can be told from ours.
sed -n '/^struct [a-z_]* {/{N;p}' "$1/include/librepl.h" | paste - - >"$dir/structs"
[ -s "$dir/structs" ]
if grep -v 'size_t struct_size;$' "$dir/structs"; then
	printf 'FAIL: that does not begin with struct_size\n'
	exit 1
fi

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A CMake project builds and runs with find_package(librepl) and librepl::librepl.
# usage: test_cmake_package.sh PREFIX
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$CMAKE" -S "$here/consumer" -B "$dir" -DCMAKE_C_COMPILER="$CC" \
	-DCMAKE_PREFIX_PATH="$1" -DWANTED="${VERSION%.*}"
"$CMAKE" --build "$dir"
version=$("$dir/consumer")
printf 'repl_version() is %s\n' "$version"
[ "$version" = "$VERSION" ]
if "$CMAKE" -S "$here/consumer" -B "$dir/major" -DCMAKE_C_COMPILER="$CC" \
	-DCMAKE_PREFIX_PATH="$1" -DWANTED=99 >/dev/null 2>&1; then
	printf 'FAIL: the package takes itself for version 99\n'
	exit 1
fi

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Configured without a preset, as packagers do, it compiles without a warning, and a compiler that has
# one does not end the build. What both sides share stands for all.
# usage: test_default.sh PREFIX
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$CMAKE" -S "$source" -B "$dir" -G Ninja -DCMAKE_C_COMPILER="$CC" -DBUILD_TESTING=OFF >/dev/null
grep '^REPL_WERROR:BOOL=OFF$' "$dir/CMakeCache.txt"
"$CMAKE" -DREPL_WERROR=ON "$dir" >/dev/null
"$CMAKE" --build "$dir" --target repl_common -j 2

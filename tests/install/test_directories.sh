#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A packager may name directories as absolute paths, apart from the prefix: pkg-config tells those, and
# replctl finds the library that it preloads.
# usage: test_directories.sh PREFIX
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$CMAKE" -S "$source" -B "$dir" -G Ninja -DCMAKE_C_COMPILER="$CC" -DBUILD_TESTING=OFF \
	-DCMAKE_INSTALL_PREFIX=/opt/repl/out -DCMAKE_INSTALL_LIBDIR=/opt/repl/lib/lib64 \
	-DCMAKE_INSTALL_INCLUDEDIR=/opt/repl/dev/include >/dev/null
flags=$(PKG_CONFIG_PATH=$dir/packaging pkg-config --cflags --libs librepl)
printf '%s\n' "$flags"
[ "$(echo $flags)" = '-I/opt/repl/dev/include -L/opt/repl/lib/lib64 -lrepl' ]
from_bin=$(sed -n '/cmd_run\.c/s/.*-DREPL_LIBDIR=[\\"]*\([^\\"]*\).*/\1/p' "$dir/compile_commands.json" | head -n 1)
[ "$(realpath -m "/opt/repl/out/bin/$from_bin")" = /opt/repl/lib/lib64 ]

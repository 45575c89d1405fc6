#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A program builds and runs with nothing but what pkg-config says of librepl.
# usage: test_pkgconfig.sh PREFIX
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

export PKG_CONFIG_PATH=$1/$LIBDIR/pkgconfig
[ "$(pkg-config --modversion librepl)" = "$VERSION" ]
# shellcheck disable=SC2046
"$CC" -std=c17 -Wall -Wextra -Werror "$here/consumer/consumer.c" -o "$dir/consumer" \
	$(pkg-config --cflags --libs librepl)
version=$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir librepl) "$dir/consumer")
printf 'repl_version() is %s\n' "$version"
[ "$version" = "$VERSION" ]

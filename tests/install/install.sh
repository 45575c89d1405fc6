#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install into an empty prefix that is not the configured one, after what README has to take it
# away again has left no file of the first time.
# usage: install.sh CMAKE BUILD-DIR PREFIX
set -euo pipefail

rm -rf "$3"
unset DESTDIR
"$1" --install "$2" --prefix "$3" >/dev/null
xargs rm -f <"$2/install_manifest.txt"
left=$(find "$3" ! -type d)
[ -z "$left" ] || {
	printf 'left behind: %s\n' "$left"
	exit 1
}
"$1" --install "$2" --prefix "$3"

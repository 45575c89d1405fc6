#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Install into an empty prefix that is not the configured one.
# usage: install.sh CMAKE BUILD-DIR PREFIX
set -euo pipefail

rm -rf "$3"
unset DESTDIR
"$1" --install "$2" --prefix "$3"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Unmodified programs of PMDK's whose pools are on real fsdax, replicated over tcp to fsdax and over
# verbs to devdax, lose nothing that was acknowledged when they are killed and their pools deleted:
# see pmdk_guest.sh.
#
# usage: pmdk.sh run|set
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v pmempool >/dev/null || { echo "skipped: no pmempool (package pmdk-tools)"; exit 77; }
TMP=$(mktemp -d) || exit 1
trap 'rm -rf "$TMP"' EXIT
"$here/guest.sh" --timeout 400 --pmem "$TMP/0:400M" --pmem "$TMP/1:400M" --pmem "$TMP/2:400M" \
	-- env BUILD="${BUILD:?directory of the built programs}" bash "$here/pmdk_guest.sh" "$@"

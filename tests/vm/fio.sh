#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fio's engine on libpmem, which takes nothing but persistent memory, writes to a file on fsdax without
# PMEM_IS_PMEM_FORCE: killed again and again, it loses nothing. See fio_guest.sh.
#
# usage: fio.sh [KILLS [SEED]]
set -u
here=$(cd "$(dirname "$0")" && pwd)
kills=${1:-5}
for program in fio pmempool; do
	command -v "$program" >/dev/null || { echo "skipped: no $program (packaging/install-deps.sh vm)"; exit 77; }
done
TMP=$(mktemp -d) || exit 1
trap 'rm -rf "$TMP"' EXIT
"$here/guest.sh" --timeout $((120 + 30 * kills)) --pmem "$TMP/0:128M" -- \
	env BUILD="${BUILD:?directory of the built programs}" KILLS="$kills" SEED="${2:-$RANDOM}" \
	bash "$here/fio_guest.sh"

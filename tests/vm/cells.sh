#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On guests with ADR, eADR and neither: repld knows each kind of pool for what it is, takes the
# right method, keeps replicas equal by every correct one and refuses the others. What works is what
# docs/PLATFORMS.md says; with --write it is written there.
#
# usage: cells.sh PROVIDER [PLATFORM | --write]
set -u
here=$(cd "$(dirname "$0")" && pwd)
# Devices in memory: what a guest syncs need not wait for a disk.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
TMP=$(mktemp -d "${TMPDIR:-/tmp}/guest-test.XXXXXX") || exit 1
trap 'rm -rf "$TMP"' EXIT
: "${BUILD:?directory of the built programs}"
provider=${1:?provider}
only=
[ "${2-}" = --write ] || only=${2-}
# run PLATFORM, into a directory of its own
run()
{
	local dir=$TMP/$1

	mkdir -p "$dir/shared/results"
	"$here/guest.sh" --timeout 800 --persistence "$1" --bind "$dir/shared" \
		--pmem "$dir/0:64M" --pmem "$dir/1:400M" --pmem "$dir/2:64M" --pmem "$dir/3:64M" \
		--disk "$dir/disk:64M" -- env BUILD="$BUILD" \
		bash "$here/cells_guest.sh" "$provider" "$1" "$dir/shared/results" >"$dir/out" 2>&1
}

platforms=${only:-$(awk -v by="$provider" '$1 == by && !seen[$2]++ { print $2 }' "$here/cells")}
declare -A pid
for platform in $platforms; do
	run $platform &
	pid[$platform]=$!
done
status=0
for platform in $platforms; do
	wait "${pid[$platform]}" || status=$?
	cat "$TMP/$platform/out"
done
[ $status -eq 0 ] || exit $status
for platform in $platforms; do
	python3 "$here/cells_check.py" "$provider" "$platform" "$TMP/$platform/shared/results" \
		>>"$TMP/results" || exit 1
done
python3 "$here/platforms.py" "$@" <"$TMP/results"

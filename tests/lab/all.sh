#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All faults of the lab, a number of runs each, two at a time.
#
# usage: all.sh [--write] [RUNS [SEED]]
#
# --write: put the table of what was run into docs/RELIABILITY.md, with the commit, the date and the first seed. Ends
# with 1 if anything failed.
set -u
cd "$(dirname "$0")/../.." || exit 1
write=
[ "${1-}" != --write ] || { write=yes && shift; }
runs=${1:-20}
seed=${2:-$RANDOM}
: "${BUILD:=$PWD/build-release}"
export BUILD
# Before the runs: what is tested, and not what has come in meanwhile. A tree with changes of its own is called dirty.
commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
date=$(date -u +%F)
results=$(mktemp -d) || exit 1
trap 'rm -rf "$results"' EXIT
export results runs seed

one() {
	if LAB_RESULTS=$results/$1.done bash tests/lab/lab.sh "$1" "$runs" "$seed" \
		>"$results/$1.log" 2>&1; then
		echo "$1: $runs runs held, seeds from $seed on"
	elif [ $? -eq 77 ]; then
		echo "$1: can't be run here"
	else
		echo "$1: FAILED"
		grep -v ": held:" "$results/$1.log" | head -n 40
		touch "$results/failed"
	fi
}
export -f one
grep -v '^#' tests/lab/faults.txt | cut -d '|' -f 1 | xargs -P 2 -I{} bash -c 'one {}'
cat "$results"/*.done >"$results/all" 2>/dev/null
if [ -n "$write" ]; then
	python3 tests/lab/report.py "$results/all" docs/RELIABILITY.md "$commit" "$date" "$seed" || exit 1
fi
[ ! -e "$results/failed" ]

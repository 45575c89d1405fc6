#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Measure this machine against itself on loopback and write the measured part
# of docs/PERFORMANCE.md, with its plot docs/remotelog.svg.
#
#   tests/bench/run.sh [--quick] [--dry-run] [BUILD-DIR]
#
# BUILD-DIR is build-release unless given. --quick: fewer sizes and rounds, and
# 128 MiB instead of 1 GiB. --dry-run: print only, leave the file as it is.
set -euo pipefail
cd "$(dirname "$0")/../.."

quick='' dry_run=''
BUILD=$PWD/build-release
for arg in "$@"; do
	case $arg in
	--quick) quick=--quick ;;
	--dry-run) dry_run=yes ;;
	-*)
		printf 'usage: %s [--quick] [--dry-run] [BUILD-DIR]\n' "$0" >&2
		exit 2
		;;
	*) BUILD=$(cd "$arg" && pwd) ;;
	esac
done
export BUILD QUICK=$quick
[ -x "$BUILD/replctl" ] || {
	printf 'there is no %s/replctl: cmake --preset release && cmake --build --preset release\n' \
		"$BUILD" >&2
	exit 1
}

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export RESULTS=$results

# Pools are of the class of the file system that they lie on.
TMPDIR=/dev/shm bash tests/bench/target.sh memory
TMPDIR=/tmp bash tests/bench/target.sh page
TMPDIR=/dev/shm bash tests/bench/transfer.sh
bash tests/bench/huge.sh bash tests/bench/transfer.sh transfer-huge || [ $? -eq 77 ]
TMPDIR=/dev/shm bash tests/bench/session.sh
for part in provider chooser log dirty growth remotelog hotline pmdk resync queue; do
	bash "tests/bench/$part.sh"
done
bash tests/bench/huge.sh bash tests/bench/resync.sh huge || [ $? -eq 77 ]

python3 tests/bench/report.py "$results" "tests/bench/run.sh${quick:+ $quick}" >"$results/report.md"
cat "$results/report.md"
[ -z "$dry_run" ] || exit 0
python3 tests/bench/report.py --into docs/PERFORMANCE.md "$results/report.md"
cp "$results/remotelog-memory.svg" docs/remotelog.svg

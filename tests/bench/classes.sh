# SPDX-License-Identifier: BSD-3-Clause
# classes.sh - sourced by the scripts that measure pools of several classes: runs
# the script anew for each class, with --below, on a file system that makes pools
# of that class. Without RESULTS the answer is printed, else it is kept there as
# $RESULTS/PART-CLASS.json.
#
# each_class PART [CLASS...]
each_class() {
	part=$1
	shift
	[ $# -gt 0 ] || set -- memory page
	for class in "$@"; do
		below=/tmp
		[ "$class" = page ] || below=/dev/shm
		answer=${RESULTS:-$(mktemp -d)}/$part-$class
		CLASS=$class TMPDIR=$below bash "$0" --below "$answer" || return 1
		grep -q "\"class\": \"$class\"" "$answer.json" || {
			printf 'a pool below %s is not of class %s\n' "$below" "$class" >&2
			[ -z "${RESULTS-}" ] || return 1
		}
		[ -n "${RESULTS-}" ] && continue
		python3 "$(dirname "$0")/report.py" --part "$part" "$answer.json"
		rm -rf "$(dirname "$answer")"
	done
}

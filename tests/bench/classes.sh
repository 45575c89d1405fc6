# SPDX-License-Identifier: BSD-3-Clause
# classes.sh - sourced by the scripts that measure pools of several classes: runs
# the script anew for each class, with --below, on a file system that makes pools
# of that class; huge is class memory where TMPDIR says (huge.sh). Without RESULTS the
# answer is printed, else it is kept there as $RESULTS/PART-CLASS.json.
#
# each_class PART [CLASS...]
each_class() {
	part=$1
	shift
	[ $# -gt 0 ] || set -- memory page
	for class in "$@"; do
		is=$class
		case $class in
		page) below=/tmp ;;
		huge) below=$TMPDIR is=memory ;;
		*) below=/dev/shm ;;
		esac
		answer=${RESULTS:-$(mktemp -d)}/$part-$class
		CLASS=$class TMPDIR=$below bash "$0" --below "$answer" || return 1
		grep -q "\"class\": \"$is\"" "$answer.json" || {
			printf 'a pool below %s is not of class %s\n' "$below" "$class" >&2
			[ -z "${RESULTS-}" ] || return 1
		}
		[ -n "${RESULTS-}" ] && continue
		python3 "$(dirname "$0")/report.py" --part "$part" "$answer.json"
		rm -rf "$(dirname "$answer")"
	done
}

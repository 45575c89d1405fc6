# SPDX-License-Identifier: BSD-3-Clause
# PMDK's examples "logfile" on libpmemlog and "log" on libpmem2: a process for each append, a line for each that ended.
stock "a shell"
case $program in
addlog)
	L=$EXAMPLES/libpmemlog-dev/examples/logfile
	example addlog "$L/addlog.c" -lpmemlog
	example printlog "$L/printlog.c" -lpmemlog
	append=("$TMP/addlog" "$pool")
	;;
pmem2log)
	example pmem2log "$EXAMPLES/libpmem2-dev/examples/log/log.c" -lpmem2
	append=("$TMP/pmem2log" "$pool" append)
	;;
esac
base=0

begin() {
	base=0
	truncate -s 4M "$pool"
}

write_on() {
	run "$pool" killed sh -c 'i=$1; shift; while i=$((i + 1)) && "$@" "entry $i "; do echo "$i"; done' \
		sh $base "${append[@]}"
}

# All of them in order, and no later one but the one that was being written.
check() {
	[ "$program" = addlog ] && pmempool_or_new "$1"
	told=$(grep -x '[0-9]*' "$2" | tail -n 1)
	told=${told:-$base}
	case $program in
	addlog) timeout 20 "$TMP/printlog" "$1" ;;
	pmem2log) timeout 20 "$TMP/pmem2log" "$1" dump ;;
	esac >"$TMP/dump" 2>"$TMP/check.log"
	found=$(grep -ao 'entry [0-9]*' "$TMP/dump" | cut -d ' ' -f 2)
	last=$(echo "$found" | tail -n 1)
	last=${last:-0}
	[ "$found" = "$(seq "$last")" ] || [ "$last" = 0 ] || lost "not in order: $(tail -c 300 "$TMP/dump")"
	[ "$last" -eq "$told" ] || [ "$last" -eq $((told + 1)) ] ||
		lost "$told were told, $last are there: $(cat "$TMP/check.log")"
	base=$last
}

# A pool that was being made when it was killed is none yet.
pmempool_or_new() {
	[ $base -eq 0 ] && [ ! -s "$TMP/acknowledged" ] || pmempool_check "$1"
}

# SPDX-License-Identifier: BSD-3-Clause
# pmdk_stream: of libpmemlog, libpmemblk and libpmem2, the latter by one thread and by several.
STREAM=$BUILD/tests/integration/pmdk_stream

write_on() {
	run "$pool" killed "$STREAM" "$program" "$pool"
}

check() {
	case $program in
	log | blk) pmempool_check "$1" ;;
	esac
	timeout 20 "$STREAM" "$program-check" "$1" <"$2" >"$TMP/check.log" 2>&1 ||
		lost "its program says: $(cat "$TMP/check.log")"
}

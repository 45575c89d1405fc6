# SPDX-License-Identifier: BSD-3-Clause
# A file that is written to, or gets longer, while sync, or create, waits for its disk is not called up to date as what
# it was before.
. "$(dirname "$0")/lib.sh"
# The sanitizers' runtime comes with the program: it is not the first library then.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
export ASAN_OPTIONS
start_target
cd "$TMP" || exit 1
gate=$TMP/gate
printf '#!/bin/sh\nLD_PRELOAD=%s SLOW_SYNC=%s exec "%s" "$@"\n' "$BUILD/tests/integration/slow_space.so" "$gate" \
	"$REPLCTL" >slow
chmod 755 slow
REPLCTL=$TMP/slow
head -c 1048576 /dev/urandom >file

# amid HOW ARG...: the command, with the file longer, or another one, by the end of its first sync.
amid() {
	how=$1
	shift
	: >"$gate"
	ctl_start "$@"
	wait_for 20 test -e "$gate.met" || fail "$*: no sync: $(cat bg.err)"
	case $how in
	grows) truncate -s +1M file ;;
	# As by a mapping whose pages are dirty since: its time tells of the first store alone.
	changes) change file 4096 ;;
	esac
	rm "$gate" "$gate.met"
	wait "$CTL_PID"
	status=$?
	[ "$status" -eq 1 ] || lost "$*: exit $status: $(cat bg.out bg.err)"
	grep -q "file was written to while it was being read" bg.err || fail "$*: $(cat bg.err)"
}

amid grows sync file "$T/p"
amid grows create "$T/p" --from file
amid changes sync file "$T/p"
amid changes create "$T/p" --from file
ctl_fails 3 "not found" info "$T/p"
[ ! -e file.repl ] || fail "a record of it"
ctl sync file "$T/p" >/dev/null 2>err || fail "sync: $(cat err)"
cmp -s file serve/pools/p || lost "they differ"
amid changes resolve --dry-run --discard local file "$T/p"

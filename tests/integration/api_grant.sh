# SPDX-License-Identifier: BSD-3-Clause
# A target that grants larger messages or more of them than were asked for is left at open.
. "$(dirname "$0")/api_lib.sh"

# lie MEMBER VALUE: what starts in repld's place says so in the result of lanes.open.
lie() {
	printf '#!/bin/sh\n"%s" session --config "%s" | sed -u "s/\\"%s\\": *[0-9]*/\\"%s\\":%s/"\n' \
		"$REPLD" "$TMP/session.conf" "$1" "$1" "$2" >"$TMP/liar.new"
	chmod 755 "$TMP/liar.new"
	mv "$TMP/liar.new" "$TMP/liar"
}

make_keys
printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
lie depth 8
start_serve_with "$TMP/liar"
start_api
configure "$(pool p)"
ok map "$TMP/p" $MIB
lie msg_size 1048576
refused "REPL_E_(PROTOCOL|INVAL)" "msg_size" open 1
lie depth 64
refused "REPL_E_(PROTOCOL|INVAL)" "depth" open 1
lie depth 8
ok open 1
ok persist 0 0 $MIB
ok close
stop_api

# SPDX-License-Identifier: BSD-3-Clause
# A target that counts immediates in no unit of the pool is left at open; one that has none is used without.
. "$(dirname "$0")/api_lib.sh"

# lie UNIT: what starts in repld's place says so.
lie() {
	printf '#!/bin/sh\n"%s" session --config "%s" | sed -u "s/\\"imm_unit\\": *[0-9]*/\\"imm_unit\\":%s/"\n' \
		"$REPLD" "$TMP/session.conf" "$1" >"$TMP/liar.new"
	chmod 755 "$TMP/liar.new"
	mv "$TMP/liar.new" "$TMP/liar"
}

make_keys
printf '[repld]\npool-dir = %s/serve/pools\n' "$TMP" >"$TMP/session.conf"
lie 64
start_serve_with "$TMP/liar"
start_api
configure "$(pool p)"
ok map "$TMP/p" $((128 * MIB))
# Too small for the pool, no power of two, too large for any.
for unit in 64 192 35184372088832; do
	lie $unit
	refused "REPL_E_(PROTOCOL|INVAL)" "imm_unit" open 1
done
for unit in 128 0; do
	lie $unit
	ok open 1
	ok put 0 65536 $unit
	ok persist 0 0 65536
	ok compare 0
	same
	ok close
done
lie 0
ok set method write-imm
refused REPL_E_REFUSED "'write-imm' is not available" open 1
stop_api

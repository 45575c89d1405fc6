# SPDX-License-Identifier: BSD-3-Clause
# pmdk.sh [CLASS...] - an unmodified program of PMDK's by replctl run and through a pool
# set, against itself unreplicated and against the API.
if [ "${1-}" = --below ]; then
	. "$(dirname "$0")/../integration/lib.sh"
	. "$(dirname "$0")/pin.sh"
	rounds=21 slice_ms=30
	[ -z "${QUICK-}" ] || { rounds=3 slice_ms=5; }
	start_target
	pin_target

	# librpmem takes key and known hosts from the configuration.
	printf '[repl]\nidentity = %s\nknown-hosts = %s\n' "$TMP/key" "$TMP/known_hosts" >"$TMP/repl.conf"
	printf 'PMEMPOOLSET\n16M objects.part\n' >"$TMP/serve/pools/objects.set"
	[ "$(id -u)" -ne 0 ] || chown "$SERVE_USER" "$TMP/serve/pools/objects.set"
	printf 'PMEMPOOLSET\n16M %s\nREPLICA %s objects.set\n' "$TMP/part" "$T" >"$TMP/objects.set"
	set=
	if [ -e "$BUILD/librpmem.so.1" ]; then
		set=$TMP/objects.set
		LD_LIBRARY_PATH=$BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
		export LD_LIBRARY_PATH
	fi
	PMEM_IS_PMEM_FORCE=1 REPL_CONFIG=$TMP/repl.conf pinned timeout -k 5 300 \
		"$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" run \
		--replica "$T/object" --pool "$TMP/object" --replica "$T/plain" --pool "$TMP/plain" \
		-- "$BUILD/tests/bench/pmdk" "$T" "$TMP/key" "$TMP/known_hosts" "$rounds" \
		"$slice_ms" "$TMP" $set >"$2.json" 2>"$TMP/err" || fail "pmdk: $(cat "$TMP/err")"
	[ ! -s "$TMP/err" ] || fail "pmdk says: $(cat "$TMP/err")"
	exit 0
fi

. "$(dirname "$0")/classes.sh"
each_class pmdk "$@"

# SPDX-License-Identifier: BSD-3-Clause
# Loading and using the library prints nothing and changes no signal disposition, mask, environment or thread.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve
wrong=$SERVE_USER@127.0.0.1:$(free_port)/p
"$BUILD/tests/integration/api_quiet" "$BUILD/librepl.so.0" $MIB "$wrong" \
	identity="$TMP/key" known-hosts="$TMP/known_hosts" target="$(pool p)" \
	</dev/null >"$TMP/out" 2>"$TMP/err" || lost "changed: $(cat "$TMP/out" "$TMP/err")"
[ ! -s "$TMP/out" ] || fail "printed: $(cat "$TMP/out")"
[ ! -s "$TMP/err" ] || fail "printed: $(cat "$TMP/err")"

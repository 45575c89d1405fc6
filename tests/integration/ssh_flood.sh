# SPDX-License-Identifier: BSD-3-Clause
# A client with a good key that sends what nobody reads, or asks for ever, is cut off: it takes neither
# memory nor space in the log.
. "$(dirname "$0")/lib.sh"
make_keys
# A session that reads nothing.
cat >"$TMP/deaf" <<'END'
#!/bin/sh
exec sleep 4
END
chmod 755 "$TMP/deaf"
start_serve_with "$TMP/deaf"
for what in data extended requests; do
	timeout 30 "$BUILD/tests/integration/ssh_flood" "$what" 127.0.0.1 "$SERVE_PORT" "$SERVE_USER" \
		"$TMP/key" 2>"$TMP/flood.log"
	status=$?
	[ "$status" -ne 77 ] || exit 77
	[ "$status" -eq 0 ] || fail "$what: status $status"
	echo "$what: $(wc -c <"$TMP/serve.log") bytes of log"
done
[ "$(wc -l <"$TMP/serve.log")" -lt 100 ] || fail "the log is full of it"

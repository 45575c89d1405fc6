# SPDX-License-Identifier: BSD-3-Clause
# A program that has its pool open when main() returns ends well: it may go on with it in handlers and destructors, or
# leave it; also where OpenSSL has been cleaned up before.
. "$(dirname "$0")/api_lib.sh"
make_keys
start_serve

CRYPTO=$(ldd "$BUILD/librepl.so.0" | sed -n 's/^.*libcrypto[^ ]* => \([^ ]*\) .*/\1/p')

# ends WHEN [LIBCRYPTO]
ends() {
	when=$1
	{
		echo "[repl]"
		echo "identity = $TMP/key"
		echo "known-hosts = $TMP/known_hosts"
		echo "heartbeat-interval = 20"
		echo "target = $(pool "$when")"
	} >"$TMP/repl.conf"
	shift
	rm -f "$TMP/$when"*
	# What OpenSSL has been cleaned up below is left as it is.
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 REPL_CONFIG=$TMP/repl.conf \
		timeout -k 5 60 "$BUILD/tests/integration/api_exit" "$when" \
		"$TMP/$when" "$@" >"$TMP/out" 2>&1 || fail "$when $*: ends with $?: $(cat "$TMP/out")"
	wait_for 10 no_sessions || fail "$when $*: the session stays"
	equal "$TMP/$when" "$TMP/serve/pools/$when"
	[ "$when" = never ] || [ "$(head -c 1 "$TMP/$when")" = x ] || fail "$when $*: nothing was written"
}

for when in handler destructor never; do
	ends "$when"
done
# As if it were another pool.
rm -f "$TMP/serve/pools"/*
for when in handler destructor never; do
	[ -z "$CRYPTO" ] || ends "$when" "$CRYPTO"
done

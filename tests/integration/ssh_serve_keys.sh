# SPDX-License-Identifier: BSD-3-Clause
# repld serve lets in plain and "restrict" keys, skips lines with other options, and trusts no file
# that others may write to.
. "$(dirname "$0")/lib.sh"
make_keys
start_serve_with "$SERVE_WITH"
target=$SERVE_USER@127.0.0.1:$SERVE_PORT
keys=$TMP/serve/authorized_keys
ssh-keygen -q -t rsa -b 2048 -N '' -f "$TMP/rsa_key"
ssh-keygen -q -t ecdsa -N '' -f "$TMP/ecdsa_key"

{
	echo "# comment"
	echo
	echo "restrict $(cat "$TMP/key.pub")"
	echo "command=\"/bin/true\" $(cat "$TMP/other_key.pub")"
	cat "$TMP/rsa_key.pub" "$TMP/ecdsa_key.pub"
} >"$keys"
for key in key rsa_key ecdsa_key; do
	echo hello | "$CHANNEL_CAT" -i "$TMP/$key" -k "$TMP/known_hosts" cat "$target" \
		>"$TMP/out" || fail "$key"
done
expect_error auth "other_key" \
	"$CHANNEL_CAT" -i "$TMP/other_key" -k "$TMP/known_hosts" cat "$target"
grep -q "authorized_keys:4: line skipped" "$TMP/serve.log" || fail "no warning for line 4"

chmod 666 "$keys"
expect_error unreachable "the log of the SSH server there" client cat "$target"
grep -q "has mode 666" "$TMP/serve.log" || fail "no word about the mode"
[ "$(stat -c %a "$TMP/serve/host_key")" = 600 ] || fail "mode of the host key"

# Killed while it made its host key, and started with the same number again, as in a container, it makes it.
stop "$SERVE_PID"
aside "$TMP/serve.log"
rm -f "$TMP/serve/host_key"
as_user=
[ "$(id -u)" -ne 0 ] || as_user="setpriv --reuid=$SERVE_USER --regid=$(id -g "$SERVE_USER") --clear-groups"
# shellcheck disable=SC2016,SC2086
$as_user sh -c ': >"$2.$$.tmp" && exec "$0" "$1" "$2" "$3" "$0" 4' "$SERVE_WITH" 127.0.0.1:0 "$TMP/serve/host_key" "$keys" \
	>"$TMP/serve.log" 2>&1 &
SERVE_PID=$!
serve_ready
[ -s "$TMP/serve/host_key" ] || fail "there is no host key"
ls "$TMP/serve" >"$TMP/out"
[ "$(grep -c tmp "$TMP/out")" -eq 1 ] || fail "something was left: $(cat "$TMP/out")"

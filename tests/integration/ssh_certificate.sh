# SPDX-License-Identifier: BSD-3-Clause
# A key that sshd knows by its certificate alone gets in with the one that lies beside it; one that is not
# accepted, or is none, is no reason not to try the key.
. "$(dirname "$0")/lib.sh"
make_keys
ssh-keygen -q -t ed25519 -N '' -f "$TMP/ca" || fail "ssh-keygen"
start_sshd "Subsystem repl /bin/cat" "TrustedUserCAKeys $TMP/ca.pub"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
enters() {
	[ "$(echo hello | "$CHANNEL_CAT" -i "$1" -k "$TMP/known_hosts" cat "$target" 2>&1)" = hello ]
}

for type in ed25519 rsa; do
	ssh-keygen -q -t "$type" -b 2048 -N '' -f "$TMP/$type" || fail "ssh-keygen"
	expect_error auth "not let in" "$CHANNEL_CAT" -i "$TMP/$type" -k "$TMP/known_hosts" cat "$target"
	ssh-keygen -q -s "$TMP/ca" -I test -n "$USER_NAME" "$TMP/$type.pub" || fail "no certificate"
	enters "$TMP/$type" || fail "by certificate: $type"
done
# Of another authority, and for the key that is listed.
ssh-keygen -q -s "$TMP/other_key" -I test -n "$USER_NAME" "$TMP/key.pub" || fail "no certificate"
enters "$TMP/key" || fail "a certificate that is not accepted"
for text in "" garbage; do
	echo "$text" >"$TMP/key-cert.pub"
	enters "$TMP/key" || fail "a certificate that is '$text'"
done

# SPDX-License-Identifier: BSD-3-Clause
# A key that is not listed, missing, damaged or locked is an authentication error that names it.
. "$(dirname "$0")/lib.sh"
make_keys
start_sshd "Subsystem repl /bin/cat"
start_serve_with "$SERVE_WITH"
ssh-keygen -q -t ed25519 -N secret -f "$TMP/locked_key"
echo garbage >"$TMP/garbage_key"
chmod 600 "$TMP/garbage_key"

for target in "$USER_NAME@127.0.0.1:$SSHD_PORT" "$SERVE_USER@127.0.0.1:$SERVE_PORT"; do
	for key in other_key missing_key garbage_key locked_key; do
		expect_error auth "$TMP/$key" \
			"$CHANNEL_CAT" -i "$TMP/$key" -k "$TMP/known_hosts" cat "$target"
	done
	expect_error auth "user '${target%%@*}'.*authorized keys" \
		"$CHANNEL_CAT" -i "$TMP/other_key" -k "$TMP/known_hosts" cat "$target"
	expect_error auth "passphrase.*ssh-add" \
		"$CHANNEL_CAT" -i "$TMP/locked_key" -k "$TMP/known_hosts" cat "$target"
done
# That the command can be typed where the path has a blank.
mkdir "$TMP/of us" && cp "$TMP/locked_key" "$TMP/of us"
expect_error auth "ssh-add '$TMP/of us/locked_key'" \
	"$CHANNEL_CAT" -i "$TMP/of us/locked_key" -k "$TMP/known_hosts" cat "$target"
expect_error auth "user 'nosuchuser'.*or another user" client cat "nosuchuser@127.0.0.1:$SERVE_PORT"

# SPDX-License-Identifier: BSD-3-Clause
# An unknown, changed or revoked host key is refused with its fingerprint, the file and the next
# step, also where ssh's config says not to check.
. "$(dirname "$0")/lib.sh"
make_keys
# Out of the home directory, which is bound over below.
cp "$CHANNEL_CAT" "$TMP/channel_cat" && CHANNEL_CAT=$TMP/channel_cat
start_sshd "Subsystem repl /bin/cat"
target=$USER_NAME@127.0.0.1:$SSHD_PORT
print=$(ssh-keygen -l -f "$TMP/sshd_host_key.pub" | cut -d ' ' -f 2)
: >"$TMP/empty"
echo "[127.0.0.1]:$SSHD_PORT $(cut -d ' ' -f 1,2 "$TMP/other_key.pub")" >"$TMP/changed"

check_refusals() {
	for file in empty missing; do
		expect_error auth "not in $TMP/$file.*ssh-keyscan -p $SSHD_PORT 127.0.0.1" \
			"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/$file" cat "$target"
		grep -Fq "$print" "$TMP/err" || fail "no fingerprint in: $(cat "$TMP/err")"
		[ ! -s "$TMP/$file" ] || fail "the key was learnt without being asked"
	done
	expect_error auth "not the known one.*ssh-keygen -f $TMP/changed -R " \
		"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/changed" cat "$target"
	grep -Fq "$print" "$TMP/err" || fail "no fingerprint in: $(cat "$TMP/err")"
}

check_refusals
mkdir "$TMP/directory"
expect_error auth "can't be looked for: $TMP/directory, .*: Is a directory" \
	"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/directory" cat "$target"

# The commands that are advised can be typed, also where a path has a blank.
mkdir "$TMP/of us" && cp "$TMP/changed" "$TMP/of us/changed"
expect_error auth "ssh-keyscan -p $SSHD_PORT 127.0.0.1 >> '$TMP/of us/missing', or" \
	"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/of us/missing" cat "$target"
expect_error auth "ssh-keygen -f '$TMP/of us/changed' -R '" \
	"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/of us/changed" cat "$target"
# A replica's state has room for 255 bytes: the command is whole there, and does what it says.
mkdir "$TMP/.ssh" && cp "$TMP/changed" "$TMP/.ssh/known_hosts"
expect_error auth "not the known one" "$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/.ssh/known_hosts" cat "$target"
sed 's/^auth: //' "$TMP/err" >"$TMP/text"
[ "$(wc -c <"$TMP/text")" -le 256 ] || fail "it is cut in a replica's state: $(cat "$TMP/err")"
eval "$(sed 's/.*: ssh-keygen/ssh-keygen/' "$TMP/text")" >"$TMP/out" 2>&1 || fail "$(cat "$TMP/err" "$TMP/out")"
[ ! -s "$TMP/.ssh/known_hosts" ] || fail "the old key is still there: $(cat "$TMP/err")"

# Whatever the host that its line names, and wherever it stands.
own=$(cut -d ' ' -f 1,2 "$TMP/sshd_host_key.pub")
for hosts in '*' "[127.0.0.1]:$SSHD_PORT" elsewhere; do
	printf '@revoked\t%s %s somebody had it\n' "$hosts" "$own" |
		cat "$TMP/known_hosts" - >"$TMP/revoked"
	expect_error auth "is revoked in $TMP/revoked" \
		"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/revoked" cat "$target"
	grep -Fq "$print" "$TMP/err" || fail "no fingerprint in: $(cat "$TMP/err")"
done
echo "@revoked * $(cut -d ' ' -f 1,2 "$TMP/other_key.pub")" | cat - "$TMP/known_hosts" >"$TMP/revoked"
"$CHANNEL_CAT" -i "$TMP/key" -k "$TMP/revoked" cat "$target" </dev/null ||
	fail "another key's revocation counts for this one"

home=$(getent passwd "$USER_NAME" | cut -d : -f 6)
printf 'Host *\n StrictHostKeyChecking no\n LogLevel DEBUG3\n Port 1\n User nosuchuser\n' \
	>"$HOME/.ssh/config"
# In a mount namespace: libssh takes the home directory from the user database.
cat >"$TMP/inside.sh" <<-END
	mount --bind "$HOME" "$home" || exit 1
	"$CHANNEL_CAT" -i "$TMP/key" -k "\$1" cat "$target" </dev/null
END
if [ "$(id -u)" -eq 0 ] && [ -d "$home" ] &&
	unshare -m sh -c "mount --bind '$HOME' '$home'" 2>/dev/null; then
	expect_error auth "not in $TMP/empty" unshare -m sh "$TMP/inside.sh" "$TMP/empty"
	[ "$(wc -l <"$TMP/err")" -eq 1 ] || fail "something was printed: $(cat "$TMP/err")"
	[ ! -s "$TMP/empty" ] || fail "the key was learnt as ssh's config says"
	expect_error auth "not the known one.*ssh-keygen -f $TMP/changed -R " \
		unshare -m sh "$TMP/inside.sh" "$TMP/changed"
	unshare -m sh "$TMP/inside.sh" "$TMP/known_hosts" ||
		fail "explicit user and port must win over ssh's config"
	# The file that has the old key is the one to be mended, also where it is all users'.
	echo " GlobalKnownHostsFile $TMP/changed" >>"$HOME/.ssh/config"
	expect_error auth "not the known one.*ssh-keygen -f $TMP/changed -R " \
		unshare -m sh "$TMP/inside.sh" "$TMP/empty"
	cp "$TMP/changed" "$TMP/own"
	expect_error auth "not the known one.*ssh-keygen -f $TMP/own -R " \
		unshare -m sh "$TMP/inside.sh" "$TMP/own"
else
	left_out "ssh's config: no root's rights, or no mount namespace"
fi

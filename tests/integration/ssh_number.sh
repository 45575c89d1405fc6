# SPDX-License-Identifier: BSD-3-Clause
# A user that is a number only, as in many a container, has no home directory and no name to log in by: what is missing is
# told, and with it the login works.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" -eq 0 ] || exit 77
start_target
cd "$TMP" || exit 1
host=${T#*@}
number=54321
getent passwd $number >/dev/null && exit 77
chmod 644 key known_hosts
chmod 755 home
# Of what libssh can't set up neither.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# by_number WORD...: as that user.
by_number() {
	setpriv --reuid=$number --regid=$number --clear-groups "$@" </dev/null >out 2>err
}
by_number true || exit 77

# says STATUS PATTERN NOT WORD...
says() {
	local due=$1 pattern=$2 not=$3 status=0

	shift 3
	by_number "$@" "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" list "$target" || status=$?
	[ "$status" -eq "$due" ] || fail "exit $status, not $due: $(cat err)"
	grep -q "user $number has no entry in passwd.*$pattern" err || fail "no '$pattern': $(cat err)"
	! grep -q "$not" err || fail "'$not': $(cat err)"
}

target=$host
says 10 "set HOME, .*and name the user there: user@127.0.0.1" memory env -u HOME
says 10 "name the user there, user@127.0.0.1, or have 'User' in ssh's config" HOME env HOME="$HOME"
target=$T
says 10 "set HOME" user@ env -u HOME

by_number env HOME="$HOME" "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" list "$T" ||
	fail "with HOME and a user: $(cat err)"
mkdir -p home/.ssh
chmod 755 home/.ssh
printf 'Host 127.0.0.1\nUser %s\nIdentityFile %s/none\n' "$SERVE_USER" "$TMP" >home/.ssh/config
by_number env HOME="$HOME" "$REPLCTL" --identity "$TMP/key" --known-hosts "$TMP/known_hosts" list "$host" ||
	fail "with User in ssh's config: $(cat err)"
# What "~" is told by the same.
rm home/.ssh/config
cp key home/.ssh/mine
chmod 644 home/.ssh/mine
by_number env HOME="$HOME" "$REPLCTL" --identity '~/.ssh/mine' --known-hosts '~/../known_hosts' list "$T" ||
	fail "with a key in HOME: $(cat err)"

# SPDX-License-Identifier: BSD-3-Clause
# Who types what repld(8) prints for a server of its own, on a machine that has nothing of it, has one that lets him in,
# also where root's new files are closed to others.
if [ -z "${INSIDE-}" ]; then
	[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || exit 77
	INSIDE=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/lib.sh"
page=$(dirname "$0")/../../docs/man/repld.8
make_keys
cp -a /etc "$TMP/etc" && mount --bind "$TMP/etc" /etc || exit 77
sed -i '/^repl:/d' "$TMP"/etc/passwd "$TMP"/etc/shadow "$TMP"/etc/group "$TMP"/etc/gshadow
rm -rf "$TMP/etc/repld" "$TMP/etc/repld.conf"
for dir in /srv /home /var/lib /var/log; do
	mount -t tmpfs -o mode=0755 tmpfs "$dir" || exit 77
done
PATH=$PATH:/usr/sbin

# printed BEGIN END: the lines of the page between two that match, without the prompt.
printed() {
	sed -n "/$1/,/$2/{ /^\./d; s/^# //; s/\\\\e/\\\\/g; p }" "$page"
}

port=$(free_port)
printed "^# useradd" "^\.Ed" >"$TMP/account"
printed "^# install -d \/etc\/repld \/var" "^# repld serve" |
	sed "s|'ssh-ed25519 AAAA.*'|'$(cat "$TMP/key.pub")'|; s/0\.0\.0\.0:7676/127.0.0.1:$port/; /^repld serve/d" >"$TMP/server"
[ "$(grep -c . "$TMP/account")" -ge 3 ] && [ "$(grep -c . "$TMP/server")" -ge 9 ] || fail "the page has changed: $(cat "$TMP/account" "$TMP/server")"
umask 077
sh -e "$TMP/account" >"$TMP/out" 2>&1 || fail "the account: $(cat "$TMP/out")"
sh -e "$TMP/server" >"$TMP/out" 2>&1 || fail "the server: $(cat "$TMP/out")"
"$REPLD" serve >"$TMP/serve.log" 2>&1 &
PIDS="$PIDS $!"
wait_for 20 grep -q "listening on" "$TMP/serve.log" || fail "repld serve does not start"
ssh-keygen -y -f /var/lib/repld/host_key >"$TMP/host_key.pub" || fail "no host key"
trust "$port" "$TMP/host_key.pub"
ctl create "repl@127.0.0.1:$port/p" --size 1M >"$TMP/out" 2>&1 || fail "create: $(cat "$TMP/out")"
[ -f /srv/pools/p ] || fail "no pool in /srv/pools"
